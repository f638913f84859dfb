/** Refusal codes of `GET /api/feed/history` (docs/history-api.md): the whole, closed list. */
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
