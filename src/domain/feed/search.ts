import { z } from 'zod'
import type { SlotBounds } from '../fair-queue.ts'
import { parseQuery } from '../query.ts'
import { Refusal } from '../refusal.ts'
import { parseDay } from '../time.ts'
import type { Day } from '../time.ts'
import { isKnownSource, itemsOfKey } from './source.ts'

/** Queries of stored items, and their results (docs/api.md). */

/** Most items of one page. */
export const LIMIT_MAX = 100
const LIMIT_DEFAULT = 20

/** How many items of a ranking can be reached by its pages. */
export const REACH_MAX = 1_000

/** Longest text a query may hold, in UTF-16 units, and the most words of it that are looked for. */
export const QUERY_MAX_LENGTH = 1_000
export const QUERY_MAX_WORDS = 32

/** Most days a trend of a term covers. */
export const TREND_MAX_DAYS = 3_660

/** Most sources one query names. */
const SOURCES_MAX = 20

/** Open queries: of one address, of one network, and in all (docs/api.md). */
export const SEARCH_PLACES: SlotBounds = { perAddress: 4, perNetwork: 16, all: 64 }

/** Longest time of a query, from its turn on. */
export const QUERY_TIMEOUT_MS = 2_000

/** When a refused caller may try again: every query that ran has ended by then. */
export const SEARCH_RETRY_AFTER_SECONDS = QUERY_TIMEOUT_MS / 1_000

/** Refusal codes of `/api/search`, `/api/similar` and `/api/trend` (docs/api.md): the whole, closed list. */
export const SEARCH_REFUSALS = [
  'invalid_query',
  'invalid_source',
  'invalid_time',
  'invalid_limit',
  'invalid_cursor',
  'invalid_key',
  'invalid_trend',
  'item_not_found',
  'method_not_allowed',
  'search_limit',
  'search_busy',
  'search_unavailable',
  'search_damaged',
  'search_failed',
] as const
export type SearchRefusal = (typeof SEARCH_REFUSALS)[number]

/**
 * Refusals of {@link CallerSearch} beside those of stores: `search_limit` when the caller's address or network has too
 * many open queries, `search_busy` when all places are taken.
 */
export type FeedSearchRefusal = Extract<
  SearchRefusal,
  'invalid_cursor' | 'item_not_found' | 'search_limit' | 'search_busy'
>

/** Refusals of indexing. */
export type SearchIndexRefusal = 'rebuild_superseded'

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
    description: `Most items of the answer; default ${LIMIT_DEFAULT}.`,
    type: 'integer',
    minimum: 1,
    maximum: LIMIT_MAX,
  })

function dayOrNone(description: string) {
  return z
    .string()
    .refine((text) => parseDay(text) !== null)
    .meta({ description, format: 'date' })
    .optional()
    .transform((text) => text ?? null)
}

const range = {
  from: dayOrNone('First day of items, `YYYY-MM-DD`, UTC.'),
  to: dayOrNone('Last day of items, `YYYY-MM-DD`, UTC.'),
}

/** Days in their order; checked beside other errors, so that the first wrong parameter is refused. */
function inOrder<Query extends z.ZodType<{ from: Day | null; to: Day | null }>>(query: Query): Query {
  return query.refine(({ from, to }) => !(from && to && from > to), { path: ['from'], when: () => true })
}

/** `GET /api/search`. */
export const searchQuery = inOrder(
  z.object({
    q: typedText.meta({
      description: `Words to look for; at most ${QUERY_MAX_WORDS}, the rest is ignored.`,
      example: 'search engine',
    }),
    source: z
      .string()
      .optional()
      .transform((text) => text?.split(',') ?? [])
      .refine((sources) => sources.length <= SOURCES_MAX && sources.every(isKnownSource))
      .meta({ description: 'Sources to look in, comma-separated: `hn,lobsters`. Default: all.' }),
    ...range,
    limit,
    cursor: z
      .string()
      .optional()
      .transform((cursor) => cursor ?? null)
      .meta({ description: 'The `cursor` of the page before.' }),
  }),
)

/** `GET /api/similar`. */
export const similarQuery = z.object({ key, limit })

/** `GET /api/trend`: of an item or of a term. */
export const trendQuery = inOrder(
  z.object({
    key: key.optional(),
    term: typedText.optional().meta({ description: 'A term, read like `q` of the search.' }),
    ...range,
  }),
)

