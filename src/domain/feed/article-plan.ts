import { DAY_MS } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import { isNewsSource } from './source.ts'

/** Which items are worth a text, and when one that could not be read is tried again (docs/articles.md). */

/** The points from which on an item of a source is given a text; sources that are not named get none. */
export type MinPoints = Readonly<Record<string, number>>

/** A question for items that want a text. */
export interface ArticleWish {
  minPoints: MinPoints
  /** Items last seen before this day are left alone. */
  seenSince: Day
  at: Instant
  limit: number
}

export interface WantedItem {
  source: string
  sourceId: string
  /** What the item links to; null for a text post, and for a URL longer than {@link URL_MAX_LENGTH}. */
  url: string | null
  /** Tries that failed. */
  tries: number
}

/** A try that failed, as it is kept. */
export interface FailedTry {
  source: string
  sourceId: string
  /** All tries of the item so far. */
  tries: number
  reason: string
  triedAt: Instant
  /** null: never again. */
  nextTryAt: Instant | null
}

/**
 * Why a text is not kept although nothing failed:
 *
 * - `robots`: the site's robots.txt, header or page asks not to
 * - `private`: the address is not a public one, and is not allowed
 * - `badUrl`: not http(s), with credentials, of another port, or too long
 * - `redirects`: more than the limit
 * - `notHtml`: neither HTML nor plain text, or compressed in a way nobody asked for
 * - `tooLarge`: over the limit
 * - `gone`: 404 or 410, or deleted at its source
 * - `refused`: 401, 402, 403, 407 or 451
 * - `noText`: read, but it holds no article
 * - `busy`: not asked, since its host wants to be left alone for a while
 */
export type SkipReason =
  | 'robots'
  | 'private'
  | 'badUrl'
  | 'redirects'
  | 'notHtml'
  | 'tooLarge'
  | 'gone'
  | 'refused'
  | 'noText'
  | 'busy'

/** What came of reading one text. */
export type ArticleReading =
  | { kind: 'text'; text: string; provenance: string }
  | { kind: 'skipped'; why: SkipReason; detail: string; notBefore: Instant | null }
  | { kind: 'failed'; reason: string; notBefore: Instant | null }

/** Longest URL that is asked for, in characters. */
export const URL_MAX_LENGTH = 2_048

/** An item is tried no more often than this. */
export const ARTICLE_TRIES = 4

/** How long an item is wanted after it was last seen, its last day included. */
export const WANTED_DAYS = 7

/** A first failed try is repeated after six hours, the next after a day, then after four. */
const FIRST_WAIT_MS = DAY_MS / 4
const WAIT_GROWTH = 4

/** What a site declines is asked again after a week, should it still be wanted then. */
const SKIPPED_WAIT_MS = 7 * DAY_MS

/** The longest a host can put the next try off. */
const LONGEST_WAIT_MS = 30 * DAY_MS

/**
 * What to keep of a reading that gave no text.
 *
 * @param triedAt when it was read
 */
export function planNextTry(
  { source, sourceId, tries }: WantedItem,
  reading: Exclude<ArticleReading, { kind: 'text' }>,
  triedAt: Instant,
): FailedTry {
  const skipped = reading.kind === 'skipped'
  const asked = !(skipped && reading.why === 'busy')
  const made = tries + (asked ? 1 : 0)
  const own = skipped ? SKIPPED_WAIT_MS : FIRST_WAIT_MS * WAIT_GROWTH ** (made - 1)
  const wait = Math.max(asked ? own : 0, (reading.notBefore ?? triedAt) - triedAt)
  return {
    source,
    sourceId,
    tries: made,
    reason: skipped ? `${reading.why}: ${reading.detail}` : reading.reason,
    triedAt,
    nextTryAt: made >= ARTICLE_TRIES ? null : triedAt + Math.min(wait, LONGEST_WAIT_MS),
  }
}

/**
 * Where the text of an item is looked for, in this order: at its source, or on the page it links to. LessWrong holds
 * the text of every post; the other news sources that of posts without a link.
 */
export function placesOfText({ source, url }: Pick<WantedItem, 'source' | 'url'>): ('source' | 'page')[] {
  if (source === 'lesswrong') return url === null ? ['source'] : ['source', 'page']
  if (url !== null) return ['page']
  return isNewsSource(source) ? ['source'] : []
}

/**
 * What may be read at the same time: items of different lanes. Each API is one, and each host.
 */
export function laneOf(item: Pick<WantedItem, 'source' | 'url'>): string {
  if (placesOfText(item)[0] !== 'page' || item.url === null) return `source ${item.source}`
  try {
    return `host ${new URL(item.url).hostname}`
  } catch {
    return `url ${item.url}`
  }
}
