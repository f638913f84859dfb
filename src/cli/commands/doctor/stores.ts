import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { describeClockProblem, stopsPublishing } from '../../../domain/clock-check.ts'
import { LATE_AFTER_MS, lastDueDay } from '../../../domain/jobs.ts'
import { isFresh } from '../../../domain/models/shortlist.ts'
import type { StoredRun } from '../../../domain/models/schema.ts'
import { proveRun } from '../../../domain/models/stored-run.ts'
import type { FeedFacts, LedgerFacts, StateFacts, Inspection } from '../../../domain/inspection.ts'
import { proveBytes } from '../../../domain/year/envelope.ts'
import type { SignedLog } from '../../../domain/year/ports.ts'
import { addDays, formatInstant } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import { LOG_RECORD } from '../../../domain/year/log/check-log.ts'
import { newestNoteSize } from '../../../domain/year/log/log-history.ts'
import type { Container } from '../../container.ts'
import { isInDataDir } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { STATE_IS_CREATED_BY } from '../../job-records.ts'
import { counted } from '../../terminal.ts'
import { findingsOf, found, note, ok, orProblem, problem, warning } from './check.ts'
import type { Checks, Check, Judgement } from './check.ts'
import { SECOND_HISTORY_ADVICE, secondHistory } from '../../../jobs/sign-checkpoint.ts'

/** Older gaps are not reported. */
const RECENT_GAP_DAYS = 30

export const LEDGER_CHECKS: Checks<LedgerFacts> = {
  publications({ publications, newest, gaps }, now) {
    if (newest === null)
      return note('nothing has been published yet', 'run dash publish-year, or wait for its timer')
    const due = lastDueDay(now)
    if (newest.asOfDay >= due || gaps.some(({ asOfDay }) => asOfDay === due))
      return ok(`${counted(publications, 'publication')}, the newest as of ${newest.asOfDay}`)
    return warning(
      `the newest publication is as of ${newest.asOfDay}, not of ${due}`,
      'check the timer or the crontab; dash publish-year publishes the last complete day',
    )
  },
  gaps({ gaps }, now) {
    const since = addDays(lastDueDay(now), -RECENT_GAP_DAYS)
    const recent = gaps.filter(({ asOfDay }) => asOfDay > since)
    if (recent.length === 0) return ok(`no gap in the last ${RECENT_GAP_DAYS} days`)
    const shown = recent.map(({ asOfDay, reason }) => `${asOfDay} (${reason})`).join(', ')
    return warning(
      `gaps in the last ${RECENT_GAP_DAYS} days: ${shown}`,
      "gaps are permanent; check that day's logs to prevent another",
    )
  },
  'clock.ledger'({ recordedAt }, now) {
    if (recordedAt === null || recordedAt <= now) return []
    return problem(
      `the newest ledger entry, ${formatInstant(recordedAt)}, is later than this clock`,
      'correct the clock; nothing is published before that time',
      EXIT.failed,
    )
  },
}

export const FEED_CHECKS: Checks<FeedFacts> = {
  snapshot({ snapshotAt }, now) {
    if (snapshotAt === null)
      return note('no snapshot is stored yet', 'dash collect or dash snapshot creates one')
    const at = `the newest snapshot is of ${formatInstant(snapshotAt)}`
    const mend = 'correct the clock, or run dash snapshot --discard-later'
    if (snapshotAt > now) return problem(`${at}, later than this clock`, mend, EXIT.failed)
    return now - snapshotAt > LATE_AFTER_MS.snapshot
      ? warning(at, 'run dash collect, and check its timer')
      : ok(at)
  },
  search({ isIndexed }) {
    if (isIndexed) return ok('the search index is complete')
    return warning('searches are refused: the index is incomplete', 'run dash reindex, if none is running')
  },
  'clock.collect'({ clockCheck }, now) {
    if (!stopsPublishing(clockCheck, now)) return []
    const { detail, mend } = describeClockProblem(clockCheck)
    return problem(detail, mend, EXIT.failed)
  },
  'feed.rows'({ publicationProblem: text }) {
    if (text === null) return ok('every stored row can be published')
    // The text ends with the remedy.
    const split = text.lastIndexOf('; ')
    return problem(text.slice(0, split), text.slice(split + 2), EXIT.failed)
  },
}

