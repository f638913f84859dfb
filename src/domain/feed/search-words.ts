import { QUERY_MAX_LENGTH, QUERY_MAX_WORDS } from './search.ts'
import type { Similarity } from './search.ts'

/** One thing looked for: words that must follow each other, the last of them perhaps only begun. */
export interface Unit {
  words: string[]
  prefix: boolean
  /** True for what stood in quotation marks. */
  quoted: boolean
}

/** Shortest beginning of a word that is looked for; one letter begins half of all titles. */
const PREFIX_MIN_LENGTH = 2

/** Most beginnings looked for: each one stands for every word that begins so. */
const PREFIXES_MAX = 3

const PIECES = /"([^"]*)"?|[^\s"]+/gu

/**
 * Reads what a person typed (docs/search.md): words, `"phrases"` and `begin*`. Every text has a meaning; one without
 * letters or digits asks for nothing.
 *
 * @returns units of at most {@link QUERY_MAX_WORDS} words in all, no unit twice; the rest of the text is ignored, the rest
 *   of a phrase too. At most {@link PREFIXES_MAX} units are beginnings: what would be a further one is a whole word
 */
export function parseSearchText(text: string): Unit[] {
  const units = new Map<string, Unit>()
  let room = QUERY_MAX_WORDS
  for (const [piece, phrase] of text
    .slice(0, QUERY_MAX_LENGTH)
    .replaceAll(/[“”„«»]/g, '"')
    .matchAll(PIECES)) {
    for (const unit of phrase === undefined ? looseUnits(piece) : quotedUnit(phrase)) {
      const words = unit.words.slice(0, room)
      const isWhole = words.length === unit.words.length
      const prefix = unit.prefix && isWhole && countBegun(units.values()) < PREFIXES_MAX
      const key = JSON.stringify([words, prefix])
      if (words.length === 0 || units.has(key)) continue
      units.set(key, { ...unit, words, prefix })
      room -= words.length
    }
  }
  return [...units.values()]
}

function quotedUnit(phrase: string): Unit[] {
  const words = wordsOf(phrase)
  return words.length === 0 ? [] : [{ words, prefix: false, quoted: true }]
}

/** A piece between spaces may be several words (`node.js`); pairs of unspaced characters belong together. */
function looseUnits(piece: string): Unit[] {
  const begun = piece.endsWith('*')
  return piece.split(/[^\p{L}\p{N}\p{M}+#'’]+/u).flatMap((part, index, parts): Unit[] => {
    const words = wordsOf(part)
    const isLast = index === parts.findLastIndex((each) => each !== '')
    const prefix = begun && isLast && isLongEnough(words.at(-1))
    if (words.length === 0) return []
    if (words.some(isUnspaced)) {
      // A character alone is in the index only as half of a pair.
      const alone = words.length === 1 && Array.from(words[0] ?? '').length === 1
      return [{ words, prefix: prefix || alone, quoted: false }]
    }
    return words.map((word, at) => ({
      words: [word],
      prefix: prefix && at === words.length - 1,
      quoted: false,
    }))
  })
}

/** The same units with the last one a beginning, as somebody still typing means it; null when that changes nothing. */
export function withLastBegun(units: readonly Unit[]): Unit[] | null {
  const last = units.at(-1)
  if (
    !last ||
    last.prefix ||
    last.quoted ||
    countBegun(units) >= PREFIXES_MAX ||
    !isLongEnough(last.words.at(-1))
  )
    return null
  return [...units.slice(0, -1), { ...last, prefix: true }]
}

function countBegun(units: Iterable<Unit>): number {
  return Array.from(units).filter(({ prefix }) => prefix).length
}

function isLongEnough(word: string | undefined): boolean {
  return word !== undefined && (word.length >= PREFIX_MIN_LENGTH || isUnspaced(word))
}

/**
 * The words of a text, as the index holds them and as a question asks for them (docs/search.md): one rule for both
 * sides, so that neither the engine nor its version decides what a word is.
 */

/** Longest word, in UTF-16 units; what is longer is cut, on both sides. */
const WORD_MAX_LENGTH = 64

/** Only diacritics that fold: marks of scripts that write vowels with them stay. */
const DIACRITICS = /[\u0300-\u036f]/g

