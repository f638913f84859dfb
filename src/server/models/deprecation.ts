import { rankedModelDeprecation } from '../../domain/models/shortlist.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import type { Instant } from '../../domain/time.ts'

/**
 * The headers that announce the end of a ranked model: `Deprecation` (RFC 9745) and `Sunset` (RFC 8594); none for a
 * model without an end within 14 days (docs/free-models.md#models-that-end).
 *
 * @param id of the model, as it is ranked
 */
export function deprecationHeaders(
  run: StoredRun,
  id: string,
  now: Instant,
): Readonly<Record<string, string>> {
  const ending = rankedModelDeprecation(run, id, now)
  if (ending === null) return {}
  const { deprecatedAt, sunsetAt } = ending
  return { deprecation: `@${deprecatedAt / 1000}`, sunset: new Date(sunsetAt).toUTCString() }
}
