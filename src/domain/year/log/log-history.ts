import { areSameBytes } from '../../digest.ts'
import { leafText } from '../ledger.ts'
import type { LedgerRow } from '../ledger.ts'
import { leafHash, merkleTree, rootAt } from './merkle-tree.ts'
import type { MerkleTree } from './merkle-tree.ts'
import { parseCheckpoint, parseNote, verifyNote } from './signed-note.ts'
import type { Checkpoint, VerifierKey } from './signed-note.ts'

/**
 * The ledger as a log whose checkpoints are signed: what is stored of it, and that it has one history
 * (docs/decisions/0070-signed-checkpoints.md).
 */

/** Where a host serves its log, below its base URL. */
export const LOG_PATH = '/tlog/year'

/** The tree over the ledger: entry `seq` is leaf `seq - 1`. */
export function ledgerTree(rows: readonly LedgerRow[]): MerkleTree {
  return merkleTree(rows.map((row) => leafHash(entryBytes(row))))
}

/** A row as an entry of the log: the bytes of its line in the published ledger. */
export function entryBytes(row: LedgerRow): Uint8Array {
  return new TextEncoder().encode(leafText(row))
}

/** A file of the log in the object store, below `tlog/year`. */
export type LogFile =
  /** The signed checkpoint of the tree of `size` entries. */
  | { kind: 'note'; size: number }
  /** The signature line of a witness under that note, made at `time` in seconds since 1970. */
  | { kind: 'cosignature'; size: number; keyId: string; time: number }
  /** Whom readers should believe; the greatest number is in force. */
  | { kind: 'policy'; number: number }

/** The name of a file of the log. */
export function logFileName(file: LogFile): string {
  switch (file.kind) {
    case 'note':
      return `${file.size}`
    case 'cosignature':
      return `${file.size}.${file.keyId}.${file.time}`
    case 'policy':
      return `policy.${file.number}`
  }
}

/** The file of a name; null for anything {@link logFileName} would not have written. */
export function parseLogFileName(name: string): LogFile | null {
  const [, size, keyId, time, number] =
    /^(?:([1-9]\d{0,14})(?:\.([\da-f]{8})\.([1-9]\d{0,14}))?|policy\.([1-9]\d{0,14}))$/.exec(name) ?? []
  if (number !== undefined) return { kind: 'policy', number: Number(number) }
  if (size === undefined) return null
  if (keyId === undefined) return { kind: 'note', size: Number(size) }
  return { kind: 'cosignature', size: Number(size), keyId, time: Number(time) }
}

/** The size of the newest stored note; 0 when there is none. */
export function newestNoteSize(files: readonly LogFile[]): number {
  return Math.max(0, ...files.map((file) => (file.kind === 'note' ? file.size : 0)))
}

/** The newest cosignature of each witness under the note of a size. */
export function newestCosignatures(files: readonly LogFile[], size: number): LogFile[] {
  const newest = new Map<string, Extract<LogFile, { kind: 'cosignature' }>>()
  for (const file of files) {
    if (file.kind !== 'cosignature' || file.size !== size) continue
    if (file.time > (newest.get(file.keyId)?.time ?? 0)) newest.set(file.keyId, file)
  }
  return [...newest.values()]
}

/** The number of the policy in force; 0 when there is none. */
export function newestPolicyNumber(files: readonly LogFile[]): number {
  return Math.max(0, ...files.map((file) => (file.kind === 'policy' ? file.number : 0)))
}

/**
 * Reads a stored note. Another log than the key's may have signed it: one that was given up for this one.
 *
 * @param size in the name of its file
 */
export function readStoredNote(
  bytes: Uint8Array | null,
  size: number,
  key: VerifierKey,
): { problem: string } | { problem: null; checkpoint: Checkpoint } {
  const note = bytes === null ? null : parseNote(new TextDecoder().decode(bytes))
  const checkpoint = note && parseCheckpoint(note.text)
  if (!note || !checkpoint) return { problem: 'is not a signed checkpoint' }
  if (checkpoint.size !== size) return { problem: `is a checkpoint of ${checkpoint.size} entries` }
  if (checkpoint.origin === key.name && verifyNote(note, key).is !== 'valid')
    return { problem: `is not signed by the key of ${key.name}` }
  return { problem: null, checkpoint }
}

/** Why a tree does not continue the tree of a checkpoint; null when it does. */
export function forkOf(tree: MerkleTree, { size, root }: Checkpoint): string | null {
  if (size > tree.size) return `it has ${size} entries, the ledger only ${tree.size}`
  if (!areSameBytes(rootAt(tree, size), root)) return `its ${size} entries are not the first of the ledger`
  return null
}
