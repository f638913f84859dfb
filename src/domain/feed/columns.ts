import { z } from 'zod'
import { compareCodeUnits } from '../text.ts'
import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import { NEWS_SOURCES, saveKey, discussionUrl, hypeProviderOf } from './source.ts'
import type { ItemRef, NewsSource } from './source.ts'

/** The building blocks of every ranking: the percentile inside a source, and the orders over it (docs/ranking.md). */

/** Length of each column and of `popular`. */
export const COLUMN_LENGTH = 100

/** An event with its percentile among the events it was compared with. */
export interface Scored {
  event: FeedEvent
  key: string
  /** Midpoint percentile, in (0, 1). */
  percentile: number
}

/** Compares events: below zero when the first ranks lower, zero when they are equal. */
export type CompareEvents = (a: FeedEvent, b: FeedEvent) => number

export const comparePoints: CompareEvents = (a, b) => a.points - b.points

/** Points and comments are compared as a pair; unknown comments count as 0. */
export const comparePointsAndComments: CompareEvents = (a, b) =>
  comparePoints(a, b) || (a.comments ?? 0) - (b.comments ?? 0)

export function groupBySource(events: readonly FeedEvent[]): Map<string, FeedEvent[]> {
  const groups = new Map<string, FeedEvent[]>()
  for (const event of events) {
    const group = groups.get(event.source)
    if (group) group.push(event)
    else groups.set(event.source, [event])
  }
  return groups
}

/**
 * Scores events by midpoint empirical percentiles (docs/ranking.md, rules 4 and 5): `p = (L + E/2) / n`, where `L` events
 * rank below, `E` rank equal (itself included), of `n`. The lowest come first.
 */
export function scoreAmong(events: readonly FeedEvent[], compare: CompareEvents): Scored[] {
  const ascending = [...events].sort(compare)
  const scored: Scored[] = []
  for (let [start, end] = [0, 0]; start < ascending.length; start = end) {
    const first = ascending[start] as FeedEvent
    while (end < ascending.length && compare(ascending[end] as FeedEvent, first) === 0) end += 1
    const percentile = (start + (end - start) / 2) / ascending.length
    for (const event of ascending.slice(start, end))
      scored.push({ event, key: saveKey(event.source, event.sourceId), percentile })
  }
  return scored
}

/** The order of a column: points descending, comments descending, source id ascending in code-unit order. */
function compareInColumn(a: Scored, b: Scored): number {
  return comparePointsAndComments(b.event, a.event) || compareCodeUnits(a.event.sourceId, b.event.sourceId)
}

/** The order over hype cohorts: percentile descending, then source and source id ascending. */
function compareInHype(a: Scored, b: Scored): number {
  return (
    b.percentile - a.percentile ||
    compareCodeUnits(a.event.source, b.event.source) ||
    compareCodeUnits(a.event.sourceId, b.event.sourceId)
  )
}

/** The order of `popular`: percentile descending, comments descending, save key ascending. */
export function compareInPopular(a: Scored, b: Scored): number {
  return (
    b.percentile - a.percentile ||
    (b.event.comments ?? 0) - (a.event.comments ?? 0) ||
    compareCodeUnits(a.key, b.key)
  )
}

type Order<T> = (a: T, b: T) => number

/** The first events of a column in the given order. */
function topOf<T>(scored: readonly T[], order: Order<T>): T[] {
  return [...scored].sort(order).slice(0, COLUMN_LENGTH)
}

export interface RankedLists<T> {
  columns: Record<NewsSource, T[]>
  hype: T[]
  popular: T[]
  midjourney: T[]
}

/** The orders of the lists of a ranking. */
export interface ListOrders<T> {
  column: Order<T>
  hype: Order<T>
  popular: Order<T>
}

/** The orders of the Year, and of the live periods of a fixed length. */
export const PERCENTILE_ORDERS: ListOrders<Scored> = {
  column: compareInColumn,
  hype: compareInHype,
  popular: compareInPopular,
}

/**
 * Creates the lists of a ranking: the top of each source, of all hype cohorts together, and of the news sources together
 * without repeated URLs and titles.
 *
 * @param scoredOf the scored events of a source
 * @param cohorts the sources of the hype column
 * @param titleOf the title of an event that counts in `popular`; null while it is unknown
 */
export function rankLists<T extends Scored>(
  scoredOf: (source: string) => readonly T[],
  cohorts: readonly string[],
  orders: ListOrders<T>,
  titleOf: (scored: T) => string | null,
): RankedLists<T> {
  const news = NEWS_SOURCES.map((source) => [source, scoredOf(source)] as const)
  const columns = news.map(([source, scored]) => [source, topOf(scored, orders.column)])
  const merged = news.flatMap(([, scored]) => scored).sort(orders.popular)
  return {
    columns: Object.fromEntries(columns) as Record<NewsSource, T[]>,
    hype: topOf(cohorts.flatMap(scoredOf), orders.hype),
    popular: takeDistinct(merged, ({ event }) => event.url, titleOf),
    midjourney: topOf(scoredOf('midjourney'), orders.column),
  }
}

