import type { ChangeToken, Clock, Objects } from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import type { LogFile } from '../../domain/year/log/log-history.ts'
import { newestLogFiles, openStoredLog, requireContinued } from '../../domain/year/log/stored-log.ts'
import type { StoredLog } from '../../domain/year/log/stored-log.ts'
import { singleFlight } from '../single-flight.ts'
import type { LedgerLog, ProvedPublications } from './proved-publications.ts'

/** Maximum age of the last look at the stored files; a checkpoint is served at most this long after it is stored. */
const LOOK_MAX_AGE_MS = 2_000

/** The log to serve: the newest stored note and the proved ledger that continues it. */
export interface ServedLog extends LedgerLog, Pick<StoredLog, 'checkpoint' | 'note' | 'policy'> {}

/** The newest stored log, null without one, and the change token under which it stays the newest. */
interface Look {
  newest: { log: StoredLog; files: readonly LogFile[] } | null
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
    const size = newest?.log.checkpoint.size ?? 0
    if (newest === null || size < largest)
      throw storageDamaged(
        `the newest stored checkpoint has ${size} entries, but one of ${largest} entries was served before`,
      )
    const { checkpoint, note, policy } = newest.log
    requireContinued(log.tree(), checkpoint)
    largest = size
    return { ...log, checkpoint, note, policy }
  }
}

type ReadableLogFiles = Pick<Objects['logFiles'], 'list' | 'get' | 'changeToken'>

async function readNewest(logFiles: ReadableLogFiles): Promise<Look['newest']> {
  const files = newestLogFiles(await logFiles.list())
  if (files === null) return null
  const read = files.map(async (file) => ({ file, bytes: await logFiles.get(file) }))
  return { log: openStoredLog(await Promise.all(read)), files }
}
