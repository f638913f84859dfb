import type { LiveSort } from '../../../domain/feed/live-sort.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { DAY_MS, addDays, formatInstant, parseDay, parseInstant, startOfDay } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import { changesBetween, missingDays } from '../../../domain/year/changes.ts'
import type { MissingDay, YearChanges } from '../../../domain/year/changes.ts'
import { lastCompleteDay } from '../../../domain/year/ledger.ts'
import type { CommandContext } from '../../context.ts'
import { EXIT } from '../../exit-codes.ts'
import { flagValue } from '../../settings/environment.ts'
import { DIGEST_FORMATS } from './digest-formats.ts'
import type { DigestFormat } from './digest-formats.ts'
import { LIST_NAMES, layoutOf } from './item-lines.ts'
import type { ListName, NewsItem } from './item-lines.ts'
import { openNews, publicationAt } from './reader.ts'
import type { NewsReader, Publication } from './reader.ts'

export interface DigestFlags {
  since?: string
  days?: string
  format: DigestFormat
  url?: string
}

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
    lists: Readonly<Record<ListName, readonly NewsItem[]>>
  } | null
}

const PERIOD_DEFAULT = '7d'
const LIVE_ITEMS = 5

/**
 * `dash digest`: prints what changed in the Year during a period, and the top of the live feed.
 *
 * @returns 0, or 1 if nothing is published or ranked yet
 * @throws Refusal `usage` for an invalid flag; refusals of the stores and of the host
 */
export async function digestCommand(
  context: CommandContext,
  { since, days, format, url }: DigestFlags,
): Promise<number> {
  const { terminal } = context
  const now = Date.now()
  const begin = parseBegin(since, days, now)
  const news = await openNews(context, url)
  const digest = await digestSince(news, begin, now)
  if (digest.year.after === null && digest.live === null) {
    const reason = 'nothing is published or ranked yet; dash publish-year and dash snapshot do it'
    terminal.error(reason)
    terminal.failure(reason, EXIT.failed)
    return EXIT.failed
  }
  terminal.result(digest, DIGEST_FORMATS[format](digest, layoutOf(context)), true)
  return EXIT.done
}

/** Returns the begin of the period of `--since` or `--days`. @throws Refusal `usage` */
function parseBegin(since: string | undefined, days: string | undefined, now: Instant): Instant {
  if (since !== undefined && days !== undefined)
    throw new Refusal('usage', '--since and --days exclude each other; choose one')
  if (days !== undefined)
    return flagValue('--days', days, 'a whole number from 1', (text) => beginOf(`${text}d`, now))
  const what = 'a period such as 7d or 24h, a day, or an instant such as 2026-03-02T12:00:00Z, before now'
  return flagValue('--since', since ?? PERIOD_DEFAULT, what, (text) => beginOf(text, now))
}

const UNIT_MS = { d: DAY_MS, h: 3_600_000 }

function beginOf(text: string, now: Instant): Instant | null {
  const [, count, unit] = /^([1-9]\d{0,4})([dh])$/.exec(text) ?? []
  if (count !== undefined) return now - Number(count) * UNIT_MS[unit === 'h' ? 'h' : 'd']
  const day = parseDay(text)
  const begin = day === null ? parseInstant(text) : startOfDay(day)
  return begin !== null && begin < now ? begin : null
}

async function digestSince(news: NewsReader, begin: Instant, now: Instant): Promise<Digest> {
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
    year: { before: before && named(before), after: after && named(after), gaps, changes },
    live: feed && {
      sort: feed.sortMode,
      snapshotId: feed.snapshotId,
      generatedAt: feed.generatedAt,
      lists: Object.fromEntries(
        LIST_NAMES.map((name) => [name, feed[name].slice(0, LIVE_ITEMS)]),
      ) as unknown as Record<ListName, NewsItem[]>,
    },
  }
}

/** Leaves out the members that only the local index has. */
function named({ publicationId, asOfDay, publishedAt, sha256 }: Publication): Publication {
  return { publicationId, asOfDay, publishedAt, sha256 }
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
