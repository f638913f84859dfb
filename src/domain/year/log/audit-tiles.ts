import { areSameBytes, encodeBase64 } from '../../digest.ts'
import { finding } from '../finding.ts'
import type { Finding } from '../finding.ts'
import { leafHash, merkleTree, rootAt } from './merkle-tree.ts'
import type { Hash, MerkleTree } from './merkle-tree.ts'
import type { Checkpoint } from './signed-note.ts'
import { STATIC_CHECKPOINT, staticTilePath } from './static-layout.ts'
import { entriesOf, parseEntryBundle, parseTile, tileOf, tilesOfSize } from './tiles.ts'
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
  /** Every entry of the bundles, or of the ledger, that the host has. */
  entries: Uint8Array[]
  /** True if all entries of the signed tree are there. */
  isWhole: boolean
}

/** Up to 256 consecutive leaves, as one file or text of the host has them. */
interface Candidate {
  source: 'ledger' | 'bundle' | 'tile'
  leaves: Hash[]
  root: Hash
  /** Null if the source has only hashes. */
  entries: Uint8Array[] | null
}

/**
 * Compares the files of a log with the signed root. Entries are in the bundles and, at a server, in the ledger; their
 * hashes are in the tiles of level 0. For each 256 entries, the source that leads to the signed root is right, and the
 * others are findings. Files that are not in `files` are not compared.
 *
 * @param files tiles and bundles of the tree of the checkpoint
 * @param ledger lines of the ledger without line ends, can be longer than the tree; null if the host has no ledger text
 */
export function auditTiles(
  checkpoint: Checkpoint,
  files: readonly PublishedTile[],
  ledger: { path: string; lines: readonly Uint8Array[] } | null,
): TilesAudit {
  const candidates = bundlesOf(checkpoint.size).map((bundle) =>
    candidatesOf(bundle, files, ledger?.lines ?? []),
  )
  const chosen = chooseCandidates(candidates, checkpoint.root)
  const isRight = (candidate: Candidate, index: number): boolean =>
    chosen === null || areSameBytes(candidate.root, (chosen[index] as Candidate).root)
  const sources = candidates.map((each, index) =>
    each.find((candidate) => candidate.entries !== null && isRight(candidate, index)),
  )
  const anyEntries = candidates.map(
    (each, index) => sources[index] ?? each.find(({ entries }) => entries !== null),
  )
  const tree = chosen && merkleTree(chosen.flatMap(({ leaves }) => leaves))
  return {
    findings: [
      ...files.flatMap((file) => auditFile(file, candidates, tree)),
      ...(ledger && tree ? auditLines(ledger, tree) : []),
      // A file that cannot be parsed is a finding already.
      ...(chosen === null && candidates.every(({ length }) => length > 0)
        ? withoutTree(checkpoint, files, candidates, ledger !== null)
        : []),
    ],
    tree,
    entries: anyEntries.flatMap((source) => source?.entries ?? []),
    isWhole: chosen !== null && sources.every((source) => source !== undefined),
  }
}

function bundlesOf(size: number): Tile[] {
  return tilesOfSize(size).filter(({ level }) => level === 'entries')
}

/** Parses everything that the host has about the entries of a bundle. */
function candidatesOf(
  bundle: Tile,
  files: readonly PublishedTile[],
  lines: readonly Uint8Array[],
): Candidate[] {
  const { index, width } = bundle
  const bytesAt = (level: Tile['level']): Uint8Array | null =>
    files.find(({ tile }) => tile.level === level && tile.index === index)?.bytes ?? null
  const [bundleBytes, tileBytes] = [bytesAt('entries'), bytesAt(0)]
  const ofLedger = entriesOf(lines, bundle)
  const ofBundle = bundleBytes && parseEntryBundle(bundleBytes, width)
  const ofTile = tileBytes && parseTile(tileBytes, width)
  return [
    ...(ofLedger.length === width ? [candidateOf('ledger', ofLedger.map(leafHash), ofLedger)] : []),
    ...(ofBundle ? [candidateOf('bundle', ofBundle.map(leafHash), ofBundle)] : []),
    ...(ofTile ? [candidateOf('tile', ofTile, null)] : []),
  ]
}

