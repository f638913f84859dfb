import { z } from 'zod'
import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import {
  COLUMN_LENGTH,
  LIVE_SORTS,
  PERIOD_MS,
  compareInColumn,
  compareInHype,
  compareInPopular,
  comparePoints,
  comparePointsAndComments,
  groupBySource,
  scoreAmong,
  takeDistinct,
  topOf,
} from './columns.ts'
import type { CompareEvents, FeedEvent, LiveSort, Scored } from './columns.ts'
import type { ItemDetails } from './live-source.ts'
import { HYPE_PROVIDERS, NEWS_SOURCES, discussionUrl, hypeProviderOf } from './source.ts'
import type { NewsSource } from './source.ts'

/**
 * Wire schemas of the live feed (docs/feed-api.md). Every item has the product's own fields and, beside them, those of
 * its source under the names readers of that source know.
 */

/** Version of the rules and of this layout together: whoever changes either gives it another. */
export const LIVE_VERSION = 'live-v1'

const instant = z.iso.datetime({ precision: 3 }).describe('ISO-8601 with milliseconds and Z')
const text = z.string().regex(/\S/)
const commentCount = z.int().nullable().describe('latest stored number of comments; null = unknown')

const liveItemSchema = z
  .object({
    key: z.string().min(1).describe('save key, `<prefix>-<sourceId>`'),
    source: z.string().min(1).describe('`hn`, `lobsters`, `lesswrong`, `hype:<provider>` or `midjourney`'),
    provider: z.string().optional().describe('hype items only: the provider cohort'),
    sourceId: z.string().min(1).describe("the source's own id"),
    rank: z.int().min(1).max(COLUMN_LENGTH).describe('1 is first in this list'),
    title: text.describe('title as it was collected, or as its owning source gave it when asked'),
    url: z.string().nullable().describe('link of the item; null for a text post'),
    discussionUrl: z.string().nullable().describe('page of the discussion; null outside the news sources'),
    points: z.int().describe('latest stored points, karma or provider unit'),
    comments: commentCount,
    publishedAt: instant.describe("the event's own publication time"),
    percentile: z
      .number()
      .gt(0)
      .lt(1)
      .describe('midpoint percentile (L + E/2) / n inside its source or cohort'),
    agg_score: z
      .number()
      .min(0)
      .describe(
        'trending: the trend, 1 / (1 - percentile) halved every six hours; day, week, month: 100 * percentile',
      ),
    event_title_verified: z.boolean().describe('true when the owning source vouched for the title'),
    title_provenance: text.nullable().describe('channel of the owning source that vouched, or null'),
  })
  .meta({ id: 'LiveItem' })

const hackerNewsItemSchema = liveItemSchema
  .extend({
    id: z.union([z.int(), z.string()]).describe('item id; a number wherever it is one'),
    score: z.int().describe('points'),
    descendants: commentCount,
    by: z.string().nullable().describe('account; null = unknown'),
    time: z.int().describe('publication time in seconds since 1970'),
  })
  .meta({ id: 'LiveHackerNewsItem' })

const lobstersItemSchema = liveItemSchema
  .extend({
    comments_url: z.string().describe('page of the discussion'),
    score: z.int().describe('points'),
    comment_count: commentCount,
    created_at: instant.describe('publication time'),
    submitter_user: z.string().nullable().describe('account; null = unknown'),
    tags: z.array(z.string()),
  })
  .meta({ id: 'LiveLobstersItem' })

const lessWrongItemSchema = liveItemSchema
  .extend({
    author: z.string().nullable().describe('display name; null = unknown'),
    baseScore: z.int().describe('karma'),
    commentCount,
    postedAt: instant.describe('publication time'),
  })
  .meta({ id: 'LiveLessWrongItem' })

const hypeItemSchema = liveItemSchema
  .extend({
    id: z.string().describe("the provider's own id"),
    username: z.string().nullable().describe('owner of the repository or model, or author of the post'),
    name: z.string().describe('name of the repository or model, or title of the post'),
    stars: z.int().describe('points in the unit of the provider'),
    description: z.string().nullable(),
    created_at: instant.describe('publication time'),
  })
  .meta({ id: 'LiveHypeItem' })

