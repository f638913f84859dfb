import { areSameBytes, encodeBase64 } from '../../digest.ts'
import { finding } from '../finding.ts'
import type { Finding } from '../finding.ts'
import { leafHash, merkleTree, rootAt } from './merkle-tree.ts'
import type { Hash, MerkleTree } from './merkle-tree.ts'
import type { Checkpoint } from './signed-note.ts'
import { STATIC_CHECKPOINT, staticTilePath } from './static-layout.ts'
import { TILE_WIDTH, parseEntryBundle, parseTile, tileOf, tilesOfSize } from './tiles.ts'
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
  /** Every entry of the bundles that can be read. */
  entries: Uint8Array[]
}

/**
 * Compares the files of a log with the signed root. The lines of the ledger, the entries of all bundles, or the hashes in
 * all tiles of level 0 lead to it, and what differs from them is a finding. If none do, no file is proved: each of them
 * is a finding, unless bundles and tiles agree with each other and contradict the signature.
 *
 * @param files tiles and bundles of the tree of the checkpoint; what could not be read is missing among them
 * @param ledger lines of the ledger without line ends, can be longer than the tree; null if the host has no ledger text
 */
export function auditTiles(
  checkpoint: Checkpoint,
  files: readonly PublishedTile[],
  ledger: { path: string; lines: readonly Uint8Array[] } | null,
): TilesAudit {
  const { size, root } = checkpoint
  const entries = files.flatMap((file) => entriesIn(file) ?? [])
  const inTiles = files.flatMap(({ tile: { level, width }, bytes }) =>
    level === 0 && bytes !== null ? (parseTile(bytes, width) ?? []) : [],
  )
  const inBundles = entries.map(leafHash)
  const inLedger = (ledger?.lines.slice(0, size) ?? []).map(leafHash)
  const trees = [inLedger, inBundles, inTiles].map(merkleTree)
  const tree = trees.find((each) => each.size === size && areSameBytes(rootAt(each, size), root)) ?? null
  if (tree !== null) {
    const wrong = files.filter((file) => !isOfTree(file, tree)).map(tileFinding)
    return { findings: [...wrong, ...(ledger ? auditLines(ledger, tree) : [])], tree, entries }
  }
  const isAgreed = inTiles.length === size && areSame(inTiles, inBundles)
  const isWhole = files.length === tilesOfSize(size).length
  const findings = isWhole && !isAgreed ? files.map(tileFinding) : []
  if (ledger !== null || isAgreed) findings.push(forked(checkpoint))
  return { findings, tree, entries }
}

function entriesIn({ tile: { level, width }, bytes }: PublishedTile): Uint8Array[] | null {
  return level === 'entries' && bytes !== null ? parseEntryBundle(bytes, width) : null
}

function isOfTree(file: PublishedTile, tree: MerkleTree): boolean {
  const { level, index, width } = file.tile
  if (level !== 'entries')
    return file.bytes !== null && areSameBytes(file.bytes, tileOf(tree, { ...file.tile, level }))
  const start = index * TILE_WIDTH
  const leaves = (tree.levels[0] ?? []).slice(start, start + width)
  return areSame(entriesIn(file)?.map(leafHash) ?? [], leaves)
}

function areSame(some: readonly Hash[], others: readonly Hash[]): boolean {
  return some.length === others.length && some.every((hash, at) => areSameBytes(hash, others[at] as Hash))
}

/** The finding for a file that differs from the signed tree, or from another file of it. */
export function tileFinding({ tile, bytes }: PublishedTile): Finding {
  const what = tile.level === 'entries' ? 'entries' : 'hashes'
  const actual = bytes && `${bytes.byteLength} other bytes`
  return finding(
    'tile_mismatch',
    staticTilePath(tile),
    `the ${tile.width} ${what} of the signed tree`,
    actual,
  )
}

/** The finding for entries that agree with each other and contradict the signature of the log. */
function forked({ size, root }: Checkpoint): Finding {
  const expected = `${size} entries whose tree has the root ${encodeBase64(root)}`
  return finding('log_forked', STATIC_CHECKPOINT, expected, 'entries with another root')
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
