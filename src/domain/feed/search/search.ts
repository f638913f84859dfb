import { z } from 'zod'
import { isRefusal } from '../../refusal.ts'
import { invalidParameter, parseQuery } from '../../wire-format.ts'
import { parseDay } from '../../time.ts'
import type { Day } from '../../time.ts'
import { isKnownSource, itemsOfKey } from '../source.ts'

/** Search queries and their results (docs/api.md). */

/** Most items on a page. */
export const LIMIT_MAX = 100
const LIMIT_DEFAULT = 20

/** Most items that the pages of a search can reach. */
export const PAGED_ITEMS_MAX = 1_000

/** Longest text of a query in UTF-16 units, and the most words that are used. */
export const QUERY_MAX_LENGTH = 1_000
export const QUERY_MAX_WORDS = 32

/** Most days a trend of a term covers. */
export const TREND_MAX_DAYS = 3_660

/** Most sources of a query. */
const SOURCES_MAX = 20

/** Orders of a search: by relevance, by time of publication, or by points. */
export const SEARCH_SORTS = ['relevance', 'newest', 'points'] as const
export type SearchSort = (typeof SEARCH_SORTS)[number]

/** Timeout of a query, from its start. */
export const QUERY_TIMEOUT_MS = 2_000

/** Refusal codes of `/api/search`, `/api/similar` and `/api/trend` (docs/api.md): the whole, closed list. */
export const SEARCH_REFUSALS = [
  'invalid_query',
  'invalid_source',
  'invalid_minimum',
  'invalid_time',
  'invalid_sort',
  'invalid_limit',
  'invalid_cursor',
  'invalid_key',
  'invalid_trend',
  'item_not_found',
  'method_not_allowed',
  'busy',
  'search_unavailable',
  'search_damaged',
  'search_failed',
] as const
export type SearchRefusal = (typeof SEARCH_REFUSALS)[number]

/** Refusals of {@link CallerSearch} besides those of stores. */
export type FeedSearchRefusal = Extract<SearchRefusal, 'invalid_cursor' | 'item_not_found'>

/** Returns null for an item that is not indexed, and throws any other error. */
export function nullIfNotFound(error: unknown): null {
  if (isRefusal<FeedSearchRefusal>(error, 'item_not_found')) return null
  throw error
}

// Queries

const typedText = z
  .string()
  .max(QUERY_MAX_LENGTH)
  .refine((text) => text.trim() !== '')

const key = z
  .string()
  .refine((text) => itemsOfKey(text).length > 0)
  .meta({ description: 'Save key of an item.', example: 'hn-1' })

const limit = z
  .string()
  .optional()
  .transform((text = String(LIMIT_DEFAULT)) => (/^[1-9]\d{0,2}$/.test(text) ? Number(text) : NaN))
  .pipe(z.int().max(LIMIT_MAX))
  .meta({
    description: `Maximum number of items; default ${LIMIT_DEFAULT}.`,
    type: 'integer',
    minimum: 1,
    maximum: LIMIT_MAX,
  })

function optionalDay(description: string) {
  return z
    .string()
    .refine((text) => parseDay(text) !== null)
    .meta({ description, format: 'date' })
    .optional()
    .transform((text) => text ?? null)
}

const range = {
  from: optionalDay('First day of items, `YYYY-MM-DD`, UTC.'),
  to: optionalDay('Last day of items, `YYYY-MM-DD`, UTC.'),
}

/**
 * Requires days in order; runs even when other members are invalid, so that the first invalid parameter is reported.
 */
function inOrder<Query extends z.ZodType<{ from: Day | null; to: Day | null }>>(query: Query): Query {
  return query.refine(({ from, to }) => !(from && to && from > to), { path: ['from'], when: () => true })
}

/** The largest least number of points or comments. */
export const MINIMUM_MAX = 999_999_999

/** An optional integer of a query; null if it is absent. */
export function optionalInteger(
  description: string,
  minimum: number,
  maximum: number,
): z.ZodType<number | null, string | undefined> {
  return z
    .string()
    .transform((text) => (/^(?:0|[1-9]\d{0,8})$/.test(text) ? Number(text) : NaN))
    .pipe(z.int().min(minimum).max(maximum))
    .meta({ description, type: 'integer', minimum, maximum })
    .optional()
    .transform((value) => value ?? null)
}

