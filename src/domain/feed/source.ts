import { z } from 'zod'
import { firstCodePoints } from '../agent/shown-data.ts'
import { byteLengthOf } from '../order.ts'

/**
 * Names of sources and of what derives from them (docs/importing.md).
 */

/** The three news sources, whose events compete in `popular`. */
export const NEWS_SOURCES = ['hn', 'lobsters', 'lesswrong'] as const
export type NewsSource = (typeof NEWS_SOURCES)[number]

/** The hype cohorts that are ever ranked; any other `hype:<slug>` is stored and counted only. */
export const HYPE_PROVIDERS = ['github', 'huggingface', 'replicate', 'reddit'] as const
export type HypeProvider = (typeof HYPE_PROVIDERS)[number]

/** The longest save key, in characters (code points). */
export const SAVE_KEY_MAX_LENGTH = 132

const PLAIN_SOURCES: ReadonlySet<string> = new Set([...NEWS_SOURCES, 'midjourney', 'github'])
const HYPE_PATTERN = /^hype:([a-z0-9][a-z0-9-]*)$/
const RANKED_PROVIDERS: ReadonlySet<string> = new Set(HYPE_PROVIDERS)

/** An item by what its source calls it. */
export interface ItemRef {
  source: string
  sourceId: string
}

/** True for a source whose signals are stored: a name of the table, or any `hype:<slug>`. */
export function isKnownSource(source: string): boolean {
  return PLAIN_SOURCES.has(source) || HYPE_PATTERN.test(source)
}

export function isNewsSource(source: string): source is NewsSource {
  return (NEWS_SOURCES as readonly string[]).includes(source)
}

/** The provider of a hype source (`hype:reddit` gives `reddit`), or null for any other source. */
export function hypeProviderOf(source: string): string | null {
  return HYPE_PATTERN.exec(source)?.[1] ?? null
}

/** True when a hype provider is one of the four ranked cohorts. */
export function isRankedProvider(provider: string): provider is HypeProvider {
  return RANKED_PROVIDERS.has(provider)
}

/** `<prefix>-<sourceId>`: `hn-1`, `hype-github-owner/name`. */
export function saveKey(source: string, sourceId: string): string {
  return `${source.replace(':', '-')}-${sourceId}`
}

/**
 * The items a save key may name, likeliest first; the reverse of {@link saveKey}.
 *
 * Providers and ids may both contain `-`, so that `hype-hf-papers-1` is `papers-1` of `hype:hf` or `1` of
 * `hype:hf-papers`: which of them is meant, only what is stored can tell. The first has the shortest provider, which is
 * always right for the ranked ones.
 *
 * @returns none for anything that is not the key of a known source with a nonempty id, of at most
 *   {@link SAVE_KEY_MAX_LENGTH} characters
 */
export function itemsOfKey(key: string): ItemRef[] {
  const found: ItemRef[] = []
  if (!isSaveKeyLength(key)) return found
  for (let at = key.indexOf('-'); at !== -1; at = key.indexOf('-', at + 1)) {
    const prefix = key.slice(0, at)
    const source = prefix.replace(/^hype-/, 'hype:')
    const sourceId = key.slice(at + 1)
    if (sourceId !== '' && !prefix.includes(':') && isKnownSource(source)) found.push({ source, sourceId })
  }
  return found
}

/** True when a key is not longer than {@link SAVE_KEY_MAX_LENGTH}, counted in code points. */
function isSaveKeyLength(key: string): boolean {
  // A text of many megabytes need not be taken apart to see that it is too long.
  return key.length <= 2 * SAVE_KEY_MAX_LENGTH && Array.from(key).length <= SAVE_KEY_MAX_LENGTH
}

/** The page where an event of a news source is discussed; null for every other source. */
export function discussionUrl(source: string, sourceId: string): string | null {
  switch (source) {
    case 'hn':
      return `https://news.ycombinator.com/item?id=${sourceId}`
    case 'lobsters':
      return `https://lobste.rs/s/${sourceId}`
    case 'lesswrong':
      return `https://www.lesswrong.com/posts/${sourceId}`
    default:
      return null
  }
}

/** The source a provenance `<source>:<channel>` belongs to, or null when it has not that form. */
export function vouchingSource(provenance: string): string | null {
  const parts = provenance.split(':')
  for (let length = parts.length - 1; length > 0; length -= 1) {
    const source = parts.slice(0, length).join(':')
    if (isKnownSource(source) && parts.slice(length).join(':').trim() !== '') return source
  }
  return null
}

/** Longest title of an event, in code points (docs/importing.md). */
export const TITLE_MAX_LENGTH = 1_000

/** Longest URL of an event, in bytes of UTF-8. */
export const URL_MAX_BYTES = 4_096

/** Longest provenance of a title, in code points. */
export const TITLE_PROVENANCE_MAX_LENGTH = 256

/** A text of an imported row: what a database of UTF-8 text keeps as it is. */
export const rowText = z
  .string()
  .refine((value) => !value.includes('\0'), 'contains a NUL character')
  .refine((value) => value.isWellFormed(), 'is not well-formed Unicode (half of a surrogate pair)')

/** What is wrong with a row, field by field, in one line. */
export function describeIssues(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join('.') || 'row'}: ${issue.message}`).join('; ')
}

/** True for a title longer than an event may have. */
export function isTitleTooLong(title: string): boolean {
  return title.length > TITLE_MAX_LENGTH && firstCodePoints(title, TITLE_MAX_LENGTH).length < title.length
}

/** True for a URL longer than an event may have. */
export function isUrlTooLong(url: string): boolean {
  // UTF-8 takes at most three bytes for a UTF-16 unit, so most URLs need not be measured.
  return url.length > URL_MAX_BYTES / 3 && (url.length > URL_MAX_BYTES || byteLengthOf(url) > URL_MAX_BYTES)
}

/** True for a provenance longer than a title may have. */
export function isTitleProvenanceTooLong(provenance: string): boolean {
  const length = TITLE_PROVENANCE_MAX_LENGTH
  return provenance.length > length && firstCodePoints(provenance, length).length < provenance.length
}
