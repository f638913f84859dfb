import { describeClockProblem, stopsPublishing } from '../domain/clock-check.ts'
import type { Clock, FeedStore, Ledger } from '../domain/ports.ts'
import { formatInstant } from '../domain/time.ts'
import type { Day } from '../domain/time.ts'
import type { ProvedLedger } from '../domain/year/chain.ts'
import { windowEnding } from '../domain/year/ledger.ts'
import { countLeftOut, describeEmptyYear } from '../domain/year/left-out.ts'
import { laterTimeInLedger, missedDays, planPublication, unconfirmedGaps } from '../domain/year/plan.ts'
import type { PublicationPlan } from '../domain/year/plan.ts'
import { examineWindow, withoutProvenance } from '../domain/year/window-check.ts'
import type { FoundWindow } from '../domain/year/window-check.ts'

/** The facts that decide whether a run may publish. */
interface RunFacts {
  ledger: Pick<Ledger, 'attempts' | 'firstAttemptDay'>
  feed: Pick<
    FeedStore,
    'clockCheck' | 'eventGroups' | 'latestDay' | 'newestNewsDay' | 'readWindow' | 'verifiedTitles'
  >
  clock: Clock
  asOfDay: Day
  /** The ledger at its last proof. */
  proved: ProvedLedger
  allowEmpty: boolean
  recordGaps: number | null
}

/** What a run has to do: the days to record as gaps, then its plan, and the window of a first attempt. */
export type Prepared = { missed: readonly Day[] } & (
  | { plan: Extract<PublicationPlan, { do: 'publish' }>; window: FoundWindow }
  | { plan: Exclude<PublicationPlan, { do: 'publish' }>; window: null }
)

/** Plans a run and checks every precondition, so that nothing is made permanent by mistake (docs/publishing.md). */
export async function prepare(run: RunFacts): Promise<Prepared | { refused: string }> {
  const { ledger, feed, clock, asOfDay, proved, recordGaps } = run
  const refused = forbidden(run)
  if (refused !== null) return { refused }
  const plan = planPublication(asOfDay, proved.entries, await ledger.attempts(asOfDay))
  if (plan.do === 'nothing') return { plan, missed: [], window: null }
  const check = await feed.clockCheck()
  if (stopsPublishing(check, clock())) {
    const { detail, mend } = describeClockProblem(check)
    return { refused: `${detail}; ${mend}` }
  }
  const missed = missedDays(proved, await ledger.firstAttemptDay(), asOfDay)
  const newestNews = plan.do === 'publish' ? await feed.newestNewsDay(asOfDay) : null
  const lastEntryAt = proved.entries.at(-1)?.recordedAt ?? null
  const unconfirmed = unconfirmedGaps({ asOfDay, missed, newestNews, now: clock(), lastEntryAt }, recordGaps)
  if (unconfirmed !== null) return { refused: unconfirmed }
  if (plan.do === 'record-gap') return { plan, missed, window: null }
  const { found, problem } = await readWindow(run)
  return problem === null ? { plan, missed, window: found } : { refused: problem }
}

const UNFINISHED_IMPORT =
  'the import of an archive is not finished; run `dash import archive` with the same folder again'

/** The reason why nothing may be published, before an attempt is counted; null when publishing is allowed. */
function forbidden({ proved, clock }: RunFacts): string | null {
  if (proved.unfinished) return UNFINISHED_IMPORT
  const now = clock()
  const ahead = laterTimeInLedger(now, proved.entries, proved.timeline)
  if (ahead === null) return null
  const times = `the clock says ${formatInstant(now)}, but the ledger already has an entry of ${formatInstant(ahead)}`
  return `${times}; correct the clock`
}

/** Reads the window of a publication, and the reason why it cannot be published; null without one. */
export async function readWindow({ feed, clock, asOfDay, allowEmpty }: RunFacts): Promise<{
  found: FoundWindow
  problem: string | null
}> {
  const window = windowEnding(asOfDay)
  const read = await feed.readWindow(window)
  const titles = await feed.verifiedTitles(withoutProvenance(read.events))
  const found = { window, ...read, titles }
  const { isEmpty, excludedCohorts, problem } = examineWindow(found, clock())
  if (isEmpty && !allowEmpty) {
    const leftOut = countLeftOut(await feed.eventGroups(window), window, excludedCohorts)
    return { found, problem: describeEmptyYear(read.observed, leftOut) }
  }
  const days = await Promise.all((problem?.rows ?? []).map((event) => feed.latestDay(event, asOfDay)))
  return { found, problem: problem?.message(days) ?? null }
}
