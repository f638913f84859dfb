import { COLUMN_NAMES } from '../../../domain/feed/columns.ts'
import type { ColumnName } from '../../../domain/feed/columns.ts'
import type { LiveSort } from '../../../domain/feed/live-sort.ts'
import { DAY_MS, addDays, formatInstant } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import { changesBetween, missingDays } from '../../../domain/year/history/changes.ts'
import type { MissingDay, YearChanges } from '../../../domain/year/history/changes.ts'
import { lastCompleteDay } from '../../../domain/year/ledger.ts'
import type { NewsItem } from './item-lines.ts'
import { publicationAt } from './reader.ts'
import type { NewsReader, Publication } from './reader.ts'

/** Content of a digest, as `--json` prints it. */
export interface Digest {
  /** Begin and end of the period, ISO-8601. */
  since: string
  until: string
  year: {
    /** Publications that were current at begin and end; null before the first. */
    before: Publication | null
    after: Publication | null
    /** Days after the first of them without a publication. */
    gaps: readonly MissingDay[]
    /** Changes of the list `popular`; null if the two cannot be compared. */
    changes: YearChanges<NewsItem> | null
  }
  /** The first items of each list of the live feed; null before the first snapshot. */
  live: {
    sort: LiveSort
    snapshotId: string
    generatedAt: string
    lists: Readonly<Record<ColumnName, readonly NewsItem[]>>
  } | null
}

const LIVE_ITEMS = 5

/** Compares the publications that were current at `begin` and `now`, and reads the live feed. */
export async function digestSince(news: NewsReader, begin: Instant, now: Instant): Promise<Digest> {
  const history = await news.history()
  const [before, after] = [publicationAt(history, begin), publicationAt(history, now)]
  const changes = before && after && (await changesOf(news, before, after))
  // The last complete day is published during the day after it.
  const due = addDays(lastCompleteDay(now), -1)
  const gaps = before === null ? [] : missingDays(history, before.asOfDay, due)
  const feed = await news.live(periodFor(now - begin))
  return {
    since: formatInstant(begin),
    until: formatInstant(now),
    year: { before, after, gaps, changes },
    live: feed && {
      sort: feed.sortMode,
      snapshotId: feed.snapshotId,
      generatedAt: feed.generatedAt,
      lists: firstItems(feed),
    },
  }
}

function firstItems(feed: Readonly<Record<ColumnName, readonly NewsItem[]>>): Record<ColumnName, NewsItem[]> {
  const lists = COLUMN_NAMES.map((name) => [name, feed[name].slice(0, LIVE_ITEMS)])
  return Object.fromEntries(lists) as Record<ColumnName, NewsItem[]>
}

async function changesOf(
  news: NewsReader,
  before: Publication,
  after: Publication,
): Promise<YearChanges<NewsItem> | null> {
  const [earlier, later] = [await news.year(before), await news.year(after)]
  return earlier && later && changesBetween<NewsItem>(earlier.feed.popular, later.feed.popular)
}

/** The shortest live period that covers `ms`. Publications and snapshots are made some time after a day ends. */
function periodFor(ms: number): LiveSort {
  if (ms <= DAY_MS) return 'day'
  return ms <= 7 * DAY_MS ? 'week' : 'month'
}
