import { describeClockProblem, stopsPublishing } from '../domain/clock-check.ts'
import { saveKey } from '../domain/feed/source.ts'
import type { Clock, FeedStore } from '../domain/ports.ts'
import type { TitleSource, Ledger } from '../domain/year/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { formatInstant } from '../domain/time.ts'
import type { Day } from '../domain/time.ts'
import type { ProvedLedger } from '../domain/year/chain.ts'
import { windowEnding } from '../domain/year/ledger.ts'
import { countLeftOut, describeEmptyYear } from '../domain/year/left-out.ts'
import { laterTimeInLedger, missedDays, planPublication, unconfirmedGaps } from '../domain/year/plan.ts'
import type { PublicationPlan } from '../domain/year/plan.ts'
import { rankYear } from '../domain/year/rank.ts'
import type { RankedYear, VerifiedTitle, YearEvent } from '../domain/year/rank.ts'
import { examineWindow, withoutProvenance } from '../domain/year/window-check.ts'
import type { ExaminedWindow, FoundWindow } from '../domain/year/window-check.ts'
import { concurrently } from './concurrently.ts'

/** The facts that decide whether a run may publish. */
interface RunFacts {
  ledger: Pick<Ledger, 'attempts'>
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

/** A window without a problem, and its seal if every title is verified. */
export type ReadyWindow = FoundWindow & Pick<ExaminedWindow, 'seal'>

/** What a run has to do: the days to record as gaps, then its plan, and the window of a first attempt. */
export type Prepared = { missed: readonly Day[] } & (
  | { plan: Extract<PublicationPlan, { do: 'publish' }>; window: ReadyWindow }
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
  const [firstAttempt] = await ledger.attempts()
  const missed = missedDays(proved, firstAttempt?.asOfDay ?? null, asOfDay)
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
  found: ReadyWindow
  problem: string | null
}> {
  const window = windowEnding(asOfDay)
  const read = await feed.readWindow(window)
  const titles = await feed.verifiedTitles(withoutProvenance(read.events))
  const stored = { window, ...read, titles }
  const { isEmpty, excludedCohorts, problem, seal } = examineWindow(stored, clock())
  const found = { ...stored, seal }
  if (isEmpty && !allowEmpty) {
    const leftOut = countLeftOut(await feed.eventGroups(window), window, excludedCohorts)
    return { found, problem: describeEmptyYear(read.observed, leftOut) }
  }
  const days = await Promise.all((problem?.rows ?? []).map((event) => feed.latestDay(event, asOfDay)))
  return { found, problem: problem?.message(days) ?? null }
}

/** Timeout of all titles of one ranking together, in milliseconds. */
const TITLES_TIMEOUT_MS = 300_000

/** Concurrent requests per source. */
const PER_SOURCE = 4

interface RankingRun {
  feed: Pick<FeedStore, 'saveVerifiedTitle'>
  titles: TitleSource
  clock: Clock
  signal: AbortSignal
  dryRun: boolean
}

/**
 * Ranks a window, fetching every unverified title that the ranking needs from its owning source (docs/ranking.md, rule
 * 7). Each title is stored at once, except in a dry run, so that none is fetched twice.
 *
 * @param stored stored verified titles of the events, by save key
 * @throws Refusal `source_unavailable` or `title_not_vouched`: the first one ends the ranking
 */
export async function rankWithTitles(
  { feed, titles, clock, signal, dryRun }: RankingRun,
  events: readonly YearEvent[],
  stored: ReadonlyMap<string, VerifiedTitle>,
): Promise<RankedYear> {
  const known = new Map(stored)
  const deadline = clock() + TITLES_TIMEOUT_MS
  const fetchTitle = async (event: YearEvent, combinedSignal: AbortSignal): Promise<void> => {
    if (clock() > deadline)
      throw new Refusal(
        'source_unavailable',
        `the requests for titles timed out after ${TITLES_TIMEOUT_MS} ms`,
      )
    const title = await titles.title(event, combinedSignal)
    if (!dryRun) await feed.saveVerifiedTitle(event.source, event.sourceId, title, clock())
    known.set(saveKey(event.source, event.sourceId), title)
  }
  for (;;) {
    const outcome = rankYear(events, known)
    if (outcome.do === 'ranked') return outcome.year
    const sources = new Set(outcome.events.map(({ source }) => source))
    await concurrently(sources, Infinity, signal, (source, combinedSignal) =>
      concurrently(
        outcome.events.filter((event) => event.source === source),
        PER_SOURCE,
        combinedSignal,
        fetchTitle,
      ),
    )
  }
}