export const liveFeedSchema = z
  .object({
    generatedAt: instant.describe("the run's instant, at which the period ends"),
    algoVersion: z.literal(LIVE_VERSION),
    sortMode: z.enum(LIVE_SORTS),
    snapshotId: z
      .string()
      .regex(/^feed-\d{8}T\d{9}Z-[0-9a-f]{8}$/)
      .describe('the run; sorts by time'),
    hackerNews: z.array(hackerNewsItemSchema).max(COLUMN_LENGTH),
    lobsters: z.array(lobstersItemSchema).max(COLUMN_LENGTH),
    lessWrong: z.array(lessWrongItemSchema).max(COLUMN_LENGTH),
    hypeReplicate: z.array(hypeItemSchema).max(COLUMN_LENGTH).describe('every hype provider'),
    midjourney: z.array(liveItemSchema).max(COLUMN_LENGTH),
    github: z.object({ status: z.literal('collecting'), items: z.array(z.never()).max(0) }),
    popular: z
      .array(z.union([hackerNewsItemSchema, lobstersItemSchema, lessWrongItemSchema]))
      .max(COLUMN_LENGTH)
      .describe('merged top 100 of the three news sources'),
  })
  .meta({ id: 'LiveFeed' })

export type LiveItem = z.infer<typeof liveItemSchema>
export type LiveFeed = z.infer<typeof liveFeedSchema>

/** Entries as items of the wire: the product's own fields, then the source's own names (docs/feed-api.md). */

type HackerNewsItem = LiveFeed['hackerNews'][number]
type LobstersItem = LiveFeed['lobsters'][number]
type LessWrongItem = LiveFeed['lessWrong'][number]
type HypeItem = LiveFeed['hypeReplicate'][number]
type PopularItem = LiveFeed['popular'][number]

/** What sources say of items beside their numbers, by save key. */
export type Details = ReadonlyMap<string, ItemDetails>

/** An entry in the product's own fields alone. */
export function itemOf({ event, key, rank, percentile, aggScore }: LiveEntry): LiveItem {
  const provider = hypeProviderOf(event.source)
  return {
    key,
    source: event.source,
    ...(provider === null ? {} : { provider }),
    sourceId: event.sourceId,
    rank,
    title: event.title,
    url: event.url,
    discussionUrl: discussionUrl(event.source, event.sourceId),
    points: event.points,
    comments: event.comments,
    publishedAt: formatInstant(event.publishedAt),
    percentile,
    agg_score: aggScore,
    event_title_verified: event.titleProvenance !== null,
    title_provenance: event.titleProvenance,
  }
}

export function hackerNewsItem(entry: LiveEntry, details: Details): HackerNewsItem {
  const { sourceId, points, comments, publishedAt } = entry.event
  return {
    ...itemOf(entry),
    id: /^[1-9]\d{0,14}$/.test(sourceId) ? Number(sourceId) : sourceId,
    score: points,
    descendants: comments,
    by: details.get(entry.key)?.author ?? null,
    time: Math.floor(publishedAt / 1000),
  }
}

export function lobstersItem(entry: LiveEntry, details: Details): LobstersItem {
  const item = itemOf(entry)
  return {
    ...item,
    comments_url: item.discussionUrl ?? '',
    score: item.points,
    comment_count: item.comments,
    created_at: item.publishedAt,
    submitter_user: details.get(entry.key)?.author ?? null,
    tags: [...(details.get(entry.key)?.tags ?? [])],
  }
}

export function lessWrongItem(entry: LiveEntry, details: Details): LessWrongItem {
  const item = itemOf(entry)
  return {
    ...item,
    author: details.get(entry.key)?.author ?? null,
    baseScore: item.points,
    commentCount: item.comments,
    postedAt: item.publishedAt,
  }
}

/** An id of the form `owner/name` tells both; anything else has its author and its title. */
export function hypeItem(entry: LiveEntry, details: Details): HypeItem {
  const item = itemOf(entry)
  const [, owner, name] = /^([^/]+)\/([^/]+)$/.exec(item.sourceId) ?? []
  const { author = null, description = null } = details.get(entry.key) ?? {}
  return {
    ...item,
    id: item.sourceId,
    username: author ?? owner ?? null,
    name: name ?? item.title,
    stars: item.points,
    description,
    created_at: item.publishedAt,
  }
}

/** An entry of `popular` under the names of the source it comes from. */
export function popularItem(entry: LiveEntry, details: Details): PopularItem {
  switch (entry.event.source) {
    case 'hn':
      return hackerNewsItem(entry, details)
    case 'lobsters':
      return lobstersItem(entry, details)
    default:
      return lessWrongItem(entry, details)
  }
}

