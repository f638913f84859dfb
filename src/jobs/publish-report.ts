import { formatInstant } from '../domain/time.ts'
import type { Day, Instant } from '../domain/time.ts'
import { countDistinctItems, countItems } from '../domain/year/envelope.ts'
import type { SealedYear } from '../domain/year/envelope.ts'
import { lastCompleteDay } from '../domain/year/ledger.ts'
import type { Attempt, GapReason, Manifest } from '../domain/year/ledger.ts'
import type { Coverage } from '../domain/year/schema.ts'

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
  /** Number of distinct items of all lists. */
  distinctItems: number | null
  coverage: Coverage | null
  /** Number of gaps that this run recorded. */
  gapsRecorded: number
  durationMs: number
  reason: string | null
}

/** Creates the report of a run from `startedAt` to `now`; absent facts are null. */
export function publishReport(
  outcome: PublishReport['outcome'],
  startedAt: Instant,
  now: Instant,
  facts: Partial<PublishReport>,
): PublishReport {
  return {
    job: 'publish-year',
    outcome,
    asOfDay: lastCompleteDay(startedAt),
    attempt: null,
    publicationId: null,
    sha256: null,
    byteSize: null,
    publishedAt: null,
    items: null,
    distinctItems: null,
    coverage: null,
    gapsRecorded: 0,
    durationMs: now - startedAt,
    reason: null,
    ...facts,
  }
}

/** Describes a gap and its remedy in one line that begins with the recorded reason. */
export function describeGap(
  asOfDay: Day,
  { reason, attempts }: { reason: GapReason; attempts: number },
  attemptsOfDay: readonly Attempt[],
): string {
  const remedy = 'this gap is permanent; fix the cause before the next publication'
  if (reason === 'missed') return `missed: no run published ${asOfDay} in time; ${remedy}`
  const failure = attemptsOfDay.at(-1)?.reason ?? null
  const lastFailure =
    failure === null ? 'the last run ended without a reason' : `the last failed with: ${failure}`
  return `attempts_spent: all ${attempts} attempts for ${asOfDay} are used up; ${lastFailure}; ${remedy}`
}

/** The report members of a manifest. */
export function manifestFacts(manifest: Manifest): Partial<PublishReport> {
  const { publicationId, sha256, byteSize, publishedAt } = manifest
  return { publicationId, sha256, byteSize, publishedAt: formatInstant(publishedAt) }
}

/** The report members of a publication's contents. */
export function contentFacts({ envelope: { feed, coverage } }: SealedYear): Partial<PublishReport> {
  return { items: countItems(feed), distinctItems: countDistinctItems(feed), coverage }
}
