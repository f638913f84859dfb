import { LINE_ENDS } from '../text.ts'
import { codeRegions } from './code-regions.ts'

/** A streaming text filter. The result does not depend on where the text is split into chunks. */
export interface TextFilter {
  /** Returns the filtered text so far; keeps back only what depends on the next character. */
  push(chunk: string): string
  /** Returns the remaining text. Further text continues it. */
  end(): string
}

/**
 * Filters the Markdown a model writes before a person sees it: no images, and links only to web pages. Changed text
 * stays readable, only invisible characters are removed, and code stays (docs/decisions/0031-untrusted-text.md).
 */
export function answerFilter(): TextFilter {
  const clean = cleaningFilter()
  const code = codeRegions()
  let pending = ''
  let last = ''

  const filter = (text: string, isEnd: boolean): string => {
    pending += text
    let output = ''
    let at = 0
    const show = (shown: string, length: number): void => {
      code.pass(shown)
      output += shown
      at += length
    }
    while (at < pending.length) {
      const found = code.codeAt(pending, at, isEnd)
      if (found === 'undecided') break
      if (found !== null) {
        output += pending.slice(at, at + found)
        at += found
        continue
      }
      const marks = code.runAt(pending, at)
      const plain = marks || pending.slice(at).search(/[!<\]`~]|(?<=\n)|$/)
      show(pending.slice(at, at + plain), plain)
      if (plain > 0) continue
      const replacement = REPLACEMENTS[pending.charAt(at)]?.(pending, at, (last + output).slice(-1))
      if (replacement === undefined) continue
      if (replacement.isOpen && !isEnd) break
      show(replacement.text, replacement.length)
    }
    pending = pending.slice(at)
    last = (last + output).slice(-1)
    return output
  }

  return {
    push: (chunk) => filter(clean.push(chunk), false),
    end: () => filter(clean.end(), true),
  }
}

/** The output for the next `length` code units; undecided while later text may change it. */
interface Replacement {
  text: string
  length: number
  isOpen?: boolean
}

const unchanged = (text: string): Replacement => ({ text, length: text.length })
const undecided = (text: string, length = text.length): Replacement => ({ text, length, isOpen: true })

/** The replacement rule of each character that can start markup, given its position and the character before it. */
const REPLACEMENTS: Readonly<Record<string, (text: string, at: number, before: string) => Replacement>> = {
  '!': exclamation,
  ']': closingBracket,
  '<': openingAngle,
}

/**
 * Turns an image into a link by removing the `!`, or by a space behind it if it may be punctuation or the negation of a
 * list; an image without text gets the text `image`.
 */
function exclamation(text: string, at: number, before: string): Replacement {
  const [, bracket, next] = text.slice(at, at + 3)
  if (bracket === undefined) return undecided('!')
  if (bracket !== '[') return unchanged('!')
  const link = next === ']' ? '[image' : '['
  const isOther = /[^\s[]/.test(before) || /["'\d[{]/.test(next ?? '')
  const replacement = { text: isOther ? `! ${link}` : link, length: 2 }
  return next === undefined ? { ...replacement, isOpen: true } : replacement
}

/** Most white space allowed before the target of a link. */
const TARGET_SPACE_MAX_LENGTH = 8

/** Separates a target that is not a web page from its link text; does the same with reference definitions. */
function closingBracket(text: string, at: number): Replacement {
  const next = text[at + 1]
  if (next === undefined) return undecided(']')
  if (next === ':') return { text: '] :', length: 2 }
  if (next !== '(') return unchanged(']')
  const target = text.slice(at + 2).replace(/^[ \t\n]*/, '')
  const space = text.length - at - 2 - target.length
  const isWeb = space <= TARGET_SPACE_MAX_LENGTH && startsWithWebAddress(target.replace(/^</, ''))
  if (isWeb === 'undecided') return undecided('] (', 2)
  return isWeb ? unchanged('](') : { text: '] (', length: 2 }
}

const WEB_PREFIXES = ['https://', 'http://']

function startsWithWebAddress(text: string): boolean | 'undecided' {
  const start = text.slice(0, 'https://'.length).toLowerCase()
  if (WEB_PREFIXES.some((prefix) => start.startsWith(prefix))) return true
  return WEB_PREFIXES.some((prefix) => prefix.startsWith(start)) ? 'undecided' : false
}

/** Longest `<https://…>` to wait for. */
const AUTOLINK_MAX_LENGTH = 2_000

/** Inserts a space so that no HTML tag is left; `<https://…>` stays. */
function openingAngle(text: string, at: number): Replacement {
  const next = text[at + 1]
  if (next === undefined) return undecided('<')
  if (!/[a-z/!?]/i.test(next)) return unchanged('<')
  const broken = { text: '< ', length: 1 }
  const isWeb = startsWithWebAddress(text.slice(at + 1))
  if (isWeb !== true) return { ...broken, isOpen: isWeb === 'undecided' }
  const inside = text.slice(at + 1, at + 1 + AUTOLINK_MAX_LENGTH)
  const [address = ''] = /^[^\s<>]*/.exec(inside) ?? []
  if (inside[address.length] === '>') return unchanged('<')
  return { ...broken, isOpen: address.length === inside.length && inside.length < AUTOLINK_MAX_LENGTH }
}

/**
 * Control characters except tab and newline, and characters that are not drawn, except the joiners that emoji and some
 * scripts need. A terminal would obey them, and a reader would not see them.
 */
const HIDDEN =
  /(?!\t|\n|\u200C|\u200D|\uFE0E|\uFE0F)[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Noncharacter_Code_Point}\uFFF9-\uFFFB]/gu

/** Cleans a whole text; see {@link cleaningFilter}. */
export function cleanText(text: string): string {
  const clean = cleaningFilter()
  return clean.push(text) + clean.end()
}

/**
 * Creates a filter that returns well-formed text without hidden characters, with `\n` as the only line end: safe for a
 * terminal.
 */
export function cleaningFilter(): TextFilter {
  let highSurrogate = ''
  let afterReturn = false

  const clean = (text: string): string => {
    if (text === '') return ''
    const continued = afterReturn ? text.replace(/^\n/, '') : text
    afterReturn = text.endsWith('\r')
    return continued.toWellFormed().replace(LINE_ENDS, '\n').replace(HIDDEN, '')
  }

  return {
    push(chunk) {
      const text = highSurrogate + chunk
      highSurrogate = /[\uD800-\uDBFF]$/.test(text) ? text.slice(-1) : ''
      return clean(highSurrogate === '' ? text : text.slice(0, -1))
    },
    end() {
      const rest = clean(highSurrogate)
      highSurrogate = ''
      return rest
    },
  }
}
