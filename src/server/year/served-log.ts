import type { ChangeToken, Clock, Objects } from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import { newestPolicyNumber } from '../../domain/year/log/log-history.ts'
import type { LogFile } from '../../domain/year/log/log-history.ts'
import { newestLogFiles, openStoredLog, requireContinued } from '../../domain/year/log/stored-log.ts'
import type { StoredLog } from '../../domain/year/log/stored-log.ts'
import { singleFlight } from '../single-flight.ts'
import type { LedgerLog, ProvedPublications } from './proved-publications.ts'

/** Maximum age of the last look at the stored files; a checkpoint is served at most this long after it is stored. */
const LOOK_MAX_AGE_MS = 2_000

/** The log to serve: the newest stored note and the proved ledger that continues it. */
export interface ServedLog extends LedgerLog, StoredLog {}

/** The newest stored log and its files; null without one. */
type Newest = { log: StoredLog; files: readonly LogFile[] } | null

/** The newest stored log, and the change token under which it stays the newest. */
interface Look {
  newest: Newest
  changeToken: ChangeToken
  /** Size of the ledger before all files were listed: the publisher signs no smaller tree later. */
  ledgerSize: number
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

  // A listing takes longer with every checkpoint, so all files are listed only after a change.
  const look = singleFlight(async (): Promise<Look> => {
    const at = clock()
    const before = await logFiles.changeToken(last?.newest?.files ?? [])
    if (last !== null && before !== null && before === last.changeToken) return (last = { ...last, at })
    const listedFrom = await logFiles.changeToken([])
    // Stores without change tokens tell by what may follow the newest files.
    const ledgerSize = listedFrom === null ? (await publications.log()).rows.length : 0
    const listed = last?.newest && listedFrom === null ? await listAfter(logFiles, last, ledgerSize) : null
    const newest = await readNewest(logFiles, listed ?? (await logFiles.list()))
    const changeToken = await logFiles.changeToken(newest?.files ?? [])
    const isStable = listedFrom !== null && listedFrom === (await logFiles.changeToken([]))
    return (last = { newest, changeToken: isStable ? changeToken : null, ledgerSize, at })
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
    requireContinued(log.tree(), newest.log.checkpoint)
    largest = size
    return { ...log, ...newest.log }
  }
}

type ReadableLogFiles = Pick<Objects['logFiles'], 'list' | 'get' | 'changeToken'>

/**
 * Lists the files that can be the newest after a look, at a cost that does not grow with the log: the note of the whole
 * ledger, else the last one, and the policies after the last one.
 *
 * @returns null if all files must be listed, because the ledger grew without a note
 */
async function listAfter(
  logFiles: ReadableLogFiles,
  { newest, ledgerSize: before }: Look,
  ledgerSize: number,
): Promise<LogFile[] | null> {
  const known = newest?.files ?? []
  const note: LogFile = { kind: 'note', size: ledgerSize }
  const isSigned = (await logFiles.get(note)) !== null
  if (!isSigned && ledgerSize !== before) return null
  const files = isSigned ? [...known, note] : [...known]
  for (let number = newestPolicyNumber(known) + 1; ; number += 1) {
    const policy: LogFile = { kind: 'policy', number }
    if ((await logFiles.get(policy)) === null) return files
    files.push(policy)
  }
}

async function readNewest(logFiles: ReadableLogFiles, listed: readonly LogFile[]): Promise<Newest> {
  const files = newestLogFiles(listed)
  if (files === null) return null
  const read = files.map(async (file) => ({ file, bytes: await logFiles.get(file) }))
  return { log: openStoredLog(await Promise.all(read)), files }
}
