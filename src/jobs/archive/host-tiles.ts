import { areSameBytes } from '../../domain/digest.ts'
import { READ_ERROR, finding } from '../../domain/year/finding.ts'
import type { Finding } from '../../domain/year/finding.ts'
import { auditTiles } from '../../domain/year/log/audit-tiles.ts'
import type { PublishedTile, TilesAudit } from '../../domain/year/log/audit-tiles.ts'
import type { MerkleTree } from '../../domain/year/log/merkle-tree.ts'
import { staticTilePath, staticTiles } from '../../domain/year/log/static-layout.ts'
import { entriesOf, tileBytes, tilePath, tilesOfSize } from '../../domain/year/log/tiles.ts'
import type { PublishedResponse } from '../../domain/year/published-ledger.ts'
import type { HostLogPorts, HostNote } from './host-log.ts'
import { unavailable } from './host-requests.ts'
import type { CheckRound, HostCheck } from './host-requests.ts'

/** Most bytes of all tiles and bundles of a host together. */
const TILES_MAX_BYTES = 16 * 1024 * 1024

/**
 * Reads all tiles and bundles of a checkpoint and compares them with its root.
 *
 * @param ledger lines of the host's ledger, read after the checkpoint; null if the host has no ledger text
 * @throws Refusal `source_unavailable` if they have too many bytes
 */
export async function auditHostTiles(
  { published }: HostLogPorts,
  { checkpoint }: HostNote,
  ledger: Parameters<typeof auditTiles>[2],
  signal: AbortSignal,
): Promise<TilesAudit> {
  const files: PublishedTile[] = []
  const unread: Finding[] = []
  let remaining = TILES_MAX_BYTES
  for (const tile of tilesOfSize(checkpoint.size)) {
    const path = staticTilePath(tile)
    const response = await published.file(`/${path}`, remaining, signal)
    if (response.is === 'text') {
      if (response.bytes === null)
        throw unavailable(
          `the tiles of ${published.base} have more than ${TILES_MAX_BYTES} bytes, up to ${path}`,
        )
      remaining -= response.byteSize
      files.push({ tile, bytes: response.bytes })
    } else if (response.is === 'absent') files.push({ tile, bytes: null })
    else unread.push(unreadable(path, `the host responded with ${response.description}`))
  }
  const audit = auditTiles(checkpoint, files, ledger)
  return { ...audit, findings: [...unread, ...audit.findings] }
}

/**
 * Creates the requests for the partial tiles and bundles that an export keeps for readers of older checkpoints.
 *
 * @param tree tree of the host's checkpoint
 * @param entries all entries of the tree
 */
export function olderTileRounds(
  { published }: Pick<HostLogPorts, 'published'>,
  tree: MerkleTree,
  entries: readonly Uint8Array[],
): CheckRound[] {
  const current = new Set(tilesOfSize(tree.size).map(tilePath))
  const older = staticTiles(tree.size).filter((tile) => !current.has(tilePath(tile)))
  return older.map((tile) => () => {
    const path = staticTilePath(tile)
    const expected = tileBytes(tree, tile, (bundle) => entriesOf(entries, bundle))
    const check: HostCheck = {
      send: (signal) => published.file(`/${path}`, expected.byteLength, signal),
      examine: (response) => auditOlderTile(path, expected, response),
      withoutResponse: (reason) => [unreadable(path, reason)],
    }
    return { checks: [check], findings: [] }
  })
}

function auditOlderTile(path: string, expected: Uint8Array, response: PublishedResponse): Finding[] {
  const isText = response.is === 'text'
  if (isText && response.bytes !== null && areSameBytes(response.bytes, expected)) return []
  if (!isText && response.is !== 'absent')
    return [unreadable(path, `the host responded with ${response.description}`)]
  const actual = isText ? `${response.byteSize} other bytes` : null
  return [finding('tile_mismatch', path, `the ${expected.byteLength} bytes of the signed tree`, actual)]
}

function unreadable(path: string, reason: string): Finding {
  return finding('object_unreadable', path, null, `${READ_ERROR}${reason}`)
}
