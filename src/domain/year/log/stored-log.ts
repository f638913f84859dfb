import { storageDamaged } from '../../refusal.ts'
import { utf8Text } from '../../text.ts'
import { logFilePath } from './check-log.ts'
import type { AuditedLogFile } from './check-log.ts'
import { forkOf, newestNoteSize, newestPolicyNumber } from './log-history.ts'
import type { LogFile } from './log-history.ts'
import { parsePolicy } from './log-policy.ts'
import type { MerkleTree } from './merkle-tree.ts'
import { openCheckpoint } from './signed-note.ts'
import type { Checkpoint } from './signed-note.ts'

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
 * Verifies the files that {@link newestLogFiles} selected: a key of the policy must have signed the note.
 *
 * @throws Refusal `storage_damaged`
 */
export function openStoredLog(files: readonly AuditedLogFile[]): StoredLog {
  const textOf = (kind: LogFile['kind']): string | undefined =>
    files.filter(({ file }) => file.kind === kind).map(requireText)[0]
  const size = newestNoteSize(files.map(({ file }) => file))
  const policy = textOf('policy')
  if (policy === undefined)
    throw storageDamaged(
      `tlog/year/${size} cannot be served: no policy is stored; run dash checkpoint with the key`,
    )
  const parsed = parsePolicy(policy)
  if (parsed.problem !== null) {
    const number = newestPolicyNumber(files.map(({ file }) => file))
    throw storageDamaged(`tlog/year/policy.${number} is not a valid policy: ${parsed.problem}`)
  }
  const note = textOf('note') ?? ''
  const opened = openCheckpoint(note, parsed.keys)
  if (opened.problem !== null) throw storageDamaged(`tlog/year/${size} cannot be served: ${opened.problem}`)
  const { checkpoint } = opened
  if (checkpoint.size !== size)
    throw storageDamaged(`tlog/year/${size} is a checkpoint of ${checkpoint.size} entries`)
  return { checkpoint, note, policy }
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