/** Least numbers of an item. */
export const minimumFields = {
  minPoints: optionalInteger('Least points, in the unit of the source.', 0, MINIMUM_MAX),
  minComments: optionalInteger('Least number of comments; an unknown number is 0.', 0, MINIMUM_MAX),
}

const MINIMUM_RULE = `an integer from 0 to ${MINIMUM_MAX}`

/** What {@link minimumFields} accept, for messages. */
export const MINIMUM_RULES = { minPoints: MINIMUM_RULE, minComments: MINIMUM_RULE }

/** What {@link sourceList} accepts, for messages. */
export const SOURCES_RULE = `a comma-separated list of at most ${SOURCES_MAX} of hn, lobsters, lesswrong, midjourney, github and hype:<provider>`

/** Sources, comma-separated; empty for all. */
export const sourceList = z
  .string()
  .optional()
  .transform((text) => text?.split(',') ?? [])
  .refine((sources) => sources.length <= SOURCES_MAX && sources.every(isKnownSource))

/** `GET /api/search`. */
export const searchQuery = inOrder(
  z.object({
    q: typedText.meta({
      description: `Search words; at most ${QUERY_MAX_WORDS}, the rest is ignored.`,
      example: 'search engine',
    }),
    source: sourceList.meta({
      description: 'Sources to search, comma-separated: `hn,lobsters`. Default: all.',
    }),
    ...minimumFields,
    ...range,
    sort: z
      .enum(SEARCH_SORTS)
      .default('relevance')
      .meta({
        description: [
          'Order of the items. `newest` and `points`, in the unit of each source, list only items with all words; items',
          'with unknown points come last, and those with equal ones newest first.',
        ].join(' '),
      }),
    limit,
    cursor: z
      .string()
      .optional()
      .transform((cursor) => cursor ?? null)
      .meta({ description: 'The `cursor` of the previous page.' }),
  }),
)

/** `GET /api/similar`. */
export const similarQuery = z.object({ key, limit })

/** `GET /api/trend`: of an item or of a term. */
export const trendQuery = inOrder(
  z.object({
    key: key.optional(),
    term: typedText.optional().meta({ description: 'A term, parsed like `q` of the search.' }),
    ...range,
  }),
)

const CODES = {
  q: 'invalid_query',
  source: 'invalid_source',
  minPoints: 'invalid_minimum',
  minComments: 'invalid_minimum',
  from: 'invalid_time',
  to: 'invalid_time',
  sort: 'invalid_sort',
  limit: 'invalid_limit',
  cursor: 'invalid_cursor',
  key: 'invalid_key',
  term: 'invalid_trend',
} satisfies Record<string, SearchRefusal>

/** A search query; `query` and `sources` are `q` and `source` of the route. */
export interface SearchQuery extends Omit<z.infer<typeof searchQuery>, 'q' | 'source'> {
  /** The typed text; every text is valid (docs/api.md). */
  query: string
  /** Names as in a signal; empty for all. */
  sources: readonly string[]
}

export interface TermTrendQuery {
  term: string
  /** Days of items, both included. */
  from: Day | null
  to: Day | null
}

/** @throws Refusal for the first of q, source, minPoints, minComments, from, to, sort, limit that is wrong */
export function parseSearchRequest(params: URLSearchParams): SearchQuery {
  const { q, source, ...rest } = parseQuery(searchQuery, params, CODES)
  return { query: q, sources: source, ...rest }
}

/** @throws Refusal `invalid_key`, then `invalid_limit` */
export function parseSimilarRequest(params: URLSearchParams): z.infer<typeof similarQuery> {
  return parseQuery(similarQuery, params, CODES)
}

/** @throws Refusal `invalid_trend` unless exactly one of `key` and `term` is given, and no time with `key` */
export function parseTrendRequest(params: URLSearchParams): { key: string } | TermTrendQuery {
  const isItem = params.has('key')
  const code: SearchRefusal = 'invalid_trend'
  if (!isItem && !params.has('term')) throw invalidParameter(code, 'term', [])
  const excess = isItem ? ['term', 'from', 'to'].find((name) => params.has(name)) : undefined
  if (excess !== undefined) throw invalidParameter(code, excess, params.getAll(excess))
  const { term = '', from, to, ...item } = parseQuery(trendQuery, params, CODES)
  return item.key === undefined ? { term, from, to } : { key: item.key }
}

/** The save key of a query. @throws Refusal `invalid_key` */
export function parseKey(params: URLSearchParams): string {
  return parseQuery(z.object({ key }), params, CODES).key
}

