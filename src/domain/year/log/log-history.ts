import { areSameBytes } from '../../digest.ts'
import { utf8Text } from '../../text.ts'
import { leafText } from '../ledger.ts'
import type { LedgerRow } from '../ledger.ts'
import { leafHash, merkleTree, rootAt } from './merkle-tree.ts'
import type { MerkleTree } from './merkle-tree.ts'
import { parseCheckpoint, parseNote, verifyNote } from './signed-note.ts'
import type { Checkpoint, VerifierKey } from './signed-note.ts'

/**
 * The ledger as a signed log: names of its stored files, and the check that it has one history
 * (docs/decisions/0070-signed-checkpoints.md).
 */

/** Path of the log below a host's base URL. */
export const LOG_PATH = '/tlog/year'

/** Builds the Merkle tree over the ledger: entry `seq` is leaf `seq - 1`. */
export function ledgerTree(rows: readonly LedgerRow[]): MerkleTree {
  return merkleTree(rows.map((row) => leafHash(entryBytes(row))))
}

/** Returns a row as a log entry: the bytes of its line in the published ledger. */
export function entryBytes(row: LedgerRow): Uint8Array {
  return new TextEncoder().encode(leafText(row))
}

/** A file of the log in the object store, below `tlog/year`. */
export type LogFile =
  /** The signed checkpoint of the tree of `size` entries. */
  | { kind: 'note'; size: number }
  /** Policy for readers: the keys to trust. The policy with the greatest number is in force. */
  | { kind: 'policy'; number: number }

export function logFileName(file: LogFile): string {
  return file.kind === 'note' ? `${file.size}` : `policy.${file.number}`
}

/** Parses the name of a log file; null for any name that {@link logFileName} does not produce. */
export function parseLogFileName(name: string): LogFile | null {
  const [, policy, digits] = /^(policy\.)?([1-9]\d{0,14})$/.exec(name) ?? []
  if (digits === undefined) return null
  const number = Number(digits)
  return policy === undefined ? { kind: 'note', size: number } : { kind: 'policy', number }
}

/** Returns the number of entries of the newest stored note; 0 without a note. */
export function newestNoteSize(files: readonly LogFile[]): number {
  return Math.max(0, ...files.map((file) => (file.kind === 'note' ? file.size : 0)))
}

/** Returns the number of the policy in force; 0 without a policy. */
export function newestPolicyNumber(files: readonly LogFile[]): number {
  return Math.max(0, ...files.map((file) => (file.kind === 'policy' ? file.number : 0)))
}

/**
 * Reads a stored note. A note of another origin is accepted without verifying its signature: an abandoned log that this
 * log replaces may have signed it.
 *
 * @param bytes null if the note is missing
 * @param size number of entries, from the file name
 * @param keys keys of the log, one of which must have signed a note of its origin
 */
export function readStoredNote(
  bytes: Uint8Array | null,
  size: number,
  keys: readonly VerifierKey[],
): { problem: string } | { problem: null; checkpoint: Checkpoint } {
  const note = parseNote(utf8Text(bytes))
  const checkpoint = note && parseCheckpoint(note.text)
  if (!note || !checkpoint) return { problem: 'is not a signed checkpoint' }
  if (checkpoint.size !== size) return { problem: `is a checkpoint of ${checkpoint.size} entries` }
  const { origin } = checkpoint
  const own = keys.filter(({ name }) => name === origin)
  if (own.length > 0 && !own.some((key) => verifyNote(note, key) === 'valid'))
    return { problem: `is not signed by the key of ${origin}` }
  return { problem: null, checkpoint }
}

/** Returns the reason why a tree does not continue the tree of a checkpoint; null if it does. */
export function forkOf(tree: MerkleTree, { size, root }: Checkpoint): string | null {
  if (size > tree.size) return `the checkpoint has ${size} entries, the ledger only ${tree.size}`
  if (!areSameBytes(rootAt(tree, size), root))
    return `its ${size} entries differ from the first ${size} of the ledger`
  return null
}

/** The newest checkpoint of another host's log that this user has seen, with its tree. */
export interface SeenLog {
  note: string
  /** Base URLs of the hosts that showed this log. */
  hosts: readonly string[]
  /** Text of the policy whose keys were trusted. */
  policy: string
  checkpoint: Checkpoint
  /** Tree of exactly the entries of the checkpoint. */
  tree: MerkleTree
}
