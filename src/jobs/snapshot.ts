import { CLOCK_TOLERANCE_MS } from '../domain/clock-check.ts'
import { listedEvents } from '../domain/feed/columns.ts'
import type { LiveFeed } from '../domain/feed/live-items.ts'
import { LIVE_SORTS, rankLivePeriods } from '../domain/feed/live-sort.ts'
import type { LiveSort } from '../domain/feed/live-sort.ts'
import { parseLiveFeed, proveFeed, sealSnapshot } from '../domain/feed/snapshot.ts'
import type { Clock, FeedStore } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { formatInstant } from '../domain/time.ts'
import type { Instant } from '../domain/time.ts'

interface ServedSnapshot {
  job: 'snapshot'
  /** The served snapshot and its time. */
  snapshotId: string
  generatedAt: string
  durationMs: number
}

/** A run whose snapshot is served. */
export interface TakenSnapshot extends ServedSnapshot {
  outcome: 'taken'
  /** Number of ranked events of the last 30 days. */
  events: number
  /** Number of items in each list of each sort. */
  items: Record<LiveSort, Record<string, number>>
  byteSize: Record<LiveSort, number>
  /** Number of removed snapshots. */
  removed: number
}

/**
 * The JSON result of `dash snapshot` (docs/operations.md); `superseded` stored nothing, because another snapshot was
 * later.
 */
export type SnapshotReport = TakenSnapshot | (ServedSnapshot & { outcome: 'superseded' })

export interface RankPeriodsPorts {
  feed: Pick<FeedStore, 'liveEvents' | 'details' | 'saveSnapshot' | 'newestSnapshot' | 'snapshotFeed'>
  clock: Clock
}

export interface RankPeriodsOptions {
  /** Ends the run before it stores anything. */
  signal: AbortSignal
  /** True to remove snapshots that a wrong clock dated after this run. */
  discardLater: boolean
}

/** Refusals of {@link rankPeriods}; `discardLater` resolves the first two. */
const RANK_PERIODS_REFUSALS = ['clock_behind', 'snapshot_damaged', 'snapshot_too_large'] as const
type RankPeriodsRefusal = (typeof RANK_PERIODS_REFUSALS)[number]

/**
 * Ranks the live periods at this instant and stores the snapshot (docs/ranking.md). The storing transaction is its only
 * effect: an interrupted or failed run leaves the current snapshot.
 *
 * @throws Refusal `clock_behind` when the newest snapshot is later by more than five minutes, `snapshot_damaged` when
 *   its stored time is damaged, `snapshot_too_large`; errors of reading, sealing or storing; the signal's reason
 */
export async function rankPeriods(
  { feed, clock }: RankPeriodsPorts,
  { signal, discardLater }: RankPeriodsOptions,
): Promise<SnapshotReport> {
  const startedAt = clock()
  const events = await feed.liveEvents(startedAt)
  signal.throwIfAborted()
  const ranked = rankLivePeriods(events, startedAt)
  const listed = listedEvents(ranked.map(([, lists]) => lists))
  const details = await feed.details(listed.map(({ event }) => event))
  signal.throwIfAborted()
  const sealed = sealSnapshot(ranked, details, startedAt, await feedsBefore(feed, startedAt))
  const saving = await feed.saveSnapshot(sealed, { discardLater })
  if (!saving.saved) {
    const served = newestOf(saving.newest, startedAt)
    return { job: 'snapshot', outcome: 'superseded', ...served, durationMs: clock() - startedAt }
  }
  return {
    job: 'snapshot',
    outcome: 'taken',
    snapshotId: sealed.snapshot.id,
    generatedAt: formatInstant(startedAt),
    events: events.length,
    items: bySort((sort) => countItems(sealed.feeds.find(({ sortMode }) => sortMode === sort))),
    byteSize: bySort((sort) => sealed.payloads.get(sort)?.byteLength ?? 0),
    removed: saving.removed,
    durationMs: clock() - startedAt,
  }
}

/** The feeds of the newest snapshot before a time; none if it is damaged or of another layout: this run replaces it. */
async function feedsBefore(
  feed: Pick<FeedStore, 'newestSnapshot' | 'snapshotFeed'>,
  at: Instant,
): Promise<LiveFeed[]> {
  try {
    const newest = await feed.newestSnapshot()
    if (newest === null || newest.generatedAt >= at) return []
    const { id } = newest
    const bytes = await Promise.all(
      newest.feeds.map(async (each) => proveFeed(id, each, await feed.snapshotFeed(id, each))),
    )
    return bytes.map((each) => parseLiveFeed(id, each))
  } catch (error) {
    if (error instanceof Refusal) return []
    throw error
  }
}

/** The served snapshot after a run that stored signals: this run's or a later one, or the reason of a refusal. */
export type TakenOrRefused =
  { outcome: 'taken' | 'superseded'; snapshotId: string } | { outcome: 'refused'; reason: string }

const REFUSED: ReadonlySet<string> = new Set(RANK_PERIODS_REFUSALS)

/**
 * Takes a snapshot at the end of a run that stored signals. A refusal does not affect the rest of the run.
 *
 * @throws the errors of {@link rankPeriods}, except its own refusals
 */
export async function takeSnapshot(ports: RankPeriodsPorts, signal: AbortSignal): Promise<TakenOrRefused> {
  try {
    const { outcome, snapshotId } = await rankPeriods(ports, { signal, discardLater: false })
    return { outcome, snapshotId }
  } catch (error) {
    if (!(error instanceof Refusal) || !REFUSED.has(error.code)) throw error
    return { outcome: 'refused', reason: error.detail ?? error.code }
  }
}

/** The newest snapshot, when it may replace one of this instant. */
function newestOf(
  { id, generatedAt }: { id: string; generatedAt: Instant | null },
  now: Instant,
): Pick<ServedSnapshot, 'snapshotId' | 'generatedAt'> {
  if (generatedAt === null) {
    const damage = `the stored time of the newest snapshot, ${id}, is damaged`
    throw refused('snapshot_damaged', `${damage}; remove it with dash snapshot --discard-later`)
  }
  // A concurrent run cannot be later by more than that.
  if (generatedAt > now + CLOCK_TOLERANCE_MS) {
    const times = `the clock says ${formatInstant(now)}, but the newest snapshot is of ${formatInstant(generatedAt)}`
    const remedy = 'correct the clock, or remove future snapshots with dash snapshot --discard-later'
    throw refused('clock_behind', `${times}; ${remedy}`)
  }
  return { snapshotId: id, generatedAt: formatInstant(generatedAt) }
}

function refused(code: RankPeriodsRefusal, detail: string): Refusal<RankPeriodsRefusal> {
  return new Refusal(code, detail)
}

function bySort<T>(of: (sort: LiveSort) => T): Record<LiveSort, T> {
  return Object.fromEntries(LIVE_SORTS.map((sort) => [sort, of(sort)])) as Record<LiveSort, T>
}

function countItems(feed: LiveFeed | undefined): Record<string, number> {
  return Object.fromEntries(
    Object.entries(feed ?? {}).flatMap(([name, list]) => (Array.isArray(list) ? [[name, list.length]] : [])),
  )
}
