import type { Clock, Objects } from '../../domain/ports.ts'
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

/** Maximum age of the cached listing of notes; a checkpoint is served at most this long after it is stored. */
const LISTING_MAX_AGE_MS = 2_000

/** The log to serve: the newest stored note and the proved ledger that continues it. */
export interface ServedLog extends LedgerLog {
  checkpoint: Checkpoint
  /** The note with the newest cosignature of each witness. */
  note: string
  policy: string
}

interface StoredLog extends Pick<ServedLog, 'checkpoint' | 'note' | 'policy'> {
  readAt: number
}

/**
 * Returns a reader of the log to serve, whose result is null while no checkpoint is signed. A note is served only if a
 * key of the stored policy signed it, the proved ledger continues it, and no larger one was served before; otherwise
 * the reader throws Refusal `storage_damaged`.
 */
export function servedLog(
  logFiles: Pick<Objects['logFiles'], 'list' | 'get'>,
  publications: Pick<ProvedPublications, 'log'>,
  clock: Clock,
): () => Promise<ServedLog | null> {
  let stored: StoredLog | null = null
  let largest = 0

  const read = singleFlight(async () => {
    const readAt = clock()
    const found = await readNewest(logFiles)
    stored = found && { ...found, readAt }
    return stored
  })

  return async () => {
    const isFresh = stored !== null && Math.abs(clock() - stored.readAt) < LISTING_MAX_AGE_MS
    // The note is read before the ledger: entries published in between are then in the ledger and not in the note.
    const newest = isFresh ? stored : await read()
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

async function readNewest(
  logFiles: Pick<Objects['logFiles'], 'list' | 'get'>,
): Promise<Omit<StoredLog, 'readAt'> | null> {
  const files = await logFiles.list()
  const size = newestNoteSize(files)
  const number = newestPolicyNumber(files)
  if (size === 0) return null
  const textOf = async (file: LogFile): Promise<string> => {
    const bytes = await logFiles.get(file)
    if (bytes === null) throw storageDamaged(`tlog/year/${logFileName(file)} is missing`)
    return new TextDecoder().decode(bytes)
  }
  const lines = await Promise.all(newestCosignatures(files, size).map(textOf))
  const note = (await textOf({ kind: 'note', size })) + lines.join('')
  const policy = await textOf({ kind: 'policy', number })
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
  return { checkpoint: opened.checkpoint, note, policy }
}
