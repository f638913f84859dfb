import { existsSync } from 'node:fs'
import type { HeldLease } from '../../../domain/lease.ts'
import { MAX_FRESH_HOURS } from '../../../domain/models/shortlist.ts'
import { proveRun } from '../../../domain/models/stored-run.ts'
import type { FeedFacts, LedgerFacts, StateFacts, Inspection } from '../../../domain/inspection.ts'
import { addDays, DAY_MS, formatInstant, parseInstant } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import { lastCompleteDay } from '../../../domain/year/ledger.ts'
import type { Container } from '../../container.ts'
import { isInDataDir } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { STATE_IS_CREATED_BY } from '../../job-records.ts'
import { isDeadProcess } from '../../process-identity.ts'
import { findingsOf, found, note, ok, orProblem, problem, warning } from './check.ts'
import type { Checks, Check, Judgement } from './check.ts'

const HOUR_MS = 3_600_000

/** After midnight UTC a day may take until then to be published, by the timers that are set up. */
const PUBLISHED_BY_MS = 2 * HOUR_MS

/** The time between two snapshots and two audits by the timers that are set up, and some more. */
const SNAPSHOT_OLD_MS = 6 * HOUR_MS
const AUDIT_OLD_MS = 8 * DAY_MS

/** Gaps before that are known. */
const RECENT_GAP_DAYS = 30

const dueDay = (now: Instant): string => lastCompleteDay(now - PUBLISHED_BY_MS)

export const LEDGER_CHECKS: Checks<LedgerFacts> = {
  publications({ publications, newest, gaps }, now) {
    if (newest === null) return note('nothing has been published yet', 'dash publish-year, and its timer')
    const due = dueDay(now)
    if (newest.asOfDay >= due || gaps.some(({ asOfDay }) => asOfDay === due))
      return ok(`${publications} publications, the newest as of ${newest.asOfDay}`)
    return warning(
      `the newest publication is as of ${newest.asOfDay}, not of ${due}`,
      'look at the timer or the crontab; dash publish-year publishes the last complete day',
    )
  },
  gaps({ gaps }, now) {
    const since = addDays(dueDay(now), -RECENT_GAP_DAYS)
    const recent = gaps.filter(({ asOfDay }) => asOfDay > since)
    if (recent.length === 0) return ok(`no gap in the last ${RECENT_GAP_DAYS} days`)
    const shown = recent.map(({ asOfDay, reason }) => `${asOfDay} (${reason})`).join(', ')
    return warning(
      `gaps in the last ${RECENT_GAP_DAYS} days: ${shown}`,
      'a gap stays; look at the logs of that day, so that it remains the last',
    )
  },
  'clock.ledger'({ recordedAt }, now) {
    if (recordedAt === null || recordedAt <= now) return []
    return problem(
      `the ledger has an entry of ${formatInstant(recordedAt)}, later than this clock`,
      'set the clock right; nothing is published before that time',
      EXIT.failed,
    )
  },
  'publisher.lease': ({ lease }, now) => judgeLease(lease, now),
}

export const FEED_CHECKS: Checks<FeedFacts> = {
  snapshot({ snapshotAt }, now) {
    if (snapshotAt === null)
      return note('no snapshot was taken yet', 'dash collect takes one, dash snapshot too')
    const at = `the newest snapshot is of ${formatInstant(snapshotAt)}`
    const mend = 'set the clock right, or run dash snapshot --discard-later'
    if (snapshotAt > now) return problem(`${at}, later than this clock`, mend, EXIT.failed)
    return now - snapshotAt > SNAPSHOT_OLD_MS
      ? warning(at, 'run dash collect, and look at its timer')
      : ok(at)
  },
  'feed.rows'({ publicationProblem: text }) {
    if (text === null) return ok('no stored row keeps the Year from being published')
    // The text ends with what to do.
    const split = text.lastIndexOf('; ')
    return problem(text.slice(0, split), text.slice(split + 2), EXIT.failed)
  },
}

export const STATE_CHECKS: Checks<StateFacts> = {
  audit({ audit }, now) {
    if (audit === null) return note('the archive was never audited', 'dash verify-archive, and its timer')
    const at = formatInstant(audit.endedAt)
    const mend = 'dash verify-archive tells what; restore it from a backup (docs/backup.md)'
    if (!audit.ok) return problem(`the audit of ${at} found damage`, mend, EXIT.damaged)
    if (!audit.complete)
      return warning(
        `the audit of ${at} could not read everything`,
        'run dash verify-archive, which tells why',
      )
    return now - audit.endedAt > AUDIT_OLD_MS
      ? warning(`the last audit is of ${at}`, 'run dash verify-archive, and look at its timer')
      : ok(`the audit of ${at} found no damage`)
  },
  'evaluation.lease': ({ lease }, now) => judgeLease(lease, now),
}

