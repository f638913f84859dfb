import { z } from 'zod'
import { firstCodePoints, byteLengthOf } from '../text.ts'
/**
 * Names of sources and of what derives from them (docs/importing.md).
 */

/** The three news sources, whose events compete in `popular`. */
export const NEWS_SOURCES = ['hn', 'lobsters', 'lesswrong'] as const
export type NewsSource = (typeof NEWS_SOURCES)[number]

/** The hype cohorts that are ever ranked; any other `hype:<slug>` is stored and counted only. */
export const HYPE_PROVIDERS = ['github', 'huggingface', 'replicate', 'reddit'] as const
type HypeProvider = (typeof HYPE_PROVIDERS)[number]

/** The sources of the ranked hype cohorts. */
export const HYPE_SOURCES: readonly string[] = HYPE_PROVIDERS.map((provider) => `hype:${provider}`)

interface SourceFacts {
  /** Name as people write it. */
  name: string
  /** Unit of its points, in the plural; default `points`. */
  unit?: string
  /** URL of a discussion, without the item's id at its end. */
  discussions?: string
  /** Points that about one item in a hundred reaches, to compare the points of sources; absent if unknown. */
  knownPoints?: number
}

/** Every source that is ever ranked. */
const SOURCES: Readonly<Record<NewsSource | `hype:${HypeProvider}` | 'midjourney' | 'github', SourceFacts>> =
  {
    hn: { name: 'Hacker News', discussions: 'https://news.ycombinator.com/item?id=', knownPoints: 1_000 },
    lobsters: { name: 'Lobsters', discussions: 'https://lobste.rs/s/', knownPoints: 100 },
    lesswrong: {
      name: 'LessWrong',
      unit: 'karma',
      discussions: 'https://www.lesswrong.com/posts/',
      knownPoints: 250,
    },
    'hype:github': { name: 'GitHub', unit: 'stars', knownPoints: 10_000 },
    'hype:huggingface': { name: 'Hugging Face', unit: 'likes', knownPoints: 2_000 },
    'hype:replicate': { name: 'Replicate', unit: 'runs', knownPoints: 50_000_000 },
    'hype:reddit': { name: 'Reddit', unit: 'upvotes', knownPoints: 2_000 },
    midjourney: { name: 'Midjourney' },
    github: { name: 'github' },
  }

/** Facts of a source; null for a source outside the table. */
export function factsOf(source: string): SourceFacts | null {
  return isKeyOfSources(source) ? SOURCES[source] : null
}

/** The points that one item in a hundred reaches, of every source where they are known. */
export const KNOWN_POINTS: readonly (readonly [source: string, points: number])[] = Object.entries(
  SOURCES,
).flatMap(([source, { knownPoints }]) => (knownPoints === undefined ? [] : [[source, knownPoints] as const]))

function isKeyOfSources(source: string): source is keyof typeof SOURCES {
  return Object.hasOwn(SOURCES, source)
}

/** The longest save key, in characters (code points). */
export const SAVE_KEY_MAX_LENGTH = 132

const HYPE_PATTERN = /^hype:([a-z0-9][a-z0-9-]*)$/

/** An item, by its source and the source's id. */
export interface ItemRef {
  source: string
  sourceId: string
}

/** True for a source whose signals are stored: a name of the table, or any `hype:<slug>`. */
export function isKnownSource(source: string): boolean {
  return isKeyOfSources(source) || HYPE_PATTERN.test(source)
}

export function isNewsSource(source: string): source is NewsSource {
  return (NEWS_SOURCES as readonly string[]).includes(source)
}

/** The provider of a hype source (`hype:reddit` gives `reddit`), or null for any other source. */
export function hypeProviderOf(source: string): string | null {
  return HYPE_PATTERN.exec(source)?.[1] ?? null
}

/** `<prefix>-<sourceId>`: `hn-1`, `hype-github-owner/name`. */
export function saveKey(source: string, sourceId: string): string {
  return `${source.replace(':', '-')}-${sourceId}`
}

/**
 * The items that a save key may name, likeliest first; the reverse of {@link saveKey}.
 *
 * Providers and ids may both contain `-`: `hype-hf-papers-1` is `papers-1` of `hype:hf` or `1` of `hype:hf-papers`.
 * Only the stored items decide. The first has the shortest provider, which is always right for the ranked ones.
 *
 * @returns empty for anything but the key of a known source with a nonempty id, of at most {@link SAVE_KEY_MAX_LENGTH}
 *   characters
 */
export function itemsOfKey(key: string): ItemRef[] {
  const found: ItemRef[] = []
  if (isLonger(key, SAVE_KEY_MAX_LENGTH)) return found
  for (let at = key.indexOf('-'); at !== -1; at = key.indexOf('-', at + 1)) {
    const prefix = key.slice(0, at)
    const source = prefix.replace(/^hype-/, 'hype:')
    const sourceId = key.slice(at + 1)
    if (sourceId !== '' && !prefix.includes(':') && isKnownSource(source)) found.push({ source, sourceId })
  }
  return found
}

/** The page where an event of a news source is discussed; null for every other source. */
export function discussionUrl(source: string, sourceId: string): string | null {
  const discussions = factsOf(source)?.discussions
  return discussions === undefined ? null : `${discussions}${sourceId}`
}

/** The source of a provenance `<source>:<channel>`; null when it has another form. */
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

/** The message for a field of an imported row that is missing or has another type. @param rule what it must be */
export function typeMessage(rule: string): (issue: { input: unknown }) => string {
  return ({ input }) => (input === undefined ? 'missing' : rule)
}

/** A text of an imported row that a UTF-8 database stores unchanged. */
export const rowText = z
  .string({ error: typeMessage('must be a text') })
  .refine((value) => !value.includes('\0'), 'contains a NUL character')
  .refine((value) => value.isWellFormed(), 'is not well-formed Unicode (half of a surrogate pair)')

/** Creates a zod transform from a parser that returns null for invalid texts. */
export function readAs<T>(parse: (text: string) => T | null, message: string) {
  return (text: string, context: z.RefinementCtx<string>): T => {
    const value = parse(text)
    if (value !== null) return value
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  }
}

/** Describes the problems of a row in one line; fields with the same problem share it. */
export function describeIssues(error: z.ZodError): string {
  const fields = new Map<string, string[]>()
  for (const { path, message } of error.issues)
    fields.set(message, [...(fields.get(message) ?? []), path.join('.') || 'row'])
  return [...fields].map(([message, names]) => `${names.join(', ')}: ${message}`).join('; ')
}

/** True for a title longer than an event may have. */
export function isTitleTooLong(title: string): boolean {
  return isLonger(title, TITLE_MAX_LENGTH)
}

/** True for a provenance longer than a title may have. */
export function isTitleProvenanceTooLong(provenance: string): boolean {
  return isLonger(provenance, TITLE_PROVENANCE_MAX_LENGTH)
}

/** True for a URL longer than an event may have. */
export function isUrlTooLong(url: string): boolean {
  // A UTF-16 unit has at most three bytes.
  return url.length * 3 > URL_MAX_BYTES && byteLengthOf(url) > URL_MAX_BYTES
}

/** True for a text of more code points; reads no more of it than needed. */
function isLonger(text: string, codePoints: number): boolean {
  return firstCodePoints(text, codePoints).length < text.length
}
