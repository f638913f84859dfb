import { firstCodePoints } from '../agent/untrusted-text.ts'

/**
 * Text of strangers made plain (docs/articles.md): what is left can be shown, searched and quoted, and hides nothing.
 */

/** Longest article text kept, in characters (code points): some twenty times the length of a news article. */
export const ARTICLE_MAX_LENGTH = 60_000

/**
 * Controls (tab and newline apart), everything Unicode calls ignorable when it is drawn (zero-width and bidirectional
 * characters, soft hyphens, variation selectors, tag characters), noncharacters and annotation marks.
 */
const INVISIBLE =
  /(?![\t\n])[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\uFFF9-\uFFFB]/gu

/** Every way to end a line that Unicode knows. */
const LINE_ENDS = /\r\n?|\v|\f|[\u0085\u2028\u2029]/g

/** Elements whose content is not text for a reader. */
const UNREAD = ['script', 'style']

const INLINE =
  'a abbr acronym b bdi bdo big cite code data del dfn em embed font i img input ins kbd label mark math meter object ' +
  'output param picture progress q rp rt ruby s samp select small source span strike strong sub sup textarea time track ' +
  'tt u var video audio canvas wbr button map area iframe noscript svg template'
const BLOCK =
  'address article aside base blockquote body br caption center col colgroup dd details dialog dir div dl dt fieldset ' +
  'figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html li link main menu meta nav ' +
  'ol optgroup option p pre search section slot summary table tbody td tfoot th thead title tr ul'

const INLINE_NAMES: ReadonlySet<string> = new Set(INLINE.split(' '))
const BLOCK_NAMES: ReadonlySet<string> = new Set([...BLOCK.split(' '), ...UNREAD])

/**
 * Plain text of anything: well-formed Unicode without markup and invisible characters, with white space normalised and
 * paragraphs kept, cut at {@link ARTICLE_MAX_LENGTH} characters. The same text again is left as it is.
 *
 * Tags of HTML elements and comments go, and no `<` that is left stands where an HTML parser would read a tag: a space
 * follows it (`vector<int>` becomes `vector< int>`).
 */
export function plainText(text: string): string {
  const visible = text.toWellFormed().replace(LINE_ENDS, '\n').replace(INVISIBLE, '')
  return firstCodePoints(normaliseSpace(withoutMarkup(visible)), ARTICLE_MAX_LENGTH).trimEnd()
}

/** White space as one space or one newline, a blank line between paragraphs, none at either end. */
function normaliseSpace(text: string): string {
  return text
    .replace(/[^\S\n]+/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

function withoutMarkup(text: string): string {
  if (!text.includes('<')) return text
  const readable = UNREAD.reduce(
    (left, name) => withoutSpans(left, new RegExp(`<${name}\\b`, 'gi'), new RegExp(`</${name}\\s*>`, 'gi')),
    withoutSpans(text, /<!--/g, /-->/g),
  )
  return readable
    .replace(/<([/!?]?)([a-z][a-z0-9]*)\b([^<>]*)>/gi, (tag, mark: string, name: string, rest: string) => {
      if (mark === '!') return ''
      // Not `a <b && c> d`.
      if (!/^\s*\/?$|^\s+[a-z_:@]/i.test(rest)) return tag
      const element = name.toLowerCase()
      if (BLOCK_NAMES.has(element)) return element === 'br' ? '\n' : '\n\n'
      return INLINE_NAMES.has(element) ? '' : tag
    })
    .replace(/<(?=[a-z/!?])/gi, '< ')
}

/** Leaves out everything from each opening to the next closing; what is never closed stays. */
function withoutSpans(text: string, opening: RegExp, closing: RegExp): string {
  const kept: string[] = []
  let from = 0
  for (;;) {
    opening.lastIndex = from
    const open = opening.exec(text)
    if (!open) break
    closing.lastIndex = open.index + open[0].length
    if (!closing.test(text)) break
    kept.push(text.slice(from, open.index))
    from = closing.lastIndex
  }
  return [...kept, text.slice(from)].join('\n')
}