// Callers

/** Groups of callers, in the order in which their waiting queries run: the chat's tools, those of MCP clients, all others. */
export const SEARCH_GROUPS = ['chat', 'mcp', 'others'] as const

export interface SearchCaller {
  group: (typeof SEARCH_GROUPS)[number]
  /** Aborts a query that still waits for its turn; null for never. */
  signal: AbortSignal | null
}

// Results

/** Match of an item: every word, every word with the last one as a prefix, or some words. */
const MATCHES = ['all', 'prefix', 'some'] as const
export type Match = (typeof MATCHES)[number]

/** Reasons of similarity. */
const SIMILARITIES = ['same-discussion', 'near-duplicate-title', 'same-subject'] as const
export type Similarity = (typeof SIMILARITIES)[number]

const day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/)
const count = z.int().nullable()

/** A stored item, at the values of its latest signal. */
const indexedItemSchema = z.strictObject({
  key: z.string().meta({ description: 'Save key' }),
  source: z.string(),
  sourceId: z.string(),
  title: z.string(),
  url: z.string().nullable(),
  discussionUrl: z.string().nullable(),
  day: day.meta({
    description: 'UTC day of its publication, or of its first observation if that is unknown',
  }),
  publishedAt: z.string().nullable(),
  firstDay: day.meta({ description: 'First day with an observation' }),
  lastDay: day.meta({ description: 'Last day with an observation; points and comments are of this day' }),
  points: count,
  comments: count,
})
export type IndexedItem = z.infer<typeof indexedItemSchema>

/** A stored item under its verified title where there is one. */
export interface StoredItem extends IndexedItem {
  /** Details from the item's source; null or empty when unknown. */
  author: string | null
  tags: readonly string[]
  description: string | null
}

export const searchPageSchema = z
  .strictObject({
    items: z.array(
      indexedItemSchema.extend({
        match: z.enum(MATCHES).meta({
          description: 'Match of the item: `all` words, all with the last one as a `prefix`, or `some` words',
        }),
      }),
    ),
    cursor: z.string().nullable().meta({ description: 'Value for the next page; null on the last page' }),
    total: count.meta({
      description: [
        'Number of items with all words, the last one also as a prefix, on all pages together;',
        `null if it is greater than ${PAGED_ITEMS_MAX}`,
      ].join(' '),
    }),
  })
  .meta({ id: 'SearchPage' })
export type SearchPage = z.infer<typeof searchPageSchema>
export type SearchHit = SearchPage['items'][number]

export const similarSchema = z
  .strictObject({
    key: z.string(),
    items: z.array(
      indexedItemSchema.extend({
        reasons: z.array(z.enum(SIMILARITIES)),
        score: z.number().meta({ description: 'Similarity of the titles, 0 to 1' }),
        sharedWords: z.array(z.string()).meta({ description: 'Words in both titles, rarest first' }),
      }),
    ),
  })
  .meta({ id: 'SimilarItems' })
export type SimilarItem = z.infer<typeof similarSchema>['items'][number]

const itemTrendSchema = z
  .strictObject({
    key: z.string(),
    title: z.string(),
    url: z.string().nullable(),
    publishedAt: z.string().nullable(),
    days: z.array(
      z.strictObject({
        day,
        points: count,
        comments: count,
        rank: count.meta({
          description: 'Rank by points among the items of its source on that day',
        }),
        of: z.int().meta({ description: 'Number of items of its source with points on that day' }),
      }),
    ),
  })
  .meta({ id: 'ItemTrend' })
export type ItemTrend = z.infer<typeof itemTrendSchema>

const termTrendSchema = z
  .strictObject({
    term: z.string(),
    mentions: z.int(),
    days: z.array(z.strictObject({ day, mentions: z.int() })),
  })
  .meta({ id: 'TermTrend' })
/** Days with a mention, ascending; at most {@link TREND_MAX_DAYS}, the latest. */
export type TermTrend = Omit<z.infer<typeof termTrendSchema>, 'term'>

export const trendSchema = z.union([itemTrendSchema, termTrendSchema]).meta({ id: 'Trend' })

/** The UTC day of an item: of its publication, or of its first observation when that is unknown. */
export function dayOfItem(publishedAt: string | null, firstDay: Day): Day {
  return publishedAt === null ? firstDay : publishedAt.slice(0, 10)
}
