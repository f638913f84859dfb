import type { Clock, Objects } from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import { newestLogFiles, openStoredLog, requireContinued } from '../../domain/year/log/stored-log.ts'
import type { StoredLog } from '../../domain/year/log/stored-log.ts'
import { singleFlight } from '../single-flight.ts'
import type { LedgerLog, ProvedPublications } from './proved-publications.ts'

/** Maximum age of the cached listing of notes; a checkpoint is served at most this long after it is stored. */
const LISTING_MAX_AGE_MS = 2_000

/** The log to serve: the newest stored note and the proved ledger that continues it. */
export interface ServedLog extends LedgerLog, Pick<StoredLog, 'checkpoint' | 'note' | 'policy'> {}

interface CachedLog extends StoredLog {
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
  let stored: CachedLog | null = null
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
    if (newest === null || size < largest)
      throw storageDamaged(
        `the newest stored checkpoint has ${size} entries, but one of ${largest} entries was served before`,
      )
    requireContinued(log.tree(), newest.checkpoint)
    largest = size
    return { ...log, checkpoint: newest.checkpoint, note: newest.note, policy: newest.policy }
  }
}

async function readNewest(logFiles: Pick<Objects['logFiles'], 'list' | 'get'>): Promise<StoredLog | null> {
  const files = newestLogFiles(await logFiles.list())
  if (files === null) return null
  return openStoredLog(
    await Promise.all(files.map(async (file) => ({ file, bytes: await logFiles.get(file) }))),
  )
}