export const STATE_CHECKS: Checks<StateFacts> = {
  audit({ audit }, now) {
    if (audit === null)
      return note('the archive has never been audited', 'run dash verify-archive, or wait for its timer')
    const at = formatInstant(audit.endedAt)
    const mend = 'dash verify-archive lists the damage; restore it from a backup (docs/backup.md)'
    if (audit.damage > 0) return problem(`the audit of ${at} found damage`, mend, EXIT.damaged)
    if (!audit.ok)
      return warning(`the audit of ${at} could not read everything`, 'run dash verify-archive to see why')
    return now - audit.endedAt > LATE_AFTER_MS.audit
      ? warning(`the last audit is of ${at}`, 'run dash verify-archive, and check its timer')
      : ok(`the audit of ${at} found no damage`)
  },
}

/**
 * @param run null: the built-in seed is served
 * @param chatModel null if the chat has none or is disabled; `auto` needs a recommendation
 */
export function judgeRecommendation(
  run: Pick<StoredRun, 'updatedAt'> | null,
  now: Instant,
  chatModel: string | null,
): Judgement {
  if (run === null && chatModel === 'auto')
    return warning(
      'no recommendation is stored; with DASH_CHAT_MODEL=auto the chat is off without one',
      'run dash evaluate-models',
    )
  if (run === null)
    return note(
      'no recommendation is stored; the server uses the built-in seed',
      'dash evaluate-models creates one',
    )
  const at = `the recommendation is of ${run.updatedAt}`
  return isFresh(run, now) ? ok(at) : warning(at, 'run dash evaluate-models, and check its timer')
}

/**
 * Checks the databases and the objects.
 *
 * @returns findings, and the skews of the database servers' clocks in milliseconds
 */
export async function inspectStores(container: Container): Promise<{ findings: Check[]; skews: number[] }> {
  const { config } = container
  const skews: number[] = []
  let publications = 0
  const inspectStore = <Facts>(
    store: 'ledger' | 'feed' | 'state',
    inspect: () => Promise<Inspection<Facts>>,
    checks: Checks<Facts>,
  ): Promise<Check[]> =>
    orProblem(store, async () => {
      // A missing data folder is reported by another check.
      if (isInDataDir(config[store], config) && !existsSync(config.dataDir)) return []
      const inspection = await inspect()
      const now = Date.now()
      if (inspection.now !== null) skews.push(inspection.now - now)
      const facts = inspection.facts === null ? [] : findingsOf(checks, inspection.facts, now)
      return [...judgeDatabase(store, inspection), ...facts]
    })
  const inspectLedger = async (): Promise<Inspection<LedgerFacts>> => {
    const inspection = await container.inspectLedger()
    publications = inspection.facts?.publications ?? 0
    return inspection
  }
  const ledger = await inspectStore('ledger', inspectLedger, LEDGER_CHECKS)
  const isLedgerReadable = ledger.every(({ exitCode }) => exitCode !== EXIT.storage)
  const findings = [
    ...ledger,
    ...(await inspectStore('feed', () => container.inspectFeed(), FEED_CHECKS)),
    ...(await inspectStore('state', () => container.inspectState(), STATE_CHECKS)),
    ...(await orProblem('objects', () => inspectObjects(container, publications, isLedgerReadable))),
    ...(await orProblem('log', () => inspectLog(container), LOG_REMEDY)),
  ]
  return { findings, skews }
}

