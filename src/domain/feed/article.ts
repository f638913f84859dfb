import { z } from 'zod'
import { LINE_ENDS, firstCodePoints } from '../text.ts'
import { asJsonObject } from '../json.ts'
import { DAY_MS, parseInstant } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import { describeIssues, isNewsSource, itemsOfKey, readAs, rowText } from './source.ts'
import type { ItemRef } from './source.ts'

/** Article texts as plain text, and the schedule of reading them (docs/articles.md). */

/** Longest article text kept, in characters (code points): some twenty times the length of a news article. */
export const ARTICLE_MAX_LENGTH = 60_000

/**
 * Control characters except tab and newline, characters that Unicode calls default-ignorable (zero-width and
 * bidirectional characters, soft hyphens, variation selectors, tag characters), noncharacters and annotation marks.
 * Joiners are no exception: keeping them needs rules for each script, and runs of them hide text.
 */
const INVISIBLE =
  /(?![\t\n])[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\uFFF9-\uFFFB]/gu

/**
 * Cleans a text: well-formed Unicode without invisible characters and trailing white space, with at most one blank line
 * in a row and {@link ARTICLE_MAX_LENGTH} characters. A clean text is returned unchanged. Markup in a text is text; lines
 * keep their indentation, because they may be code.
 */
export function plainText(text: string): string {
  const visible = text.toWellFormed().replace(LINE_ENDS, '\n').replace(INVISIBLE, '')
  return firstCodePoints(normaliseSpace(visible), ARTICLE_MAX_LENGTH).trimEnd()
}

/** Removes white space at the end of lines and around the text, and more than one blank line; other blanks become spaces. */
function normaliseSpace(text: string): string {
  return text
    .replace(/[^\S\n\t]/g, ' ')
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .replace(/^\n+/, '')
}

/** The text of an item, with its origin and time (docs/articles.md). */
export interface Article extends ItemRef {
  /** As {@link plainText} leaves it, and not empty. */
  text: string
  /** Origin of the text: `<where>:<how>`, and for a page its final URL after a space. */
  provenance: string
  fetchedAt: Instant
}

/** An article of an imported file. Its key may name several items, likeliest first; at least one. */
export interface KeyedArticle extends Omit<Article, keyof ItemRef> {
  items: readonly ItemRef[]
}

export type ParsedArticle = { kind: 'article'; article: KeyedArticle } | { kind: 'bad'; reason: string }

/** Longest provenance, in UTF-16 code units. */
const PROVENANCE_MAX_LENGTH = 4_096

const articleRow = z.object({
  key: rowText
    .transform(itemsOfKey)
    .refine(
      (items) => items.length > 0,
      'must be a save key, <prefix>-<sourceId> of a known source, of at most 132 characters',
    ),
  text: rowText.transform(plainText).refine((value) => value !== '', 'is empty, or has no plain text'),
  fetchedAt: rowText.transform(readAs(parseInstant, 'must be an ISO-8601 instant')),
  provenance: rowText
    .refine((value) => value.trim() !== '', 'is empty')
    .refine(
      (value) => value.length <= PROVENANCE_MAX_LENGTH,
      `is longer than ${PROVENANCE_MAX_LENGTH} characters`,
    ),
})

/**
 * Parses one decoded NDJSON row to an article with plain text, or to the reason why it is invalid (docs/importing.md).
 *
 * @param row the value JSON.parse gave for the line
 */
export function parseArticle(row: unknown): ParsedArticle {
  if (asJsonObject(row) === null) return { kind: 'bad', reason: 'not a JSON object' }
  const parsed = articleRow.safeParse(row)
  if (!parsed.success) return { kind: 'bad', reason: describeIssues(parsed.error) }
  const { key: items, ...values } = parsed.data
  return { kind: 'article', article: { items, ...values } }
}

/** Selection of the items whose text is read, and retries (docs/articles.md). */

/** Least points of an item whose text is read, by source; sources that are absent have none. */
export type MinPoints = Readonly<Record<string, number>>

/** A query for items that need a text. */
export interface ArticleQuery {
  minPoints: MinPoints
  /** Excludes items last observed before this day. */
  seenSince: Day
  at: Instant
  limit: number
}

