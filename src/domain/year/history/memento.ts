import { formatInstant } from '../../time.ts'
import type { Instant } from '../../time.ts'
import { selectableItems } from './calendar.ts'
import type { TimelineItem } from '../chain.ts'

/** The history in the terms of Memento, RFC 7089 (docs/decisions/0072-memento-without-timegate.md). */

/** The history without a time, whose states the publications are, below the base URL of a server. */
export const ORIGINAL_PATH = '/api/feed/history?sort=year'

/** Paths of time maps: this, followed by the URL of the original. */
export const TIME_MAP_PATH = '/timemap/link'

/** Media type of time maps (RFC 6690). */
export const LINK_FORMAT = 'application/link-format'

/** Returns the path of the only time map of a server. */
export function timeMapPath(baseUrl: string): string {
  return `${TIME_MAP_PATH}/${baseUrl}${ORIGINAL_PATH}`
}

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

/**
 * Formats the time map of a history: its original, itself and every publication by its own time.
 *
 * @param timeline must not be empty
 * @param baseUrl public URL of the server, without a trailing slash
 */
export function formatTimeMap(timeline: readonly TimelineItem[], baseUrl: string): string {
  const times = selectableItems(timeline).map(({ manifest }) => manifest.publishedAt)
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0].map(formatHttpDate)
  const mementos = times.map((publishedAt, index) => {
    const relation = [
      ...(index === 0 ? ['first'] : []),
      ...(index === times.length - 1 ? ['last'] : []),
      'memento',
    ].join(' ')
    return `<${baseUrl}${mementoPath(publishedAt)}>; rel="${relation}"; datetime="${formatHttpDate(publishedAt)}"`
  })
  const links = [
    `<${baseUrl}${ORIGINAL_PATH}>; rel="original"`,
    `<${baseUrl}${timeMapPath(baseUrl)}>; rel="self"; type="${LINK_FORMAT}"; from="${first}"; until="${last}"`,
    ...mementos,
  ]
  return `${links.join(',\n')}\n`
}

/** Formats an instant as HTTP headers do: GMT, to the second. */
export function formatHttpDate(at: Instant): string {
  return new Date(at).toUTCString()
}
