/** What is known of a model's health: how its last probe ended (docs/model-scores.md). */
export type HealthStatus = 'passed' | 'imperfect' | 'not_probed' | 'timeout' | 'failed' | `http_${number}`