/** An event with its place in one list of a live period. */
export interface LiveEntry extends Scored {
  rank: number
  /** `agg_score`: comparable over all lists of one sort, and never growing down a list. */
  aggScore: number
}

/** The lists of one live period. */
export interface RankedLive {
  columns: Record<NewsSource, LiveEntry[]>
  hype: LiveEntry[]
  midjourney: LiveEntry[]
  popular: LiveEntry[]
}

/** What sets one sort apart: what is compared, what it is worth, and in which orders it stands. */
interface Rule {
  compare: { plain: CompareEvents; hype: CompareEvents }
  weigh: (scored: Scored) => number
  /** A weight as it is published. */
  round: (weight: number) => number
  order: { column: Order; hype: Order; popular: Order }
}

interface Weighted extends Scored {
  weight: number
}

type Order = (a: Weighted, b: Weighted) => number

/**
 * Ranks a live period (docs/ranking.md): a pure function of events and instant, whatever the order of the events.
 *
 * @param events at most one for each (source, sourceId); those outside the period do not count
 * @param now the run's instant, at which the period ends, inclusive
 */
export function rankLive(sort: LiveSort, events: readonly FeedEvent[], now: Instant): RankedLive {
  const since = now - PERIOD_MS[sort]
  const bySource = groupBySource(
    events.filter(({ publishedAt }) => publishedAt >= since && publishedAt <= now),
  )
  const rule = sort === 'trending' ? trendingRule(now) : PERIOD_RULE
  const weighted = (source: string, compare = rule.compare.plain): Weighted[] =>
    scoreAmong(bySource.get(source) ?? [], compare).map((scored) => ({
      ...scored,
      weight: rule.weigh(scored),
    }))
  const listed = (ordered: readonly Weighted[]): LiveEntry[] =>
    ordered.map(({ weight, ...scored }, index) => ({
      ...scored,
      rank: index + 1,
      aggScore: rule.round(weight),
    }))
  const news = NEWS_SOURCES.map((source) => weighted(source))
  const cohorts = HYPE_PROVIDERS.map((provider) => weighted(`hype:${provider}`, rule.compare.hype))
  const columns = Object.fromEntries(
    NEWS_SOURCES.map((source, index) => [source, listed(topOf(news[index] ?? [], rule.order.column))]),
  ) as Record<NewsSource, LiveEntry[]>
  return {
    columns,
    hype: listed(topOf(cohorts.flat(), rule.order.hype)),
    midjourney: listed(topOf(weighted('midjourney'), rule.order.column)),
    popular: listed(takeDistinct(news.flat().sort(rule.order.popular), ({ event }) => event.title)),
  }
}

/** Day, week and month: the Year's orders over a shorter window. */
const PERIOD_RULE: Rule = {
  compare: { plain: comparePointsAndComments, hype: comparePoints },
  weigh: ({ percentile }) => percentile,
  round: (weight) => Math.round(weight * 10_000) / 100,
  order: { column: compareInColumn, hype: compareInHype, popular: compareInPopular },
}

/** Digits of a trend as it is published: it spans too many orders of magnitude for a number of decimals. */
const TREND_DIGITS = 6

/** Trending: points alone, among the source's events of a month, decaying with age; one order for every list. */
function trendingRule(now: Instant): Rule {
  const order: Order = (a, b) =>
    b.weight - a.weight || b.event.publishedAt - a.event.publishedAt || compareInPopular(a, b)
  return {
    compare: { plain: comparePoints, hype: comparePoints },
    weigh: ({ percentile, event }) => trendOf(percentile, now - event.publishedAt),
    round: (weight) => Number(weight.toPrecision(TREND_DIGITS)),
    order: { column: order, hype: order, popular: order },
  }
}

/** Time in which an event's trend halves (docs/ranking.md). */
export const HALF_LIFE_MS = 6 * 60 * 60 * 1000

/**
 * How much an event trends (docs/ranking.md): `1 / (1 - p) * 2^(-age / 6 h)`. The first factor says that one event in
 * so many of its source stands as high, in no unit, so that sources compare; the second halves it every six hours.
 *
 * @param percentile of the event's points among its source, in (0, 1)
 * @param ageMs since its publication
 * @returns above 0; two events of one percentile differ by their age alone
 */
export function trendOf(percentile: number, ageMs: number): number {
  return (1 / (1 - percentile)) * 2 ** (-ageMs / HALF_LIFE_MS)
}
