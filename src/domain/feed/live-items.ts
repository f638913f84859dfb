import { z } from 'zod'
import {
  COLUMN_LENGTH,
  githubSchema,
  instantSchema,
  itemFields,
  listedItem,
  nonBlankText,
} from './columns.ts'
import type { ItemDetails } from './live-source.ts'
import { LIVE_SORTS } from './live-sort.ts'
import type { LiveEntry, RankedLive } from './live-sort.ts'
import type { NewsSource } from './source.ts'

/**
 * Wire schemas of the live feed (docs/api.md). Every item has the product's own fields and, beside them, those of
 * its source under the names readers of that source know.
 */

/** Version of the rules and of this layout; change it with either of them. */
export const LIVE_VERSION = 'live-v1'

const commentCount = itemFields.comments.describe('latest stored number of comments; null if unknown')

export const liveItemSchema = z
  .object({
    ...itemFields,
    source: itemFields.source.describe('`hn`, `lobsters`, `lesswrong`, `hype:<provider>` or `midjourney`'),
    title: nonBlankText.describe('title as collected, or as its own source returned it'),
    comments: commentCount,
    agg_score: z
      .number()
      .min(0)
      .describe(
        'trending: the trend, 1 / (1 - percentile) halved every six hours; day, week, month: 100 * percentile',
      ),
    listedSince: instantSchema
      .nullable()
      .describe(
        'time of the first snapshot of the unbroken stay in the lists of this sort; null if no snapshot before it is known',
      ),
    event_title_verified: z.boolean().describe('true if the own source of the item confirmed the title'),
    title_provenance: nonBlankText
      .nullable()
      .describe('channel of the source that confirmed the title, or null'),
  })
  .meta({ id: 'LiveItem' })

const hackerNewsItemSchema = liveItemSchema
  .extend({
    id: z.union([z.int(), z.string()]).describe('item id; a number if possible'),
    score: z.int().describe('points'),
    descendants: commentCount,
    by: z.string().nullable().describe('account; null if unknown'),
    time: z.int().describe('publication time in seconds since 1970'),
  })
  .meta({ id: 'LiveHackerNewsItem' })

const lobstersItemSchema = liveItemSchema
  .extend({
    comments_url: z.string().describe('page of the discussion'),
    score: z.int().describe('points'),
    comment_count: commentCount,
    created_at: instantSchema.describe('publication time'),
    submitter_user: z.string().nullable().describe('account; null if unknown'),
    tags: z.array(z.string()),
  })
  .meta({ id: 'LiveLobstersItem' })

const lessWrongItemSchema = liveItemSchema
  .extend({
    author: z.string().nullable().describe('display name; null if unknown'),
    baseScore: z.int().describe('karma'),
    commentCount,
    postedAt: instantSchema.describe('publication time'),
  })
  .meta({ id: 'LiveLessWrongItem' })

const hypeItemSchema = liveItemSchema
  .extend({
    id: z.string().describe("the provider's own id"),
    username: z.string().nullable().describe('owner of the repository or model, or author of the post'),
    name: z.string().describe('name of the repository or model, or title of the post'),
    stars: z.int().describe('points in the unit of the provider'),
    description: z.string().nullable(),
    created_at: instantSchema.describe('publication time'),
  })
  .meta({ id: 'LiveHypeItem' })

export const liveFeedSchema = z
  .object({
    generatedAt: instantSchema.describe('time of the run, at which the period ends'),
    algoVersion: z.literal(LIVE_VERSION),
    sortMode: z.enum(LIVE_SORTS),
    snapshotId: z
      .string()
      .regex(/^feed-\d{8}T\d{9}Z-[0-9a-f]{8}$/)
      .describe('id of the run; sorts by time'),
    hackerNews: z.array(hackerNewsItemSchema).max(COLUMN_LENGTH),
    lobsters: z.array(lobstersItemSchema).max(COLUMN_LENGTH),
    lessWrong: z.array(lessWrongItemSchema).max(COLUMN_LENGTH),
    hypeReplicate: z.array(hypeItemSchema).max(COLUMN_LENGTH).describe('every hype provider'),
    midjourney: z.array(liveItemSchema).max(COLUMN_LENGTH),
    github: githubSchema,
    popular: z
      .array(z.union([hackerNewsItemSchema, lobstersItemSchema, lessWrongItemSchema]))
      .max(COLUMN_LENGTH)
      .describe('merged top 100 of the three news sources'),
  })
  .meta({ id: 'LiveFeed' })

