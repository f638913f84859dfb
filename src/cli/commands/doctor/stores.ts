import type { FeedFacts, HeldLease, LedgerFacts, StateFacts, Survey } from '../../../domain/survey.ts'
import { MAX_FRESH_HOURS } from '../../../domain/models/shortlist.ts'
import { addDays, DAY_MS, formatInstant } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import { lastCompleteDay } from '../../../domain/year/ledger.ts'
import { EXIT } from '../../exit-codes.ts'
import { STATE_IS_CREATED_BY } from '../../job-records.ts'
import { note, ok, problem, warning } from './finding.ts'
import type { Finding } from './finding.ts'

const HOUR_MS = 3_600_000

/** After midnight UTC a day may take until then to be published, by the timers that are set up. */
const PUBLISHED_BY_MS = 2 * HOUR_MS

/** Snapshots, audits: the time between two by the timers that are set up, and some more. */
const SNAPSHOT_OLD_MS = 6 * HOUR_MS
const AUDIT_OLD_MS = 8 * DAY_MS

/** Gaps before that are known. */
const RECENT_GAP_DAYS = 30

/** How a database was found. */
export function judgeDatabase(store: string, { name, there, migrations }: Survey<unknown>): Finding {
  const { applied, known, newer } = migrations
  if (!there)
    return note(
      store,
      `${name} is not there yet`,
      store === 'state' ? STATE_IS_CREATED_BY : 'the first command that stores something makes it',
    )
  const check = `${store}.migrations`
  if (newer) {
    const detail = `${name} was written by a newer release`
    return problem(check, detail, 'use that release, or a later one', EXIT.storage)
  }
  if (applied < known) {
    const detail = `${applied} of ${known} migrations are applied to ${name}`
    return note(check, detail, 'the next command that uses it applies the others; back it up before')
  }
  return ok(check, `all ${known} migrations are applied to ${name}`)
}

/** What a ledger tells of the publications, the clock and the lease. */
export function judgeLedger(
  { publications, newest, recordedAt, gaps, lease }: LedgerFacts,
  now: Instant,
  isDead: (process: string) => boolean,
): Finding[] {
  const findings: Finding[] = []
  const due = lastCompleteDay(now - PUBLISHED_BY_MS)
  const gapDue = gaps.find(({ asOfDay }) => asOfDay === due)
  const seen = newest ? `, the newest as of ${newest.asOfDay}` : ''
  if (newest === null) {
    findings.push(note('publications', 'nothing has been published yet', 'dash publish-year, and its timer'))
  } else if (newest.asOfDay < due && !gapDue) {
    const detail = `the newest publication is as of ${newest.asOfDay}, not of ${due}`
    findings.push(
      warning(
        'publications',
        detail,
        'look at the timer or the crontab; dash publish-year publishes the last complete day',
      ),
    )
  } else findings.push(ok('publications', `${publications} publications${seen}`))
  const recent = gaps.filter(({ asOfDay }) => asOfDay > addDays(due, -RECENT_GAP_DAYS))
  if (recent.length > 0) {
    const shown = recent.map(({ asOfDay, reason }) => `${asOfDay} (${reason})`).join(', ')
    const mend = 'a gap stays; look at the logs of that day, so that it remains the last'
    findings.push(warning('gaps', `gaps in the last ${RECENT_GAP_DAYS} days: ${shown}`, mend))
  } else findings.push(ok('gaps', `no gap in the last ${RECENT_GAP_DAYS} days`))
  if (recordedAt !== null && recordedAt > now) {
    const detail = `the ledger has an entry of ${formatInstant(recordedAt)}, later than this clock`
    findings.push(
      problem(
        'clock.ledger',
        detail,
        'set the clock right; nothing is published before that time',
        EXIT.failed,
      ),
    )
  }
  return [...findings, ...judgeLease('publisher.lease', lease, now, isDead)]
}

/** How old what the feed serves is. */
export function judgeFeed({ snapshotAt }: Pick<FeedFacts, 'snapshotAt'>, now: Instant): Finding {
  const check = 'snapshot'
  if (snapshotAt === null)
    return note(check, 'no snapshot was taken yet', 'dash collect takes one, dash snapshot too')
  const at = `the newest snapshot is of ${formatInstant(snapshotAt)}`
  if (snapshotAt > now)
    return problem(
      check,
      `${at}, later than this clock`,
      'set the clock right, or run dash snapshot --discard-later',
      EXIT.failed,
    )
  return now - snapshotAt > SNAPSHOT_OLD_MS
    ? warning(check, at, 'run dash collect, and look at its timer')
    : ok(check, at)
}

/** Whether the stored rows can be published. */
export function judgeRows({ publicationProblem }: Pick<FeedFacts, 'publicationProblem'>): Finding {
  if (publicationProblem === null) return ok('feed.rows', 'no stored row keeps the Year from being published')
  // The text ends with what to do.
  const split = publicationProblem.lastIndexOf('; ')
  return problem(
    'feed.rows',
    publicationProblem.slice(0, split),
    publicationProblem.slice(split + 2),
    EXIT.failed,
  )
}

/** What the state tells of audits and of the evaluation's lease. */
export function judgeState(
  { audit, lease }: StateFacts,
  now: Instant,
  isDead: (process: string) => boolean,
): Finding[] {
  return [judgeAudit(audit, now), ...judgeLease('evaluation.lease', lease, now, isDead)]
}

function judgeAudit(audit: StateFacts['audit'], now: Instant): Finding {
  const check = 'audit'
  if (audit === null)
    return note(check, 'the archive was never audited', 'dash verify-archive, and its timer')
  const at = formatInstant(audit.endedAt)
  if (!audit.ok)
    return problem(
      check,
      `the audit of ${at} found damage`,
      'dash verify-archive tells what; restore it from a backup (docs/backup.md)',
      EXIT.damaged,
    )
  if (!audit.complete)
    return warning(
      check,
      `the audit of ${at} could not read everything`,
      'run dash verify-archive, which tells why',
    )
  return now - audit.endedAt > AUDIT_OLD_MS
    ? warning(check, `the last audit is of ${at}`, 'run dash verify-archive, and look at its timer')
    : ok(check, `the audit of ${at} found no damage`)
}

function judgeLease(
  check: string,
  lease: HeldLease | null,
  now: Instant,
  isDead: (process: string) => boolean,
): Finding[] {
  if (lease === null) return []
  const { holder, process, takenAt, expiresAt } = lease
  const since = `${holder} since ${formatInstant(takenAt)}`
  if (process !== null && isDead(process))
    return [note(check, `${since}, which has died: its run was cut`, 'the next run takes over at once')]
  if (expiresAt <= now)
    return [note(check, `${since}, which let it run out: its run was cut`, 'the next run takes over at once')]
  return [ok(check, `held by ${since}, until ${formatInstant(expiresAt)} at the latest`)]
}

/** @param updatedAt null: the built-in seed is served */
export function judgeRecommendation(updatedAt: Instant | null, now: Instant): Finding {
  const check = 'recommendation'
  if (updatedAt === null)
    return note(
      check,
      'no recommendation is stored: the built-in seed is served',
      'dash evaluate-models makes one',
    )
  const at = `the recommendation is of ${formatInstant(updatedAt)}`
  return now - updatedAt <= MAX_FRESH_HOURS * HOUR_MS
    ? ok(check, at)
    : warning(check, at, 'run dash evaluate-models, and look at its timer')
}