function judgeDatabase(store: string, { name, exists: there, migrations }: Inspection<unknown>): Check[] {
  const { applied, known, newer } = migrations
  const createdBy = store === 'state' ? STATE_IS_CREATED_BY : 'the first command that stores data creates it'
  if (!there) return found(store, note(`${name} does not exist yet`, createdBy))
  const detail = `${applied} of ${known} migrations are applied to ${name}`
  const result = newer
    ? problem(`${name} was written by a newer release`, 'use that release or a later one', EXIT.storage)
    : applied < known
      ? note(detail, 'back it up; the next command that uses it applies the others')
      : ok(`all ${known} migrations are applied to ${name}`)
  return found(`${store}.migrations`, result)
}

const LOG_REMEDY =
  'correct the settings, or restore the key and its record (docs/signed-log.md#keeping-the-key)'

/** Checks the key of the log and its record, which the ledger must continue and the publisher must be able to write. */
async function inspectLog(container: Container): Promise<Check[]> {
  const log = await container.signedLog()
  if (log === null) return []
  const folder = dirname(container.config.log.keyFile ?? '')
  const tryRecord = async (): Promise<Check[]> => {
    await log.signer.tryWriting()
    return found('log.record', ok(`the record can be written in ${folder}`))
  }
  const remedy = `let the user of the publisher write in ${folder}; in a unit: ReadWritePaths=${folder}`
  return [
    ...(await orProblem('log', () => compareRecord(container, log), LOG_REMEDY)),
    ...(await orProblem('log.record', tryRecord, remedy)),
  ]
}

async function compareRecord(container: Container, { signer }: SignedLog): Promise<Check[]> {
  const checkpoint = await signer.lastSigned()
  const { origin, size } = checkpoint
  const rows = (await (await container.ledgerAuditor()).read())?.rows ?? []
  const other = secondHistory([{ checkpoint, where: LOG_RECORD }], rows)
  return found(
    'log',
    other === null
      ? ok(`the key of ${origin} last signed a checkpoint of size ${size}`)
      : problem(other, SECOND_HISTORY_ADVICE, EXIT.storage),
  )
}

async function inspectObjects(
  container: Container,
  publications: number,
  isLedgerReadable: boolean,
): Promise<Check[]> {
  const { store: location, storeNamed, chat } = container.config
  const chatModel = chat.disabled ? null : chat.provider.model
  const judge = (run: StoredRun | null): Check[] =>
    found('recommendation', judgeRecommendation(run, Date.now(), chatModel))
  if (location.kind === 'file' && !storeNamed && publications === 0 && !existsSync(location.path)) {
    const mend = 'the first command that stores data creates it'
    const missing = note(`${location.path} does not exist yet`, mend)
    return [...found('objects', missing), ...judge(null)]
  }
  const recommendations = await container.recommendations()
  const bytes = await recommendations.current()
  const judgeStored = async (): Promise<Check[]> => judge(bytes && proveRun(bytes))
  return [
    ...found('objects', ok('the object store responds')),
    ...(isLedgerReadable ? await orProblem('archive', () => inspectArchive(container)) : []),
    ...(await orProblem('recommendation', judgeStored)),
  ]
}

/** Proves what a server proves before it responds: the ledger, its newest head and the newest publication. */
async function inspectArchive(container: Container): Promise<Check[]> {
  const { proved } = await (await container.auditedYear()).read()
  const newest = proved.timeline.at(-1)?.manifest
  if (newest === undefined) return []
  const objects = await container.objects()
  proveBytes(newest, await objects.get(newest.sha256))
  const size = newestNoteSize(await objects.logFiles.list())
  const { length } = proved.entries
  const unsigned = warning(
    `the newest checkpoint has ${size} of ${counted(length, 'entry', 'entries')}`,
    'run dash checkpoint where the publisher runs, and set its DASH_LOG_KEY_FILE for every run',
  )
  return [
    ...found('archive', ok('the ledger, its newest head and the newest publication match')),
    ...found('log.signed', size > 0 && size < length ? unsigned : []),
  ]
}