export type LiveItem = z.infer<typeof liveItemSchema>
export type LiveFeed = z.infer<typeof liveFeedSchema>

/** Entries as wire items: the product's own fields, then the names of the source (docs/api.md). */

type HypeItem = LiveFeed['hypeReplicate'][number]

/** Item details from the sources, by save key. */
export type Details = ReadonlyMap<string, ItemDetails>

type MakeItem<T> = (item: LiveItem, details: ItemDetails | undefined) => T

/** Items of the news sources under the names of their own interfaces. */
const NEWS_ITEMS = {
  hn: (item, details) => ({
    ...item,
    id: /^[1-9]\d{0,14}$/.test(item.sourceId) ? Number(item.sourceId) : item.sourceId,
    score: item.points,
    descendants: item.comments,
    by: details?.author ?? null,
    time: Math.floor(Date.parse(item.publishedAt) / 1000),
  }),
  lobsters: (item, details) => ({
    ...item,
    comments_url: item.discussionUrl ?? '',
    score: item.points,
    comment_count: item.comments,
    created_at: item.publishedAt,
    submitter_user: details?.author ?? null,
    tags: [...(details?.tags ?? [])],
  }),
  lesswrong: (item, details) => ({
    ...item,
    author: details?.author ?? null,
    baseScore: item.points,
    commentCount: item.comments,
    postedAt: item.publishedAt,
  }),
} satisfies Record<NewsSource, MakeItem<LiveFeed['popular'][number]>>

/** An id of the form `owner/name` gives both; other ids use author and title. */
function hypeItem(item: LiveItem, details: ItemDetails | undefined): HypeItem {
  const [, owner, name] = /^([^/]+)\/([^/]+)$/.exec(item.sourceId) ?? []
  return {
    ...item,
    id: item.sourceId,
    username: details?.author ?? owner ?? null,
    name: name ?? item.title,
    stars: item.points,
    description: details?.description ?? null,
    created_at: item.publishedAt,
  }
}

/** An entry in the product's own fields alone. */
function itemOf(entry: LiveEntry, listedSince: string | null): LiveItem {
  const { titleProvenance } = entry.event
  return {
    ...listedItem(entry, entry.rank),
    agg_score: entry.aggScore,
    listedSince,
    event_title_verified: titleProvenance !== null,
    title_provenance: titleProvenance,
  }
}

type Lists = Omit<LiveFeed, 'generatedAt' | 'algoVersion' | 'sortMode' | 'snapshotId'>

/**
 * The lists of a live period as they are published.
 *
 * @param listedSince `listedSince` of an item by its save key
 */
export function listsOf(
  { columns, hype, midjourney, popular }: RankedLive,
  details: Details,
  listedSince: (key: string) => string | null,
): Lists {
  const items = <T>(entries: readonly LiveEntry[], make: MakeItem<T>): T[] =>
    entries.map((entry) => make(itemOf(entry, listedSince(entry.key)), details.get(entry.key)))
  return {
    hackerNews: items(columns.hn, NEWS_ITEMS.hn),
    lobsters: items(columns.lobsters, NEWS_ITEMS.lobsters),
    lessWrong: items(columns.lesswrong, NEWS_ITEMS.lesswrong),
    hypeReplicate: items(hype, hypeItem),
    midjourney: items(midjourney, (item) => item),
    github: { status: 'collecting', items: [] },
    popular: items(popular, (item, ofItem) => NEWS_ITEMS[item.source as NewsSource](item, ofItem)),
  }
}