/** Apostrophes inside a word are no border: `don't` is found by `dont`. */
const INNER_APOSTROPHES = /(?<=\p{L})['’](?=\p{L})/gu

/** A `+` or `#` right after a word belongs to it: `c++`, `c#`. */
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*[+#]*/gu

/** Scripts that write words without spaces between them. */
const UNSPACED = /([\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+)/u

/** True for a word of a script without spaces, which is indexed as pairs of characters. */
function isUnspaced(word: string): boolean {
  return UNSPACED.test(word)
}

/**
 * The words of a text in order: compatibility forms, case and diacritics folded, split at everything that is neither
 * letter, digit nor mark. A run of a script without spaces becomes its pairs of neighbouring characters.
 *
 * @param text any string; halves of surrogate pairs and control characters separate words
 */
export function wordsOf(text: string): string[] {
  const folded = text
    .toWellFormed()
    .normalize('NFKD')
    .replace(DIACRITICS, '')
    .normalize('NFC')
    .toLowerCase()
    .replace(INNER_APOSTROPHES, '')
  return (folded.match(WORD) ?? []).flatMap((word) => (isUnspaced(word) ? pairsOf(word) : [cut(word)]))
}

function pairsOf(word: string): string[] {
  return word.split(UNSPACED).flatMap((run) => {
    // Between such runs a mark or a sign may stand alone, which is no word.
    if (!isUnspaced(run)) return (run.match(WORD) ?? []).map(cut)
    const characters = Array.from(run)
    if (characters.length === 1) return characters
    return characters.slice(1).map((character, index) => `${characters[index]}${character}`)
  })
}

function cut(word: string): string {
  return word.length > WORD_MAX_LENGTH
    ? word.slice(0, WORD_MAX_LENGTH).toWellFormed().replace('\ufffd', '')
    : word
}

/** How often words occur: what makes a shared word tell much or little. */
export interface WordCounts {
  /** Items in the index. */
  items: number
  /** Items whose title holds a word; absent for words nobody asked for. */
  of: ReadonlyMap<string, number>
}

/** Titles at least this alike are near-duplicates. */
const DUPLICATE_MIN = 0.6

/** Titles less alike than this have no subject in common. */
const SUBJECT_MIN = 0.08

/** A word that weighs less than this share of a word of one item alone says nothing of a subject. */
const TELLING_MIN_SHARE = 0.3

/** Least weight, as such a share, of the telling words that two titles of one subject have in common. */
const SUBJECT_MIN_SHARE = 0.5

/** Weight of a word: the inverse document frequency of BM25. */
export function weightOf(word: string, { items, of }: WordCounts): number {
  const count = of.get(word) ?? 0
  return Math.log(1 + (Math.max(items, count) - count + 0.5) / (count + 0.5))
}

/** Rare words tell more of a title than their weight says: measured by bench/retrieval. */
const RARITY = 1.5

export interface Likeness {
  /** 0 to 1. */
  score: number
  /** Rarest first. */
  shared: string[]
}

/**
 * How alike two titles are: the weight of the words they share over the weight of all their words (docs/search.md).
 * Words of the second title that the first lacks were not counted; each weighs as the first title's words do on average.
 *
 * @param title words of the title that is asked about, counted in `counts`
 */
export function likeness(title: readonly string[], other: readonly string[], counts: WordCounts): Likeness {
  const own = new Set(title)
  const others = new Set(other)
  const weights = new Map([...own].map((word) => [word, weightOf(word, counts) ** RARITY]))
  const total = sum(weights.values())
  if (total === 0) return { score: 0, shared: [] }
  const shared = [...own].filter((word) => others.has(word))
  const common = sum(shared.map((word) => weights.get(word) ?? 0))
  const unknown = (others.size - shared.length) * (total / own.size)
  return {
    score: common / (total + unknown),
    shared: shared.sort((a, b) => (weights.get(b) ?? 0) - (weights.get(a) ?? 0)),
  }
}

/** Why two items are similar, strongest first; empty when they are not. */
export function reasonsOf(
  { score, shared }: Likeness,
  sameDiscussion: boolean,
  counts: WordCounts,
): Similarity[] {
  const greatest = weightOf('', { items: counts.items, of: new Map([['', 1]]) })
  const weights = shared.map((word) => weightOf(word, counts))
  const telling = sum(weights.filter((weight) => weight >= greatest * TELLING_MIN_SHARE))
  const reasons: Similarity[] = []
  if (sameDiscussion) reasons.push('same-discussion')
  if (score >= DUPLICATE_MIN) reasons.push('near-duplicate-title')
  else if (score >= SUBJECT_MIN && telling >= greatest * SUBJECT_MIN_SHARE) reasons.push('same-subject')
  return reasons
}

function sum(values: Iterable<number>): number {
  let total = 0
  for (const value of values) total += value
  return total
}

/**
 * The address of a page without what does not change the page (docs/search.md): items with the same canonical URL
 * are one discussion.
 */

/** Parameters that tell where a reader came from. */
const TRACKING =
  /^(utm_\w+|fbclid|gclid|dclid|gbraid|wbraid|msclkid|yclid|twclid|igshid|igsh|mc_cid|mc_eid|_hsenc|_hsmi|mkt_tok|ref_src|ref_url|cmpid|smid|smtyp|ncid|spm|vero_id|oly_anon_id|oly_enc_id|at_medium|at_campaign|guccounter|guce_referrer|guce_referrer_sig|sr_share)$/i

/** Hosts that show the same pages as another. */
const SAME_HOST: Readonly<Record<string, string>> = {
  'm.youtube.com': 'youtube.com',
  'music.youtube.com': 'youtube.com',
  'mobile.twitter.com': 'twitter.com',
  'm.twitter.com': 'twitter.com',
  'x.com': 'twitter.com',
  'mobile.x.com': 'twitter.com',
  'old.reddit.com': 'reddit.com',
  'np.reddit.com': 'reddit.com',
  'm.reddit.com': 'reddit.com',
  'new.reddit.com': 'reddit.com',
  'export.arxiv.org': 'arxiv.org',
  'm.facebook.com': 'facebook.com',
  'mobile.nytimes.com': 'nytimes.com',
  'amp.theguardian.com': 'theguardian.com',
}

/** Hosts where the fragment is the page: old applications that route in it. */
const FRAGMENT_IS_PAGE = /^#!?\//

/**
 * One string for every spelling of a page's address, for comparing only: it need not open.
 *
 * Dropped or folded: scheme, `www.`, case of the host, default ports, user and password, tracking parameters, the order
 * of parameters, fragments (but those that route, `#/…` and `#!…`), slashes at the end, `index.html`, mobile hosts known
 * to mirror another, `/amp` endings, forms of arXiv papers and their versions, short forms of YouTube videos, the case
 * of a GitHub repository, and the words after the number of a Reddit thread. Everything else is kept: two pages are never folded for being on one site.
 *
 * @param url an absolute http(s) URL
 * @returns null when it cannot be parsed or is not http(s)
 */
export function canonicalUrl(url: string): string | null {
  const parsed = parse(url)
  if (parsed === null) return null
  const bare = parsed.hostname.replace(/\.+$/, '').replace(/^(www\d?\.)+(?=[^.]+\.[^.])/, '')
  if (bare === '') return null
  const host = mirrored(bare)
  const port = parsed.port === '' || parsed.port === '80' || parsed.port === '443' ? '' : `:${parsed.port}`
  const params = [...parsed.searchParams].filter(([name]) => !TRACKING.test(name))
  const path = pagePath(parsed.pathname)
  const known = knownPage(host, path, new Map(params))
  if (known !== null) return known
  const query = params
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .sort()
    .join('&')
  const fragment = FRAGMENT_IS_PAGE.test(parsed.hash) ? parsed.hash : ''
  return `${host}${port}${path}${query === '' ? '' : `?${query}`}${fragment}`
}

/** A URL may also be a canonical one, which has no scheme. */
function parse(url: string): URL | null {
  try {
    const parsed = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(url) ? url : `https://${url}`)
    return /^https?:$/.test(parsed.protocol) && parsed.hostname !== '' ? parsed : null
  } catch {
    return null
  }
}

function mirrored(host: string): string {
  return SAME_HOST[host] ?? host.replace(/^([a-z-]+)\.m\.(wikipedia|wiktionary)\.org$/, '$1.$2.org')
}

/** The path without an ending that names the same page. */
function pagePath(pathname: string): string {
  let path = pathname
  for (;;) {
    const shorter = path
      .replace(/\/+$/, '')
      .replace(/\/(index|default)\.(html?|php|aspx?)$/i, '')
      .replace(/(?<=\/[^/]+)\/amp$/i, '')
    if (shorter === path) return path
    path = shorter
  }
}

/** Pages whose site has several addresses for them. */
function knownPage(host: string, path: string, params: ReadonlyMap<string, string>): string | null {
  if (host === 'arxiv.org') {
    const paper =
      /^\/(?:abs|pdf|html)\/(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?\/\d{7})(?:v\d+)?(?:\.pdf)?$/.exec(path)
    return paper ? `arxiv.org/abs/${paper[1]}` : null
  }
  if (host === 'youtube.com' || host === 'youtu.be') {
    const short = (host === 'youtu.be' ? /^\/([\w-]{11})$/ : /^\/(?:shorts|live|embed|v)\/([\w-]{11})$/).exec(
      path,
    )
    const video = short?.[1] ?? (path === '/watch' && host === 'youtube.com' ? params.get('v') : undefined)
    return video !== undefined && /^[\w-]{11}$/.test(video) ? `youtube.com/watch?v=${video}` : null
  }
  if (host === 'github.com') {
    const repository = /^\/[^/]+\/[^/]+$/.test(path) && params.size === 0
    return repository ? `github.com${path.toLowerCase()}` : null
  }
  if (host === 'reddit.com') {
    const thread = /^(\/r\/[^/]+\/comments\/\w+)(?:\/[^/]*)?$/.exec(path)
    return thread?.[1] === undefined ? null : `reddit.com${thread[1].toLowerCase()}`
  }
  return null
}
