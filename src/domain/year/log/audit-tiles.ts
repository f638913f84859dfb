import { areSameBytes, encodeBase64 } from '../../digest.ts'
import { finding } from '../finding.ts'
import type { Finding } from '../finding.ts'
import { leafHash, merkleTree, rootAt } from './merkle-tree.ts'
import type { Hash, MerkleTree } from './merkle-tree.ts'
import type { Checkpoint } from './signed-note.ts'
import { STATIC_CHECKPOINT, staticTilePath } from './static-layout.ts'
import { TILE_WIDTH, entriesOf, parseEntryBundle, parseTile, tileOf, tilesOfSize } from './tiles.ts'
import type { Tile } from './tiles.ts'

/** A tile or bundle of another host; `bytes` is null if the host does not have the file. */
export interface PublishedTile {
  tile: Tile
  bytes: Uint8Array | null
}

/** Result of an audit of the tiles and bundles of a host. */
export interface TilesAudit {
  findings: Finding[]
  /** Tree with the signed root; null if the files of the host do not have one. */
  tree: MerkleTree | null
  /** Every entry of the bundles that the host has. */
  entries: Uint8Array[]
  /** True if they are all entries of the signed tree. */
  isWhole: boolean
}

/** Up to 256 consecutive leaves, and their entries if the source has them. */
interface Leaves {
  leaves: Hash[]
  entries?: Uint8Array[]
}

/** What each source of the host has of the same leaves; null if it does not have all of them. */
type Place = Record<(typeof SOURCES)[number], Leaves | null>

const SOURCES = ['ledger', 'bundle', 'tile'] as const

/**
 * Compares the files of a log with the signed root. Entries are in the bundles and, at a server, in the ledger; their
 * hashes are in the tiles of level 0. A source whose leaves lead to the signed root is right, and what differs from it is
 * a finding. If damage is in every source, the files that differ from each other are findings, and so are the tiles above
 * them. Files that are not in `files` are not compared.
 *
 * @param files tiles and bundles of the tree of the checkpoint
 * @param ledger lines of the ledger without line ends, can be longer than the tree; null if the host has no ledger text
 */
export function auditTiles(
  checkpoint: Checkpoint,
  files: readonly PublishedTile[],
  ledger: { path: string; lines: readonly Uint8Array[] } | null,
): TilesAudit {
  const bundles = tilesOfSize(checkpoint.size).filter(({ level }) => level === 'entries')
  const places = bundles.map((bundle) => placeOf(bundle, files, ledger?.lines ?? []))
  const tree = signedTree(places, checkpoint)
  const doubtful = tree === null ? places.map(isDoubtful) : []
  const isForked = tree === null && (ledger !== null || !doubtful.includes(true))
  return {
    findings: [
      ...files.flatMap((file) => auditFile(file, places, tree, doubtful)),
      ...(ledger && tree ? auditLines(ledger, tree) : []),
      ...(isForked ? [forked(checkpoint)] : []),
    ],
    tree,
    entries: places.flatMap(({ bundle }) => bundle?.entries ?? []),
    isWhole: tree !== null && places.every(({ bundle }, index) => isBundleRight(bundle, tree, index)),
  }
}

/** Parses everything that the host has about the entries of a bundle. */
function placeOf(bundle: Tile, files: readonly PublishedTile[], lines: readonly Uint8Array[]): Place {
  const { index, width } = bundle
  const bytesAt = (level: Tile['level']): Uint8Array | null =>
    files.find(({ tile }) => tile.level === level && tile.index === index)?.bytes ?? null
  const [bundleBytes, tileBytes] = [bytesAt('entries'), bytesAt(0)]
  const hashed = (entries: Uint8Array[] | null): Leaves | null =>
    entries?.length === width ? { leaves: entries.map(leafHash), entries } : null
  const leaves = tileBytes && parseTile(tileBytes, width)
  return {
    ledger: hashed(entriesOf(lines, bundle)),
    bundle: hashed(bundleBytes && parseEntryBundle(bundleBytes, width)),
    tile: leaves && { leaves },
  }
}

/** Returns the tree with the signed root; null if no source leads to it. */
function signedTree(places: readonly Place[], { size, root }: Checkpoint): MerkleTree | null {
  for (const source of SOURCES) {
    const tree = merkleTree(places.flatMap((place) => place[source]?.leaves ?? []))
    if (tree.size === size && areSameBytes(rootAt(tree, size), root)) return tree
  }
  return null
}

/** True if a file of a place is missing or malformed, or its sources have different leaves. */
function isDoubtful({ ledger, bundle, tile }: Place): boolean {
  if (bundle === null || tile === null) return true
  return [ledger, bundle].some((source) => source !== null && !areSame(source.leaves, tile.leaves))
}

/** The finding for leaves that agree with each other and contradict the signature of the log. */
function forked({ size, root }: Checkpoint): Finding {
  const expected = `${size} entries whose tree has the root ${encodeBase64(root)}`
  return finding('log_forked', STATIC_CHECKPOINT, expected, 'entries with another root')
}

function isBundleRight(bundle: Leaves | null, { levels }: MerkleTree, index: number): boolean {
  const start = index * TILE_WIDTH
  return bundle !== null && areSame(bundle.leaves, (levels[0] ?? []).slice(start, start + TILE_WIDTH))
}

function areSame(some: readonly Hash[], others: readonly Hash[]): boolean {
  return some.every((leaf, at) => areSameBytes(leaf, others[at] as Hash))
}

/**
 * Compares a file with the tree.
 *
 * @param doubtful places with a wrong file, if there is no tree to tell which one
 */
function auditFile(
  { tile, bytes }: PublishedTile,
  places: readonly Place[],
  tree: MerkleTree | null,
  doubtful: readonly boolean[],
): Finding[] {
  const { level, index, width } = tile
  const isBundle = level === 'entries'
  const what = isBundle ? 'entries' : 'hashes'
  const mismatch = (actual: string | null): Finding[] => [
    finding('tile_mismatch', staticTilePath(tile), `the ${width} ${what} of the signed tree`, actual),
  ]
  if (bytes === null) return mismatch(null)
  const bundle = places[index]?.bundle ?? null
  if (isBundle ? bundle === null : parseTile(bytes, width) === null)
    return mismatch(`${bytes.byteLength} bytes that are not ${width} ${what}`)
  if (tree === null) {
    const isProved = isBundle || level === 0 ? doubtful[index] === false : !doubtful.includes(true)
    return isProved ? [] : mismatch(`${bytes.byteLength} bytes that no other file confirms`)
  }
  const isRight = isBundle
    ? isBundleRight(bundle, tree, index)
    : areSameBytes(tileOf(tree, { ...tile, level }), bytes)
  return isRight ? [] : mismatch(`${bytes.byteLength} bytes with other ${what}`)
}

/** Compares the ledger with the tree; the first difference is enough. */
function auditLines(
  { path, lines }: { path: string; lines: readonly Uint8Array[] },
  { size, levels }: MerkleTree,
): Finding[] {
  const differs = (levels[0] ?? []).findIndex((leaf, index) => {
    const line = lines[index]
    return line === undefined || !areSameBytes(leafHash(line), leaf)
  })
  if (differs === -1) return []
  const actual =
    lines[differs] === undefined ? `only ${lines.length} entries` : `another entry ${differs + 1}`
  return [finding('log_forked', path, `the ${size} entries of the signed checkpoint`, actual)]
}
