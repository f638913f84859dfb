import { Refusal } from '../refusal.ts'
import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import type { Signal } from './signal.ts'
import type { ItemRef } from './source.ts'

/** The sources `dash collect` reads, in the order they are reported (docs/collecting.md). */
export const LIVE_SOURCES = [
  'hn',
  'lobsters',
  'lesswrong',
  'hype:github',
  'hype:huggingface',
  'hype:replicate',
  'hype:reddit',
] as const
export type LiveSourceName = (typeof LIVE_SOURCES)[number]

/** A source is unavailable; `retryAt` is the earliest retry it requested, or null. */
export class SourceUnavailable extends Refusal<Extract<TitleRefusal, 'source_unavailable'>> {
  readonly retryAt: Instant | null

  constructor(detail: string, { cause, retryAt = null }: { cause?: unknown; retryAt?: Instant | null } = {}) {
    const retryText = retryAt === null ? '' : `; it allows the next request at ${formatInstant(retryAt)}`
    super('source_unavailable', `${detail}${retryText}`, { cause })
    this.retryAt = retryAt
  }
}

/** A row of a response that was left out. */
interface BadRow {
  /** The source's id of the row; null when it is missing or unreadable. */
  sourceId: string | null
  reason: string
}

/** A failed request to a source; its other results are not affected. */
export interface SourceFailure {
  reason: string
  retryAt: Instant | null
}

/** A batch of results of a source. */
export interface SourceBatch {
  /** Observations of the run's day, each event once a run. */
  signals: Signal[]
  details: ItemDetails[]
  badRows: BadRow[]
  failures: SourceFailure[]
  /** Requests sent for this batch, including retries. */
  requests: number
  /** Requests among these that returned "not modified". */
  notModified: number
  /** Milliseconds by which the source's clock is ahead of this one, for each response with a time. */
  skews: number[]
}

/** A stored response of a source, for conditional requests. */
export interface KeptResponse {
  etag: string | null
  lastModified: string | null
  /** The body, as text. */
  body: string
  keptAt: Instant
}

/** Details of an item from its source; shown, but never used for ranking. */
export interface ItemDetails extends ItemRef {
  /** Name or account of the submitter or author; null when the source gives none. */
  author: string | null
  /** The source's own tags, as it spells them. */
  tags: readonly string[]
  /** A line or two from the source itself, or null. */
  description: string | null
  collectedAt: Instant
}

/** Refusals of {@link TitleSource}. */
export type TitleRefusal = 'source_unavailable' | 'title_not_vouched'
