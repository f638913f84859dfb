import { areSameBytes, encodeBase64 } from '../../digest.ts'
import { storageDamaged } from '../../refusal.ts'
import { utf8Text } from '../../text.ts'
import { describeFinding, finding } from '../finding.ts'
import type { Finding } from '../finding.ts'
import type { LedgerRow } from '../ledger.ts'
import { forkOf, ledgerTree, logFileName, newestNoteSize, newestPolicyNumber } from './log-history.ts'
import type { LogFile } from './log-history.ts'
import { leafHash, merkleTree, rootAt } from './merkle-tree.ts'
import type { MerkleTree, Hash } from './merkle-tree.ts'
import { parsePolicy, openCheckpoint, readCheckpoint } from './signed-note.ts'
import type { Checkpoint, VerifierKey } from './signed-note.ts'
import { STATIC_CHECKPOINT, staticTilePath } from './static-layout.ts'
import { TILE_WIDTH, parseEntryBundle, parseTile, tileOf, tilesOfSize } from './tiles.ts'
import type { Tile } from './tiles.ts'

/** A file of the signed log as an audit reads it; `bytes` is null if the file is listed but missing. */
export interface AuditedLogFile {
  file: LogFile
  bytes: Uint8Array | null
}

/** The record of the last signed checkpoint beside the key, as findings and messages name it. */
export const LOG_RECORD = 'the record of the log key'

/** Returns the path of a log file in the object store. */
export function logFilePath(file: LogFile): string {
  return `tlog/year/${logFileName(file)}`
}

/**
 * Audits the stored files of the signed log. Each policy must parse. Each note must be signed by a log key of a stored
 * policy, and the ledger must continue it, so that all notes are consistent with each other.
 *
 * @param rows every row of the ledger, read after the files were listed
 * @param record the checkpoint that the key signed last, which the ledger must continue too; null if it is not known
 * @returns one finding for each rule that a file violates
 */
export function auditLog(
  rows: readonly LedgerRow[],
  files: readonly AuditedLogFile[],
  record: Checkpoint | null = null,
): Finding[] {
  if (files.length === 0 && record === null) return []
  const tree = ledgerTree(rows)
  const behind = record === null ? null : forkOf(tree, record)
  const findings =
    behind === null ? [] : [finding('log_forked', LOG_RECORD, 'the tree of the ledger', behind)]
  if (files.length === 0) return findings
  const read = readFiles(files)
  const forks = read.notes.flatMap(({ file, checkpoint }) => {
    const fork = forkOf(tree, checkpoint)
    return fork === null ? [] : [finding('log_forked', logFilePath(file), 'the tree of the ledger', fork)]
  })
  return [...findings, ...read.findings, ...forks]
}

/** The valid files of a log, and the findings about the others. */
interface ReadFiles {
  /** Text of a policy; null without a valid one. */
  policy: string | null
  notes: { file: LogFile; note: string; checkpoint: Checkpoint }[]
  findings: Finding[]
}

function readFiles(files: readonly AuditedLogFile[]): ReadFiles {
  const keys: VerifierKey[] = []
  const read: ReadFiles = { policy: null, notes: [], findings: [] }
  const policies = files.filter(({ file }) => file.kind === 'policy')
  for (const { file, bytes } of policies) {
    const text = utf8Text(bytes)
    const parsed = bytes === null ? { problem: MISSING } : parsePolicy(text)
    if (parsed.problem === null) {
      keys.push(...parsed.keys)
      read.policy = text
    } else read.findings.push(invalid(file, 'a policy', parsed.problem))
  }
  // Without a policy, one finding says so instead of one for each note.
  if (policies.length === 0)
    read.findings.push(invalid({ kind: 'policy', number: 1 }, 'a policy', 'no policy is stored'))
  for (const { file, bytes } of files) {
    if (file.kind !== 'note') continue
    const note = utf8Text(bytes)
    const opened =
      bytes === null
        ? { problem: MISSING }
        : read.policy === null
          ? readCheckpoint(note)
          : openCheckpoint(note, keys)
    if (opened.problem === null && opened.checkpoint.size === file.size) {
      read.notes.push({ file, note, checkpoint: opened.checkpoint })
      continue
    }
    const problem = opened.problem ?? `a checkpoint of ${opened.checkpoint.size} entries`
    read.findings.push(invalid(file, `a signed checkpoint of ${file.size} entries`, problem))
  }
  return read
}

const MISSING = 'it is missing'

function invalid(file: LogFile, expected: string, actual: string): Finding {
  return finding('note_invalid', logFilePath(file), expected, actual)
}

/** The newest stored checkpoint, verified, as servers and exports publish it. */
export interface StoredLog {
  checkpoint: Checkpoint
  note: string
  /** Text of the policy in force. */
  policy: string
}

/** Selects the files to publish: the newest note and the policy in force. Null if no note is stored. */
export function newestLogFiles(files: readonly LogFile[]): LogFile[] | null {
  const size = newestNoteSize(files)
  if (size === 0) return null
  const number = newestPolicyNumber(files)
  const policies: LogFile[] = number === 0 ? [] : [{ kind: 'policy', number }]
  return [{ kind: 'note', size }, ...policies]
}

/**
 * Verifies the files that {@link newestLogFiles} selected, as an audit does.
 *
 * @throws Refusal `storage_damaged`
 */
export function openStoredLog(files: readonly AuditedLogFile[]): StoredLog {
  const { policy, notes, findings } = readFiles(files)
  const [newest] = notes
  if (newest && policy !== null) return { checkpoint: newest.checkpoint, note: newest.note, policy }
  const problem = findings.map(describeFinding).join(', ')
  const mend = policy === null ? '; run dash checkpoint with the key' : ''
  throw storageDamaged(`the signed log cannot be served: ${problem}${mend}`)
}

/**
 * Requires the ledger to continue the newest stored checkpoint.
 *
 * @throws Refusal `storage_damaged`
 */
export function requireContinued(tree: MerkleTree, checkpoint: Checkpoint): void {
  const fork = forkOf(tree, checkpoint)
  if (fork !== null)
    throw storageDamaged(`the ledger does not continue the checkpoint tlog/year/${checkpoint.size}: ${fork}`)
}

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
