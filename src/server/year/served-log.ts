import type { ChangeToken, Clock, Objects } from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import {
  forkOf,
  logFileName,
  newestCosignatures,
  newestNoteSize,
  newestPolicyNumber,
} from '../../domain/year/log/log-history.ts'
import type { LogFile } from '../../domain/year/log/log-history.ts'
import { evaluatePolicy, parsePolicy } from '../../domain/year/log/log-policy.ts'
import { openCheckpoint } from '../../domain/year/log/signed-note.ts'
import type { Checkpoint } from '../../domain/year/log/signed-note.ts'
import { singleFlight } from '../single-flight.ts'
import type { LedgerLog, ProvedPublications } from './proved-publications.ts'

/** Maximum age of the last look at the stored files; a checkpoint is served at most this long after it is stored. */
const LOOK_MAX_AGE_MS = 2_000

/** The log to serve: the newest stored note and the proved ledger that continues it. */
export interface ServedLog extends LedgerLog {
  checkpoint: Checkpoint
  /** The note with the newest cosignature of each witness. */
  note: string
  policy: string
}

interface StoredLog extends Pick<ServedLog, 'checkpoint' | 'note' | 'policy'> {
  /** Files that it was read from. */
  files: readonly LogFile[]
}

/** The newest stored log, null without one, and the change token under which it stays the newest. */
interface Look {
  newest: StoredLog | null
  changeToken: ChangeToken
  at: number
}

/**
 * Returns a reader of the log to serve, whose result is null while no checkpoint is signed. A note is served only if a
 * key of the stored policy signed it, the proved ledger continues it, and no larger one was served before; otherwise
 * the reader throws Refusal `storage_damaged`.
 */
export function servedLog(
  logFiles: ReadableLogFiles,
  publications: Pick<ProvedPublications, 'log'>,
  clock: Clock,
): () => Promise<ServedLog | null> {
  let last: Look | null = null
  let largest = 0

  // A listing takes longer with every checkpoint, so it is repeated only after a change.
  const look = singleFlight(async (): Promise<Look> => {
    const at = clock()
    const before = await logFiles.changeToken(last?.newest?.files ?? [])
    if (last !== null && before !== null && before === last.changeToken) return (last = { ...last, at })
    const listedFrom = await logFiles.changeToken([])
    const newest = await readNewest(logFiles)
    const changeToken = await logFiles.changeToken(newest?.files ?? [])
    const isStable = listedFrom !== null && listedFrom === (await logFiles.changeToken([]))
    return (last = { newest, changeToken: isStable ? changeToken : null, at })
  })

  return async () => {
    const isFresh = last !== null && Math.abs(clock() - last.at) < LOOK_MAX_AGE_MS
    // The note is read before the ledger: entries published in between are then in the ledger and not in the note.
    const { newest } = last !== null && isFresh ? last : await look()
    if (newest === null && largest === 0) return null
    const log = await publications.log()
    const size = newest?.checkpoint.size ?? 0
    const fork = newest && forkOf(log.tree(), newest.checkpoint)
    if (newest === null || size < largest)
      throw storageDamaged(
        `the newest stored checkpoint has ${size} entries, but one of ${largest} entries was served before`,
      )
    if (fork !== null)
      throw storageDamaged(`the ledger does not continue the checkpoint tlog/year/${size}: ${fork}`)
    largest = size
    return { ...log, checkpoint: newest.checkpoint, note: newest.note, policy: newest.policy }
  }
}

type ReadableLogFiles = Pick<Objects['logFiles'], 'list' | 'get' | 'changeToken'>

async function readNewest(logFiles: ReadableLogFiles): Promise<StoredLog | null> {
  const files = await logFiles.list()
  const size = newestNoteSize(files)
  const number = newestPolicyNumber(files)
  if (size === 0) return null
  const textOf = async (file: LogFile): Promise<string> => {
    const bytes = await logFiles.get(file)
    if (bytes === null) throw storageDamaged(`tlog/year/${logFileName(file)} is missing`)
    return new TextDecoder().decode(bytes)
  }
  const noteFile: LogFile = { kind: 'note', size }
  const policyFile: LogFile = { kind: 'policy', number }
  const cosignatures = newestCosignatures(files, size)
  const lines = await Promise.all(cosignatures.map(textOf))
  const note = (await textOf(noteFile)) + lines.join('')
  const policy = await textOf(policyFile)
  const parsed = parsePolicy(policy)
  if (parsed.problem !== null)
    throw storageDamaged(`tlog/year/policy.${number} is not a valid policy: ${parsed.problem}`)
  const keys = parsed.policy.logs.map(({ key }) => key)
  const opened = openCheckpoint(note, keys)
  if (opened.problem !== null) throw storageDamaged(`tlog/year/${size} cannot be served: ${opened.problem}`)
  const { problem } = evaluatePolicy(parsed.policy, opened.note)
  if (problem !== null) throw storageDamaged(`tlog/year/${size} cannot be served: ${problem}`)
  if (opened.checkpoint.size !== size)
    throw storageDamaged(`tlog/year/${size} is a checkpoint of ${opened.checkpoint.size} entries`)
  return { checkpoint: opened.checkpoint, note, policy, files: [noteFile, ...cosignatures, policyFile] }
}
