/**
 * What is known of a model's health: `passed` answered as asked, `imperfect` answered in another form, or the failure
 * (docs/free-models.md).
 */
export type HealthStatus = 'passed' | 'imperfect' | 'not_probed' | 'timeout' | 'failed' | `http_${number}`

/** Whose rate limit was met last: the account's, or the model's or its provider's. */
export type RateLimitKind = 'account' | 'model' | 'none'

/** Every {@link HealthStatus}. */
export const HEALTH_STATUS_PATTERN = /^(?:passed|imperfect|not_probed|timeout|failed|http_[1-5]\d\d)$/

/** Points of a health status, 0 to 400. */
export function healthScoreOf(status: HealthStatus): number {
  if (status === 'passed') return 400
  if (status === 'imperfect') return 250
  return status === 'not_probed' || status === 'http_429' ? 100 : 0
}

/** Points of a latency in milliseconds, 5 to 75; 25 for one that was not measured. */
export function latencyScoreOf(latencyMs: number | null): number {
  if (latencyMs === null) return 25
  if (latencyMs <= 1_000) return 75
  if (latencyMs <= 2_000) return 60
  if (latencyMs <= 3_000) return 40
  return latencyMs <= 5_000 ? 20 : 5
}
