import { z } from 'zod'
import { githubSchema, instantSchema, itemFields, nonBlankText } from '../feed/columns.ts'
import { countField, dayField } from '../wire-format.ts'

/**
 * Wire schemas of the Year publication, version 3 (docs/ranking.md). The job seals valid data only, the server refuses
 * invalid archived bytes, and the OpenAPI document derives from them.
 */

const day = dayField.describe('UTC day')

export const yearItemSchema = z
  .object({
    ...itemFields,
    source: itemFields.source.describe(
      'source as in the daily signals: `hn`, `lobsters`, `lesswrong`, `hype:<provider>`, `midjourney`',
    ),
    title: nonBlankText.describe('title as its own source returned it, not only white space'),
    comments: itemFields.comments.describe('latest stored number of comments'),
    event_title_verified: z.literal(true),
    title_provenance: nonBlankText.describe('channel of the source that confirmed the title'),
  })
  .meta({ id: 'YearItem' })

const column = z.array(yearItemSchema).max(100)

const coverageSchema = z
  .object({
    targetDays: z.literal(365),
    materializedDays: countField
      .max(365)
      .describe('days of the window with a signal of at least one news source'),
    complete: z.boolean().describe('true if every day of the window is materialized'),
    firstDay: day.nullable().describe('first materialized day of the window'),
    lastDay: day.nullable().describe('last materialized day of the window'),
    missingDays: z.array(day).describe('days of the window that are not materialized'),
    sources: z.record(
      z.string(),
      z.object({
        materializedDays: countField.max(365),
        events: countField.describe('distinct events with a signal observed inside the window'),
        eligibleEvents: countField,
      }),
    ),
    excludedCohorts: z.array(z.object({ provider: z.string(), eligibleEvents: countField })),
    unverified: countField.describe(
      'events left out for their title: hype and image events without provenance, and news events whose own source gives a title of more than 1,000 characters',
    ),
  })
  .meta({ id: 'YearCoverage' })

const yearFeedSchema = z
  .object({
    hackerNews: column,
    lobsters: column,
    lessWrong: column,
    hypeReplicate: column,
    popular: column.describe('merged top 100 of the three news sources'),
    midjourney: column,
    github: githubSchema,
    virality: z
      .record(z.string(), z.number().min(0).max(100))
      .describe('save key to 100 * percentile, two decimals'),
  })
  .meta({ id: 'YearFeed' })

export const yearEnvelopeSchema = z
  .object({
    schemaVersion: z.literal(3),
    kind: z.literal('top-year-publication'),
    publicationId: z.string().regex(/^top-year-v3-\d{4}-\d{2}-\d{2}$/),
    algorithmVersion: z.literal('top-year-v3'),
    asOfDay: day,
    generatedAt: instantSchema,
    windowStart: instantSchema,
    windowEnd: instantSchema.describe('exclusive'),
    coverage: coverageSchema,
    feed: yearFeedSchema,
    archivedAt: instantSchema.describe('publication time, used for selection and Last-Modified'),
  })
  .meta({ id: 'YearPublication' })

export type YearItem = z.infer<typeof yearItemSchema>
export type Coverage = z.infer<typeof coverageSchema>
export type YearFeed = z.infer<typeof yearFeedSchema>
export type YearEnvelope = z.infer<typeof yearEnvelopeSchema>
