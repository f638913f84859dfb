import { z } from 'zod'
import { CLOCK_TOLERANCE_MS } from '../../clock-check.ts'
import { readAs } from '../../feed/source.ts'
import { formatInstant, parseInstant } from '../../time.ts'
import type { Instant } from '../../time.ts'
import {
  invalidParameter,
  parseQuery,
  countField,
  dayField,
  digestField,
  instantField,
  seqField,
} from '../../wire-format.ts'
import type { ProvedLedger, TimelineItem } from '../chain.ts'
import { sealOf } from '../ledger.ts'
import type { Head } from '../ledger.ts'

const instantSchema = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z$/)
  .transform(readAs(parseInstant, 'not a real instant'))

/** The query of `GET /api/feed/history` (docs/api.md). */
export const historyQuerySchema = z.object({
  sort: z.enum(['year']).meta({ description: 'Only `year` is accepted.', example: 'year' }),
  at: instantSchema.optional().meta({
    description:
      'UTC instant, `YYYY-MM-DDTHH:mm:ssZ` with one to three optional fraction digits, at most five minutes in the future. Default: now.',
  }),
})

/**
 * Parses a history request.
 *
 * @param params the parsed query string; a name given twice is invalid
 * @param now default of `at`
 * @throws Refusal `invalid_sort`, then `invalid_at`
 */
export function parseHistoryQuery(params: URLSearchParams, now: Instant): { at: Instant } {
  const codes = { sort: 'invalid_sort', at: 'invalid_at' } satisfies Record<string, HistoryRefusal>
  const { at } = parseQuery(historyQuerySchema, params, codes)
  return { at: pastOr(at, now) }
}

/** The time of a request, `now` if it has none. @throws Refusal `invalid_at` for the future */
export function pastOr(at: Instant | undefined, now: Instant): Instant {
  if (at !== undefined && !isPast(at, now)) {
    const code: HistoryRefusal = 'invalid_at'
    throw invalidParameter(code, 'at', [formatInstant(at)])
  }
  return at ?? now
}

/** Parses the single value of a parameter to an instant at most five minutes ahead of `now`; null for anything else. */
export function parsePastInstant(values: readonly string[], now: Instant): Instant | null {
  const { data } = instantSchema.safeParse(values.length === 1 ? values[0] : null)
  return data !== undefined && isPast(data, now) ? data : null
}

/** True for an instant at most five minutes ahead of `now`. */
export function isPast(at: Instant, now: Instant): boolean {
  return at <= now + CLOCK_TOLERANCE_MS
}

/** Refusal codes of `GET /api/feed/history` (docs/api.md): the whole, closed list. */
export const HISTORY_REFUSALS = [
  'invalid_sort',
  'invalid_at',
  'year_history_not_found',
  'method_not_allowed',
  'year_history_storage_unavailable',
  'year_history_archive_corrupt',
  'year_history_lookup_failed',
] as const
export type HistoryRefusal = (typeof HISTORY_REFUSALS)[number]

/** The history index (docs/api.md): every publication and every gap, without the contents. */

const day = dayField.describe('UTC day')

const indexedPublicationSchema = z
  .strictObject({
    publicationId: z.string(),
    asOfDay: day,
    publishedAt: instantField.describe('value of `at` that returns this publication'),
    sha256: digestField.describe('SHA-256 of the publication; also its ETag'),
    byteSize: countField,
    algorithmVersion: z.string(),
    schemaVersion: z.int(),
    ledger: z.enum(['v1', 'versioned']),
    own: z.boolean().describe('false for publications imported from an older archive'),
    seq: seqField.describe('position in its ledger'),
    leaf: digestField
      .nullable()
      .describe('leaf of its entry; null in the legacy ledger, which has one seal for all'),
  })
  .meta({ id: 'IndexedPublication' })

const indexedGapSchema = z
  .strictObject({
    asOfDay: day,
    reason: z.enum(['attempts_spent', 'missed']),
    attempts: countField.describe('number of counted attempts'),
    recordedAt: instantField,
    seq: seqField,
    leaf: digestField,
  })
  .meta({ id: 'IndexedGap' })

/** The content of a head file. */
export const headSchema = z.strictObject({ seq: seqField, leaf: digestField, time: instantField })

export const historyIndexSchema = z
  .strictObject({
    head: headSchema.nullable().describe('the newest head'),
    publications: z
      .array(indexedPublicationSchema)
      .describe('in order; `at` selects the last one at or before it'),
    gaps: z.array(indexedGapSchema).describe('in the order of their entries'),
  })
  .meta({ id: 'YearHistoryIndex' })

type HistoryIndex = z.infer<typeof historyIndexSchema>

/** The members that a reader of a publication needs; a newer host may serve more. */
const listedPublicationSchema = indexedPublicationSchema
  .pick({ publicationId: true, asOfDay: true, publishedAt: true, sha256: true })
  .strip()

export type ListedPublication = z.infer<typeof listedPublicationSchema>

/** Parses the publications of another host's index; null if it is something else. */
export function parseHistoryIndex(json: unknown): ListedPublication[] | null {
  return (
    z.object({ publications: z.array(listedPublicationSchema) }).safeParse(json).data?.publications ?? null
  )
}

/**
 * Creates the index of both ledgers.
 *
 * @param head the newest head whose entry is there
 */
export function historyIndex(proved: ProvedLedger, head: Head | null): HistoryIndex {
  const { entries } = proved
  // Imported entries end with the seal.
  const sealSeq = sealOf(entries)?.seq ?? 0
  return {
    head: head && { seq: head.seq, leaf: head.leaf, time: formatInstant(head.time) },
    publications: proved.timeline.map(({ manifest, ledger, seq: entrySeq }) => ({
      publicationId: manifest.publicationId,
      asOfDay: manifest.asOfDay,
      publishedAt: formatInstant(manifest.publishedAt),
      sha256: manifest.sha256,
      byteSize: manifest.byteSize,
      algorithmVersion: manifest.algorithmVersion,
      schemaVersion: manifest.schemaVersion,
      ledger,
      own: ledger === 'versioned' && entrySeq > sealSeq,
      seq: entrySeq,
      leaf: ledger === 'versioned' ? (entries[entrySeq - 1]?.leaf ?? null) : null,
    })),
    gaps: entries.flatMap((entry) => {
      if (entry.kind !== 'gap') return []
      const { asOfDay, reason, attempts, recordedAt, seq: entrySeq, leaf } = entry
      return [{ asOfDay, reason, attempts, recordedAt: formatInstant(recordedAt), seq: entrySeq, leaf }]
    }),
  }
}

/**
 * The history in the terms of Memento, RFC 7089. There is no TimeGate: it needs `Vary`, which most CDNs ignore, and redirects
 * that must not be cached.
 */

/** The history without a time, whose states the publications are, below the base URL of a server. */
const ORIGINAL_PATH = '/api/feed/history?sort=year'

/** Returns the path that selects a publication: the history at its own publication time. */
export function mementoPath(publishedAt: Instant): string {
  return `${ORIGINAL_PATH}&at=${formatInstant(publishedAt)}`
}

/**
 * Returns true if no later entry can change the publication that a time selects. Own publications are always published
 * after all earlier ones, and imported ones enter an empty ledger together.
 */
export function isFinalAt(timeline: readonly TimelineItem[], at: Instant): boolean {
  const last = timeline.at(-1)
  return last !== undefined && at <= last.manifest.publishedAt
}

/** Formats an instant as HTTP headers do: GMT, to the second. */
export function formatHttpDate(at: Instant): string {
  return new Date(at).toUTCString()
}