export interface ItemWithoutText extends ItemRef {
  /** Link of the item; null for a text post, and for a URL longer than {@link URL_MAX_LENGTH}. */
  url: string | null
  /** Number of failed attempts. */
  tries: number
}

/** A failed attempt, as stored. */
export interface FailedAttempt extends ItemRef {
  /** Attempts for the item so far. */
  tries: number
  reason: string
  triedAt: Instant
  /** null when there are no more attempts. */
  nextTryAt: Instant | null
}

/** Reasons to skip a text. */
export type SkipReason =
  | 'robots' // the site's robots.txt, header or page forbids it
  | 'private' // the address is not a public one, and is not allowed
  | 'badUrl' // not http(s), with credentials, of another port, or too long
  | 'redirects' // more than the limit
  | 'notHtml' // neither HTML nor plain text, or compressed with an encoding that was not requested
  | 'tooLarge' // over the limit
  | 'gone' // 404 or 410, or deleted at its source
  | 'refused' // 401, 402, 403, 407 or 451
  | 'noText' // read, but it holds no article
  | 'busy' // not requested: its host demanded a pause

/** Result of reading one text. */
export type ArticleReading =
  | { kind: 'text'; text: string; provenance: string }
  | { kind: 'skipped'; why: SkipReason; detail: string; notBefore: Instant | null }
  | { kind: 'failed'; reason: string; notBefore: Instant | null }

/** Longest URL that is requested, in characters. */
export const URL_MAX_LENGTH = 2_048

/** Most attempts for an item. */
export const ARTICLE_TRIES = 4

/** Days after the last observation in which the text is still read, including the last day. */
export const WANTED_DAYS = 7

/** The first retry follows after six hours, the next after a day, then after four days. */
const FIRST_WAIT_MS = DAY_MS / 4
const WAIT_GROWTH = 4

/** A skipped text is requested again after a week. */
const SKIPPED_WAIT_MS = 7 * DAY_MS

/** Longest delay that a host can request. */
const LONGEST_WAIT_MS = 30 * DAY_MS

/**
 * The record of an attempt without a text, with the time of the next one.
 *
 * @param triedAt time of the attempt
 */
export function planNextAttempt(
  { source, sourceId, tries }: ItemWithoutText,
  reading: Exclude<ArticleReading, { kind: 'text' }>,
  triedAt: Instant,
): FailedAttempt {
  const skipped = reading.kind === 'skipped'
  const attempted = !(skipped && reading.why === 'busy')
  const attempts = tries + (attempted ? 1 : 0)
  const defaultWaitMs = skipped ? SKIPPED_WAIT_MS : FIRST_WAIT_MS * WAIT_GROWTH ** (attempts - 1)
  const waitMs = Math.max(attempted ? defaultWaitMs : 0, (reading.notBefore ?? triedAt) - triedAt)
  return {
    source,
    sourceId,
    tries: attempts,
    reason: skipped ? `${reading.why}: ${reading.detail}` : reading.reason,
    triedAt,
    nextTryAt: attempts >= ARTICLE_TRIES ? null : triedAt + Math.min(waitMs, LONGEST_WAIT_MS),
  }
}

/**
 * Locations of an item's text, in order: its source, or the page it links to. LessWrong returns the text of every post;
 * the other news sources that of posts without a link.
 */
export function textLocations({
  source,
  url,
}: Pick<ItemWithoutText, 'source' | 'url'>): ('source' | 'page')[] {
  if (source === 'lesswrong') return url === null ? ['source'] : ['source', 'page']
  if (url !== null) return ['page']
  return isNewsSource(source) ? ['source'] : []
}

/** The lane of an item: items of different lanes are read concurrently. Each API and each host is one lane. */
export function laneOf(item: Pick<ItemWithoutText, 'source' | 'url'>): string {
  if (textLocations(item)[0] !== 'page' || item.url === null) return `source ${item.source}`
  try {
    return `host ${new URL(item.url).hostname}`
  } catch {
    return `url ${item.url}`
  }
}
