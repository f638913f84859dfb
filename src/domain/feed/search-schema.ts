import { z } from 'zod'
import { MATCHES, SIMILARITIES } from './search.ts'
import type { ItemTrend, SearchPage, SimilarItem, TermTrend } from './search.ts'

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

export const trendSchema: z.ZodType<ItemTrend | (TermTrend & { term: string })> = z.union([
  itemTrend,
  termTrend,
])