/** Converts every item of the lists; `rank` is its rank in its list, from 1. */
export function mapLists<T, U>(
  { columns, hype, popular, midjourney }: RankedLists<T>,
  convert: (item: T, rank: number) => U,
): RankedLists<U> {
  const converted = (list: readonly T[]): U[] => list.map((item, index) => convert(item, index + 1))
  const entries = NEWS_SOURCES.map((source) => [source, converted(columns[source])])
  return {
    columns: Object.fromEntries(entries) as Record<NewsSource, U[]>,
    hype: converted(hype),
    popular: converted(popular),
    midjourney: converted(midjourney),
  }
}

/** Every listed item of some rankings, once. */
export function listedEvents<T extends Pick<Scored, 'key'>>(rankings: readonly RankedLists<T>[]): T[] {
  const listed = rankings.flatMap(({ columns, hype, popular, midjourney }) =>
    [...Object.values(columns), hype, popular, midjourney].flat(),
  )
  return [...new Map(listed.map((item) => [item.key, item])).values()]
}

/**
 * Takes items in order, skipping those whose exact URL or exact title was already taken, until a column is full. An
 * unknown one is null and equals no other.
 */
export function takeDistinct<T>(
  order: readonly T[],
  urlOf: (item: T) => string | null,
  titleOf: (item: T) => string | null,
): T[] {
  const urls = new Set<string>()
  const titles = new Set<string>()
  const taken: T[] = []
  for (const item of order) {
    if (taken.length >= COLUMN_LENGTH) break
    const url = urlOf(item)
    if (url !== null && urls.has(url)) continue
    const title = titleOf(item)
    if (title !== null && titles.has(title)) continue
    if (url !== null) urls.add(url)
    if (title !== null) titles.add(title)
    taken.push(item)
  }
  return taken
}

/** An event with the values of its latest signal up to a given day: published, with known points. */
export interface FeedEvent extends ItemRef {
  title: string
  url: string | null
  points: number
  comments: number | null
  publishedAt: Instant
  /** null for a legacy signal, whose title is unverified. */
  titleProvenance: string | null
}

/** Titles of the lists of a feed, in display order, by their names in the interfaces. */
export const COLUMNS = {
  popular: 'Popular',
  hackerNews: 'Hacker News',
  lobsters: 'Lobsters',
  lessWrong: 'LessWrong',
  hypeReplicate: 'Hype',
  midjourney: 'Images',
} as const
export type ColumnName = keyof typeof COLUMNS
export const COLUMN_NAMES = Object.keys(COLUMNS) as ColumnName[]

/** The fields that items of every published ranking have, live and archived (docs/api.md). */

export const instantSchema = z.iso.datetime({ precision: 3 }).describe('ISO-8601 with milliseconds and Z')
export const nonBlankText = z.string().regex(/\S/)

export const itemFields = {
  key: z.string().min(1).describe('save key, `<prefix>-<sourceId>`'),
  source: z.string().min(1),
  provider: z.string().optional().describe('hype items only: the provider'),
  sourceId: z.string().min(1).describe("the source's own id"),
  rank: z.int().min(1).max(COLUMN_LENGTH).describe('rank in this list; 1 is first'),
  title: nonBlankText,
  url: z.string().nullable().describe('link of the item; null for a text post'),
  discussionUrl: z.string().nullable().describe('page of the discussion; null outside the news sources'),
  points: z.int().describe('latest stored points, karma or provider unit'),
  comments: z.int().nullable(),
  publishedAt: instantSchema.describe("the event's own publication time"),
  percentile: z.number().gt(0).lt(1).describe('midpoint percentile (L + E/2) / n inside its source'),
}

type ListedItem = z.infer<z.ZodObject<typeof itemFields>>

/** An event in a list, as {@link itemFields} publish it. */
export function listedItem(
  { event, key, percentile }: Scored,
  rank: number,
  title: string = event.title,
): ListedItem {
  const { source, sourceId, url, points, comments } = event
  const provider = hypeProviderOf(source)
  return {
    key,
    source,
    ...(provider === null ? {} : { provider }),
    sourceId,
    rank,
    title,
    url,
    discussionUrl: discussionUrl(source, sourceId),
    points,
    comments,
    publishedAt: formatInstant(event.publishedAt),
    percentile,
  }
}

/** The list of code-hosting items, which has no items yet. */
export const githubSchema = z.object({ status: z.literal('collecting'), items: z.array(z.never()).max(0) })
