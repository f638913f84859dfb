import { Refusal } from '../refusal.ts'
import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import type { Signal } from './signal.ts'

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

/** A source could not be read, or not now; `retryAt` is when it asked to be asked again, or null. */
export class SourceUnavailable extends Refusal<Extract<TitleRefusal, 'source_unavailable'>> {
  readonly retryAt: Instant | null

  constructor(detail: string, { cause, retryAt = null }: { cause?: unknown; retryAt?: Instant | null } = {}) {
    const whenToCome = retryAt === null ? '' : `; it asks to come back at ${formatInstant(retryAt)}`
    super('source_unavailable', `${detail}${whenToCome}`, { cause })
    this.retryAt = retryAt
  }
}

/** A row of a reply that was left out. */
interface BadRow {
  /** The source's id of the row, or null when it has none that could be read. */
  sourceId: string | null
  reason: string
}

/** Something that was asked of a source and could not be had; what else it gave is not touched by it. */
export interface SourceFailure {
  reason: string
  retryAt: Instant | null
}

/** A part of what a source gave. */
export interface SourceBatch {
  /** Observations of the run's day, each event once a run. */
  signals: Signal[]
  details: ItemDetails[]
  badRows: BadRow[]
  failures: SourceFailure[]
  /** Questions sent for this batch, repetitions included. */
  requests: number
  /** Of these, answered with "not modified". */
  notModified: number
}

/** An answer of a source, kept so that it need not be sent again while it is unchanged. */
export interface KeptResponse {
  etag: string | null
  lastModified: string | null
  /** The body, as text. */
  body: string
  keptAt: Instant
}

/** What a source says of an item beside its daily numbers; shown with it, never ranked by. */
export interface ItemDetails {
  source: string
  sourceId: string
  /** Name or account of who submitted or wrote it; null where the source names nobody. */
  author: string | null
  /** The source's own tags, as it spells them. */
  tags: readonly string[]
  /** A line or two from the source itself, or null. */
  description: string | null
  collectedAt: Instant
}

/** Refusals of {@link TitleSource}. */
export type TitleRefusal = 'source_unavailable' | 'title_not_vouched'
