/** Refusal codes of the live feed and its subscriptions (docs/feed-api.md): the whole, closed list. */
export const LIVE_REFUSALS = [
  'invalid_sort',
  'year_is_archived',
  'no_snapshot',
  'method_not_allowed',
  'feed_storage_unavailable',
  'feed_snapshot_corrupt',
  'feed_lookup_failed',
] as const
export type LiveRefusal = (typeof LIVE_REFUSALS)[number]
