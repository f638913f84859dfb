/** Refusal codes of `/api/search`, `/api/similar` and `/api/trend` (docs/search.md): the whole, closed list. */
export const SEARCH_REFUSALS = [
  'invalid_query',
  'invalid_source',
  'invalid_time',
  'invalid_limit',
  'invalid_cursor',
  'invalid_key',
  'invalid_trend',
  'item_not_found',
  'method_not_allowed',
  'search_limit',
  'search_busy',
  'search_unavailable',
  'search_damaged',
  'search_failed',
] as const
export type SearchRefusal = (typeof SEARCH_REFUSALS)[number]
