import { formatInstant } from '../../time.ts'
import type { Instant } from '../../time.ts'
import type { TimelineItem } from '../chain.ts'

/**
 * The history in the terms of Memento, RFC 7089. There is no TimeGate: it needs `Vary`, which most CDNs ignore, and redirects
 * that must not be cached.
 */

/** The history without a time, whose states the publications are, below the base URL of a server. */
const ORIGINAL_PATH = '/api/feed/history?sort=year'

/** Returns the path that selects a publication: the history at its own publication time. */
export function mementoPath(publishedAt: Instant): string {
  return `${ORIGINAL_PATH}&at=${formatInstant(publishedAt)}`
}

/**
 * Returns true if no later entry can change the publication that a time selects. Own publications are always published
 * after all earlier ones, and imported ones enter an empty ledger together.
 */
export function isFinalAt(timeline: readonly TimelineItem[], at: Instant): boolean {
  const last = timeline.at(-1)
  return last !== undefined && at <= last.manifest.publishedAt
}

/** Formats an instant as HTTP headers do: GMT, to the second. */
export function formatHttpDate(at: Instant): string {
  return new Date(at).toUTCString()
}
