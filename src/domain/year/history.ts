import { Refusal } from '../refusal.ts'
import { parseInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import type { HistoryRefusal } from './refusals.ts'

/** How far ahead of now a question may lie; exactly this much is allowed (docs/history-api.md). */
export const FUTURE_TOLERANCE_MS = 300_000

const AT_PATTERN = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,3})?Z$/

/**
 * The question a history request asks (docs/history-api.md).
 *
 * @param params the query as parsed; a name given twice is invalid
 * @param now answers `at` when it is absent
 * @throws Refusal `invalid_sort`, then `invalid_at`
 */
export function parseHistoryQuery(params: URLSearchParams, now: Instant): { at: Instant } {
  const sorts = params.getAll('sort')
  if (sorts.length !== 1 || sorts[0] !== 'year') throw new Refusal<HistoryRefusal>('invalid_sort')
  const given = params.getAll('at')
  if (given.length === 0) return { at: now }
  const at = parsePastInstant(given, now)
  if (at === null) throw new Refusal<HistoryRefusal>('invalid_at')
  return { at }
}

/** The one instant that values of a parameter name, at most five minutes ahead of `now`; null for anything else. */
export function parsePastInstant(values: readonly string[], now: Instant): Instant | null {
  const [text = '', ...others] = values
  const instant = others.length === 0 && AT_PATTERN.test(text) ? parseInstant(text) : null
  return instant !== null && instant <= now + FUTURE_TOLERANCE_MS ? instant : null
}