const CODES = {
  q: 'invalid_query',
  source: 'invalid_source',
  from: 'invalid_time',
  to: 'invalid_time',
  limit: 'invalid_limit',
  cursor: 'invalid_cursor',
  key: 'invalid_key',
  term: 'invalid_trend',
} satisfies Record<string, SearchRefusal>

/** A search as {@link CallerSearch} takes it; `query` and `sources` are `q` and `source` of the route. */
export interface SearchQuery extends Omit<z.infer<typeof searchQuery>, 'q' | 'source'> {
  /** Text as a person typed it; no text is an error (docs/api.md). */
  query: string
  /** As in a signal; none: all. */
  sources: readonly string[]
}

export interface TermTrendQuery {
  term: string
  /** Days of items, both included. */
  from: Day | null
  to: Day | null
}

/** @throws Refusal for the first of q, source, from, to, limit that is wrong */
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
  if (isItem === params.has('term') || (isItem && (params.has('from') || params.has('to'))))
    throw new Refusal<SearchRefusal>('invalid_trend')
  const { term = '', from, to, ...item } = parseQuery(trendQuery, params, CODES)
  return item.key === undefined ? { term, from, to } : { key: item.key }
}

/** The save key of a query. @throws Refusal `invalid_key` */
export function parseKey(params: URLSearchParams): string {
  return parseQuery(z.object({ key }), params, CODES).key
}

// Callers

/** Who asks the search. */
export interface SearchCaller {
  /** As `clientAddress` gives it: open queries are counted by it, and addresses are served in turn. */
  address: string
  /** True for the chat's tools: their queries go before all others. */
  isChat: boolean
  /** Aborted when the caller no longer waits: a query that waits for its turn is then dropped. Null: never. */
  signal: AbortSignal | null
}

/** The pages of the server: all visitors share what they read. They have places and turns beside those of clients. */
export const PAGES_CALLER: SearchCaller = { address: 'pages', isChat: false, signal: null }

/** The program itself, where it searches for its own user. */
export const LOCAL_CALLER: SearchCaller = { address: 'local', isChat: false, signal: null }

// Results

/** How much of a query an item holds: every word, every word with the last one begun, or some. */
export const MATCHES = ['all', 'prefix', 'some'] as const
export type Match = (typeof MATCHES)[number]

/** Why an item is similar to another. */
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
    description: 'UTC day of its publication, or of its first observation where that is unknown',
  }),
  publishedAt: z.string().nullable(),
  firstDay: day.meta({ description: 'First day it was observed' }),
  lastDay: day.meta({ description: 'Last day it was observed; points and comments are of this day' }),
  points: count,
  comments: count,
})
export type IndexedItem = z.infer<typeof indexedItemSchema>

/** A stored item under its verified title where there is one. */
export interface StoredItem extends IndexedItem {
  /** What its source says of it beside its numbers; null or none where it said nothing. */
  author: string | null
  tags: readonly string[]
  description: string | null
}

export const searchPageSchema = z
  .strictObject({
    items: z.array(
      indexedItemSchema.extend({
        match: z
          .enum(MATCHES)
          .meta({ description: '`all` words; all with the last one begun (`prefix`); or `some` of them' }),
      }),
    ),
    cursor: z.string().nullable().meta({ description: 'Asks for the next page; null on the last' }),
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
        score: z.number().meta({ description: 'How alike the titles are, 0 to 1' }),
        sharedWords: z.array(z.string()).meta({ description: 'Words both titles hold, rarest first' }),
      }),
    ),
  })
  .meta({ id: 'SimilarItems' })
export type SimilarItem = z.infer<typeof similarSchema>['items'][number]

const itemTrendSchema = z
  .strictObject({
    key: z.string(),
    title: z.string(),
    days: z.array(
      z.strictObject({
        day,
        points: count,
        comments: count,
        rank: count.meta({
          description: 'Place by points among what its source was observed with on that day',
        }),
        of: z
          .int()
          .meta({ description: 'How many items with points the source was observed with on that day' }),
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

/** UTC day an item counts for: of its publication, or of its first observation where that is unknown. */
export function dayOfItem(publishedAt: string | null, firstDay: Day): Day {
  return publishedAt === null ? firstDay : publishedAt.slice(0, 10)
}

/** Result of one step of indexing. */
export interface IndexProgress {
  /** Events taken in by this step. */
  indexed: number
  /** True when nothing is left to do. */
  done: boolean
}
