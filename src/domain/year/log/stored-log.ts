import { storageDamaged } from '../../refusal.ts'
import { logFilePath } from './check-log.ts'
import type { AuditedLogFile } from './check-log.ts'
import { forkOf, newestCosignatures, newestNoteSize, newestPolicyNumber } from './log-history.ts'
import type { LogFile } from './log-history.ts'
import { evaluatePolicy, parsePolicy } from './log-policy.ts'
import type { LogPolicy } from './log-policy.ts'
import type { MerkleTree } from './merkle-tree.ts'
import { openCheckpoint } from './signed-note.ts'
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
  const policy: LogFile = { kind: 'policy', number: newestPolicyNumber(files) }
  return [{ kind: 'note', size }, ...newestCosignatures(files, size), policy]
}

/**
 * Verifies the files that {@link newestLogFiles} selected: a key of the policy signed the note, and no cosignature is
 * invalid.
 *
 * @throws Refusal `storage_damaged`
 */
export function openStoredLog(files: readonly AuditedLogFile[]): StoredLog {
  const textOf = (kind: LogFile['kind']): string =>
    files
      .filter(({ file }) => file.kind === kind)
      .map(requireText)
      .join('')
  const size = newestNoteSize(files.map(({ file }) => file))
  const note = textOf('note') + textOf('cosignature')
  const policy = textOf('policy')
  const parsed = parsePolicy(policy)
  if (parsed.problem !== null) {
    const number = newestPolicyNumber(files.map(({ file }) => file))
    throw storageDamaged(`tlog/year/policy.${number} is not a valid policy: ${parsed.problem}`)
  }
  const keys = parsed.policy.logs.map(({ key }) => key)
  const opened = openCheckpoint(note, keys)
  if (opened.problem !== null) throw storageDamaged(`tlog/year/${size} cannot be served: ${opened.problem}`)
  const { problem } = evaluatePolicy(parsed.policy, opened.note)
  if (problem !== null) throw storageDamaged(`tlog/year/${size} cannot be served: ${problem}`)
  const { checkpoint, note: parsedNote } = opened
  if (checkpoint.size !== size)
    throw storageDamaged(`tlog/year/${size} is a checkpoint of ${checkpoint.size} entries`)
  return { checkpoint, note, parsedNote, policy, parsedPolicy: parsed.policy }
}

function requireText({ file, bytes }: AuditedLogFile): string {
  if (bytes === null) throw storageDamaged(`${logFilePath(file)} is missing`)
  return new TextDecoder().decode(bytes)
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