function candidateOf(source: Candidate['source'], leaves: Hash[], entries: Uint8Array[] | null): Candidate {
  return { source, leaves, entries, root: rootAt(merkleTree(leaves), leaves.length) }
}

/** Most combinations of candidates that are tried: ten damaged files, each in another place. */
const COMBINATIONS_MAX = 1024

/** Chooses one candidate in each place, so that they lead to the signed root; null if no choice does. */
function chooseCandidates(candidates: readonly Candidate[][], root: Hash): Candidate[] | null {
  const distinct = candidates.map((each) =>
    each.filter(
      (candidate, index) => each.findIndex((other) => areSameBytes(other.root, candidate.root)) === index,
    ),
  )
  // The tree over the roots of all full tiles and the last one has the same root as the tree over the leaves.
  const hasRoot = (choice: readonly Candidate[]): boolean =>
    choice.length === candidates.length &&
    areSameBytes(rootAt(merkleTree(choice.map((each) => each.root)), choice.length), root)
  const ofOneSource = (['ledger', 'bundle', 'tile'] as const).map((source) =>
    candidates.flatMap((each) => each.find((candidate) => candidate.source === source) ?? []),
  )
  const count = distinct.reduce((product, { length }) => Math.min(product * length, COMBINATIONS_MAX + 1), 1)
  const combined = count <= COMBINATIONS_MAX ? combinationsOf(distinct) : []
  return [...ofOneSource, ...combined].find(hasRoot) ?? null
}

function combinationsOf(places: readonly Candidate[][]): Candidate[][] {
  return places.reduce<Candidate[][]>(
    (choices, place) => choices.flatMap((choice) => place.map((candidate) => [...choice, candidate])),
    [[]],
  )
}

/** Compares a file with the tree; without a tree, only a missing or malformed file is wrong. */
function auditFile(
  { tile, bytes }: PublishedTile,
  candidates: readonly Candidate[][],
  tree: MerkleTree | null,
): Finding[] {
  const { level, index, width } = tile
  const path = staticTilePath(tile)
  const what = level === 'entries' ? 'entries' : 'hashes'
  const mismatch = (actual: string | null): Finding[] => [
    finding('tile_mismatch', path, `the ${width} ${what} of the signed tree`, actual),
  ]
  if (bytes === null) return mismatch(null)
  const others = `${bytes.byteLength} bytes with other ${what}`
  if (level === 'entries') {
    const parsed = candidates[index]?.find(({ source }) => source === 'bundle')
    if (parsed === undefined) return mismatch(`${bytes.byteLength} bytes that are not ${width} entries`)
    const leaves = tree && entriesOf(tree.levels[0] ?? [], tile)
    return leaves === null || parsed.leaves.every((leaf, at) => areSameBytes(leaf, leaves[at] as Hash))
      ? []
      : mismatch(others)
  }
  if (parseTile(bytes, width) === null)
    return mismatch(`${bytes.byteLength} bytes that are not ${width} hashes`)
  return tree === null || areSameBytes(tileOf(tree, { ...tile, level }), bytes) ? [] : mismatch(others)
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

/**
 * Findings if no choice of sources leads to the signed root. A ledger, or files that agree with each other, contradict the
 * signature of the log. Files that differ from others of the same entries may only be damaged.
 */
function withoutTree(
  { size, root }: Checkpoint,
  files: readonly PublishedTile[],
  candidates: readonly Candidate[][],
  hasLedger: boolean,
): Finding[] {
  const signed = `the root ${encodeBase64(root)}`
  const differ = candidates.map(([first, ...others]) =>
    others.some((other) => !areSameBytes(other.root, (first as Candidate).root)),
  )
  if (hasLedger || !differ.includes(true)) {
    const expected = `${size} entries whose tree has ${signed}`
    return [finding('log_forked', STATIC_CHECKPOINT, expected, 'entries with another root')]
  }
  return files
    .filter(({ tile: { level, index } }) => (level === 'entries' || level === 0) && differ[index])
    .map(({ tile, bytes }) =>
      finding(
        'tile_mismatch',
        staticTilePath(tile),
        `a part of the tree with ${signed}`,
        `${bytes?.byteLength} bytes that do not lead to it`,
      ),
    )
}