function judgeLease(lease: HeldLease | null, now: Instant): Judgement[] {
  if (lease === null) return []
  const { holder, process, takenAt, expiresAt } = lease
  const since = `${holder} since ${formatInstant(takenAt)}`
  const next = 'the next run takes over at once'
  if (process !== null && isDeadProcess(process))
    return [note(`${since}, which has died: its run was cut`, next)]
  if (expiresAt <= now) return [note(`${since}, which let it run out: its run was cut`, next)]
  return [ok(`held by ${since}, until ${formatInstant(expiresAt)} at the latest`)]
}

/** @param updatedAt null: the built-in seed is served */
export function judgeRecommendation(updatedAt: Instant | null, now: Instant): Judgement {
  if (updatedAt === null)
    return note('no recommendation is stored: the built-in seed is served', 'dash evaluate-models makes one')
  const at = `the recommendation is of ${formatInstant(updatedAt)}`
  return now - updatedAt <= MAX_FRESH_HOURS * HOUR_MS
    ? ok(at)
    : warning(at, 'run dash evaluate-models, and look at its timer')
}

/** What the databases and the objects tell, and how far the clocks of the database servers are ahead. */
export async function inspectStores(container: Container): Promise<{ findings: Check[]; skews: number[] }> {
  const { config } = container
  const skews: number[] = []
  let publications = 0
  const look = <Facts>(
    store: 'ledger' | 'feed' | 'state',
    inspect: () => Promise<Inspection<Facts>>,
    checks: Checks<Facts>,
  ): Promise<Check[]> =>
    orProblem(store, async () => {
      // A missing data folder is a finding of its own.
      if (isInDataDir(config[store], config) && !existsSync(config.dataDir)) return []
      const surveyed = await inspect()
      const now = Date.now()
      if (surveyed.now !== null) skews.push(surveyed.now - now)
      const facts = surveyed.facts === null ? [] : findingsOf(checks, surveyed.facts, now)
      return [...judgeDatabase(store, surveyed), ...facts]
    })
  const surveyLedger = async (): Promise<Inspection<LedgerFacts>> => {
    const surveyed = await container.inspectLedger()
    publications = surveyed.facts?.publications ?? 0
    return surveyed
  }
  const findings = [
    ...(await look('ledger', surveyLedger, LEDGER_CHECKS)),
    ...(await look('feed', () => container.inspectFeed(), FEED_CHECKS)),
    ...(await look('state', () => container.inspectState(), STATE_CHECKS)),
    ...(await orProblem('objects', () => inspectObjects(container, publications))),
  ]
  return { findings, skews }
}

function judgeDatabase(store: string, { name, exists: there, migrations }: Inspection<unknown>): Check[] {
  const { applied, known, newer } = migrations
  const made = store === 'state' ? STATE_IS_CREATED_BY : 'the first command that stores something makes it'
  if (!there) return found(store, note(`${name} is not there yet`, made))
  const detail = `${applied} of ${known} migrations are applied to ${name}`
  const judged = newer
    ? problem(`${name} was written by a newer release`, 'use that release, or a later one', EXIT.storage)
    : applied < known
      ? note(detail, 'the next command that uses it applies the others; back it up before')
      : ok(`all ${known} migrations are applied to ${name}`)
  return found(`${store}.migrations`, judged)
}

/** @param publications in the ledger */
async function inspectObjects(container: Container, publications: number): Promise<Check[]> {
  const { store: location, storeNamed } = container.config
  if (location.kind === 'file' && !storeNamed && publications === 0 && !existsSync(location.path)) {
    const mend = 'the first command that stores something makes it'
    return found('objects', note(`${location.path} is not there yet`, mend))
  }
  const store = await container.recommendations()
  await store.ping()
  const bytes = await store.current()
  const updatedAt = bytes === null ? null : parseInstant(proveRun(bytes).updatedAt)
  return [
    ...found('objects', ok('the object store answers')),
    ...found('recommendation', judgeRecommendation(updatedAt, Date.now())),
  ]
}
