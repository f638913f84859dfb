import { z } from 'zod'
import { Refusal } from '../refusal.ts'
import { parseDay } from '../time.ts'
import type { Day } from '../time.ts'
import { LIMIT_DEFAULT, LIMIT_MAX, MATCHES, QUERY_MAX_LENGTH, SIMILARITIES } from './search.ts'
import type {
  ItemTrend,
  SearchPage,
  SearchQuestion,
  SearchRefusal,
  SimilarItem,
  TermTrend,
  TermTrendQuestion,
} from './search.ts'
import { isKnownSource, itemsOfKey } from './source.ts'

/** Most sources one question names. */
const SOURCES_MAX = 20

const LIMIT_PATTERN = /^[1-9]\d{0,2}$/

/**
 * The question of `GET /api/search` (docs/search.md).
 *
 * @param params the query as parsed; a name given twice is invalid
 * @throws Refusal for the first of q, source, from, to, limit that is wrong
 */
export function parseSearchRequest(params: URLSearchParams): SearchQuestion {
  return {
    query: parseText(params, 'q', 'invalid_query'),
    sources: parseSources(params),
    ...parseDays(params),
    limit: parseLimit(params),
    cursor: once(params, 'cursor', 'invalid_cursor'),
  }
}

/**
 * The question of `GET /api/similar` (docs/search.md).
 *
 * @throws Refusal `invalid_key`, then `invalid_limit`
 */
export function parseSimilarRequest(params: URLSearchParams): { key: string; limit: number } {
  return { key: parseKey(params), limit: parseLimit(params) }
}

/**
 * The question of `GET /api/trend` (docs/search.md): of an item or of a term.
 *
 * @throws Refusal `invalid_trend` unless exactly one of the two is asked for, and no time with an item
 */
export function parseTrendRequest(params: URLSearchParams): { key: string } | TermTrendQuestion {
  if (params.has('key') === params.has('term')) throw new Refusal<SearchRefusal>('invalid_trend')
  if (params.has('term')) return { term: parseText(params, 'term', 'invalid_trend'), ...parseDays(params) }
  if (params.has('from') || params.has('to')) throw new Refusal<SearchRefusal>('invalid_trend')
  return { key: parseKey(params) }
}

function once(params: URLSearchParams, name: string, code: SearchRefusal): string | null {
  const [value, ...others] = params.getAll(name)
  if (others.length > 0) throw new Refusal<SearchRefusal>(code)
  return value ?? null
}

function parseText(params: URLSearchParams, name: string, code: SearchRefusal): string {
  const text = once(params, name, code)
  if (text === null || text.trim() === '' || text.length > QUERY_MAX_LENGTH) {
    throw new Refusal<SearchRefusal>(code)
  }
  return text
}

function parseSources(params: URLSearchParams): string[] {
  const sources = once(params, 'source', 'invalid_source')?.split(',') ?? []
  if (sources.length > SOURCES_MAX || !sources.every(isKnownSource)) {
    throw new Refusal<SearchRefusal>('invalid_source')
  }
  return sources
}

function parseDays(params: URLSearchParams): { from: Day | null; to: Day | null } {
  const [from, to] = ['from', 'to'].map((name) => {
    const text = once(params, name, 'invalid_time')
    const day = text === null ? null : parseDay(text)
    if (text !== null && day === null) throw new Refusal<SearchRefusal>('invalid_time')
    return day
  })
  if (from && to && from > to) throw new Refusal<SearchRefusal>('invalid_time')
  return { from: from ?? null, to: to ?? null }
}

function parseLimit(params: URLSearchParams): number {
  const text = once(params, 'limit', 'invalid_limit')
  if (text === null) return LIMIT_DEFAULT
  if (!LIMIT_PATTERN.test(text) || Number(text) > LIMIT_MAX) throw new Refusal<SearchRefusal>('invalid_limit')
  return Number(text)
}

/** The save key of a question. @throws Refusal `invalid_key` */
export function parseKey(params: URLSearchParams): string {
  const key = once(params, 'key', 'invalid_key') ?? ''
  if (itemsOfKey(key).length === 0) throw new Refusal<SearchRefusal>('invalid_key')
  return key
}

/** What `/api/search`, `/api/similar` and `/api/trend` answer (docs/search.md). */

const day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/)
const count = z.int().nullable()

const item = {
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
}

export const searchPageSchema: z.ZodType<SearchPage> = z
  .strictObject({
    items: z.array(
      z.strictObject({
        ...item,
        match: z
          .enum(MATCHES)
          .meta({ description: '`all` words; all with the last one begun (`prefix`); or `some` of them' }),
      }),
    ),
    cursor: z.string().nullable().meta({ description: 'Asks for the next page; null on the last' }),
  })
  .meta({ id: 'SearchPage' })

export const similarSchema: z.ZodType<{ key: string; items: SimilarItem[] }> = z
  .strictObject({
    key: z.string(),
    items: z.array(
      z.strictObject({
        ...item,
        reasons: z.array(z.enum(SIMILARITIES)),
        score: z.number().meta({ description: 'How alike the titles are, 0 to 1' }),
        sharedWords: z.array(z.string()).meta({ description: 'Words both titles hold, rarest first' }),
      }),
    ),
  })
  .meta({ id: 'SimilarItems' })

const itemTrend: z.ZodType<ItemTrend> = z
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

const termTrend: z.ZodType<TermTrend & { term: string }> = z
  .strictObject({
    term: z.string(),
    mentions: z.int(),
    days: z.array(z.strictObject({ day, mentions: z.int() })),
  })
  .meta({ id: 'TermTrend' })

export const trendSchema: z.ZodType<ItemTrend | (TermTrend & { term: string })> = z
  .union([itemTrend, termTrend])
  .meta({ id: 'Trend' })
