import { storageDamaged } from '../../refusal.ts'
import { utf8Text } from '../../text.ts'
import { logFilePath } from './check-log.ts'
import type { AuditedLogFile } from './check-log.ts'
import { forkOf, newestCosignatures, newestNoteSize, newestPolicyNumber } from './log-history.ts'
import type { LogFile } from './log-history.ts'
import { openTrusted, parsePolicy } from './log-policy.ts'
import type { LogPolicy } from './log-policy.ts'
import type { MerkleTree } from './merkle-tree.ts'
import { isSignatureLine } from './signed-note.ts'
import type { Checkpoint, Note } from './signed-note.ts'

/** The newest stored checkpoint, verified, as servers and exports publish it. */
export interface StoredLog {
  checkpoint: Checkpoint
  /** The note with the newest cosignature of each witness, as bytes are published. */
  note: string
  /** The same note, parsed. */
  parsedNote: Note
  /** Text of the policy in force. */
  policy: string
  parsedPolicy: LogPolicy
}

/**
 * Selects the files to publish: the newest note, the newest cosignature of each witness for it, and the policy in
 * force. Null if no note is stored.
 */
export function newestLogFiles(files: readonly LogFile[]): LogFile[] | null {
  const size = newestNoteSize(files)
  if (size === 0) return null
  const number = newestPolicyNumber(files)
  const policies: LogFile[] = number === 0 ? [] : [{ kind: 'policy', number }]
  return [{ kind: 'note', size }, ...newestCosignatures(files, size), ...policies]
}

/**
 * Verifies the files that {@link newestLogFiles} selected: a key of the policy must have signed the note. A cosignature
 * that is no valid line of its own is left out; an audit reports it.
 *
 * @throws Refusal `storage_damaged`
 */
export function openStoredLog(files: readonly AuditedLogFile[]): StoredLog {
  const textsOf = (kind: LogFile['kind']): string[] =>
    files.filter(({ file }) => file.kind === kind).map(requireText)
  const size = newestNoteSize(files.map(({ file }) => file))
  const [policy] = textsOf('policy')
  if (policy === undefined)
    throw storageDamaged(
      `tlog/year/${size} cannot be served: no policy is stored; run dash checkpoint with the key`,
    )
  const parsed = parsePolicy(policy)
  if (parsed.problem !== null) {
    const number = newestPolicyNumber(files.map(({ file }) => file))
    throw storageDamaged(`tlog/year/policy.${number} is not a valid policy: ${parsed.problem}`)
  }
  const signed = textsOf('note').join('')
  const isSound = (line: string): boolean =>
    isSignatureLine(line) && openTrusted(signed + line, parsed.policy).problem === null
  const note = signed + cosignaturesOf(files).filter(isSound).join('')
  const opened = openTrusted(note, parsed.policy)
  if (opened.problem !== null) throw storageDamaged(`tlog/year/${size} cannot be served: ${opened.problem}`)
  const { checkpoint, note: parsedNote } = opened
  if (checkpoint.size !== size)
    throw storageDamaged(`tlog/year/${size} is a checkpoint of ${checkpoint.size} entries`)
  return { checkpoint, note, parsedNote, policy, parsedPolicy: parsed.policy }
}

function cosignaturesOf(files: readonly AuditedLogFile[]): string[] {
  return files.flatMap(({ file, bytes }) => (file.kind === 'cosignature' ? [utf8Text(bytes)] : []))
}

function requireText({ file, bytes }: AuditedLogFile): string {
  if (bytes === null) throw storageDamaged(`${logFilePath(file)} is missing`)
  return utf8Text(bytes)
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
