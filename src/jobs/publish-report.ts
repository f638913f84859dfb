import { formatInstant } from '../domain/time.ts'
import type { Day, Instant } from '../domain/time.ts'
import { countDistinctItems, countItems } from '../domain/year/envelope.ts'
import type { SealedYear } from '../domain/year/envelope.ts'
import type { Attempt, GapReason, Manifest } from '../domain/year/ledger.ts'
import type { Coverage } from '../domain/year/schema.ts'
import { lastCompleteDay } from '../domain/year/window.ts'

/** The JSON result of `publish-year` (docs/publishing.md). */
export interface PublishReport {
  job: 'publish-year'
  outcome: 'published' | 'already-published' | 'failed' | 'gap' | 'dry-run'
  asOfDay: Day
  attempt: number | null
  publicationId: string | null
  sha256: string | null
  byteSize: number | null
  publishedAt: string | null
  items: Record<string, number> | null
  /** Items of all lists together, each counted once. */
  distinctItems: number | null
  coverage: Coverage | null
  durationMs: number
  reason: string | null
}

/** The report of a run that ended before it could make one, for the same as-of day. */
export function failedReport(now: Instant, startedAt: Instant, reason: string): PublishReport {
  return { ...emptyReport('failed', lastCompleteDay(startedAt)), durationMs: now - startedAt, reason }
}

/** A report with nothing in it but its outcome and day. */
export function emptyReport(outcome: PublishReport['outcome'], asOfDay: Day): PublishReport {
  return {
    job: 'publish-year',
    outcome,
    asOfDay,
    attempt: null,
    publicationId: null,
    sha256: null,
    byteSize: null,
    publishedAt: null,
    items: null,
    distinctItems: null,
    coverage: null,
    durationMs: 0,
    reason: null,
  }
}

/** Why a day is a gap, and what to do about it, in one line that begins with the recorded reason. */
export function describeGap(
  asOfDay: Day,
  { reason, attempts }: { reason: GapReason; attempts: number },
  tried: readonly Attempt[],
): string {
  const mend = 'the day stays a gap, so mend the cause before the next day is published'
  if (reason === 'missed') return `missed: no run published ${asOfDay} in time; ${mend}`
  const failure = tried.at(-1)?.reason ?? null
  const last = failure === null ? 'a run that died gave no reason' : `the last failed with: ${failure}`
  return `attempts_spent: all ${attempts} attempts for ${asOfDay} are spent; ${last}; ${mend}`
}

/** What a report says of a manifest. */
export function describe(manifest: Manifest): Partial<PublishReport> {
  const { publicationId, sha256, byteSize, publishedAt } = manifest
  return { publicationId, sha256, byteSize, publishedAt: formatInstant(publishedAt) }
}

/** What a report says of a publication's contents. */
export function contents({ envelope }: SealedYear): Partial<PublishReport> {
  const { feed } = envelope
  return { items: countItems(feed), distinctItems: countDistinctItems(feed), coverage: envelope.coverage }
}
