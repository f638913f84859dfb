import { LINE_ENDS } from '../text.ts'

/** A filter of a text that comes in chunks, however it is cut. */
export interface TextFilter {
  /** What can be given out of everything pushed so far; holds back only what the next character decides on. */
  push(chunk: string): string
  /** The rest. */
  end(): string
}

/**
 * What a model says, before anybody reads it: Markdown of which no reader makes an image, and links to nothing but web
 * pages. Whatever is changed stays readable; nothing is left out but what cannot be seen
 * (docs/decisions/0031-untrusted-text.md).
 */
export function answerFilter(): TextFilter {
  const clean = cleaningFilter()
  let pending = ''
  // An answer begins like a line.
  let lookBehind = '\n'

  const filter = (text: string, isEnd: boolean): string => {
    pending += text
    let output = ''
    let at = 0
    for (;;) {
      const next = pending.slice(at).search(/[!<\]@&:]/)
      const plainEnd = next === -1 ? pending.length : at + next
      output += pending.slice(at, plainEnd)
      at = plainEnd
      const replacement = REPLACEMENTS[pending.charAt(at)]?.(pending, at, lookBehind + output)
      if (!replacement || (replacement.isOpen && !isEnd)) break
      // What is left out must not let what stood before it take its place.
      const joins = pending[at] === '!' && replacement.text !== '!' && (lookBehind + output).endsWith('!')
      output += joins ? ` ${replacement.text}` : replacement.text
      at += replacement.length
    }
    pending = pending.slice(at)
    lookBehind = (lookBehind + output).slice(-LOOK_BACK_LENGTH)
    return output
  }

  return {
    push: (chunk) => filter(clean.push(chunk), false),
    end: () => filter(clean.end(), true),
  }
}

/** What is given out for the next `length` code units; where it is open, more text may decide otherwise. */
interface Replacement {
  text: string
  length: number
  isOpen?: boolean
}

const unchanged = (text: string): Replacement => ({ text, length: text.length })
const undecided = (text: string, length = text.length): Replacement => ({ text, length, isOpen: true })

/** How much of what was given out decides on what follows. */
const LOOK_BACK_LENGTH = 2_000

/** What becomes of each character that could begin something, by its place and what was given out before it. */
const REPLACEMENTS: Readonly<Record<string, (text: string, at: number, given: string) => Replacement>> = {
  '!': exclamation,
  ']': closingBracket,
  '<': openingAngle,
  '@': mailSign,
  '&': mailSignEntity,
  ':': schemeEnd,
}

/** The mark before an image goes, so that it is a link; one without a text gets one. */
function exclamation(text: string, at: number): Replacement {
  const next = text[at + 1]
  if (next === undefined) return undecided('!')
  const image = next === '[' && isImage(text, at + 1)
  if (image === 'undecided') return undecided('!')
  if (!image) return unchanged('!')
  return text[at + 2] === ']' ? { text: '[image', length: 2 } : { text: '', length: 1 }
}

/** Longest text of an image that is waited for; a longer one is taken for an image. */
const ALT_MAX_LENGTH = 500

/**
 * Whether the bracket at `start`, after a `!`, begins an image: its partner is followed by `(`. In what may be code or
 * markup brackets need not be partners, so that is taken for an image.
 */
function isImage(text: string, start: number): boolean | 'undecided' {
  let depth = 0
  for (let at = start; at < text.length; at += 1) {
    if (at - start >= ALT_MAX_LENGTH) return true
    const character = text[at]
    if (character === '\\') at += 1
    else if (character === '`' || character === '<') return true
    else if (character === '[') depth += 1
    else if (character === ']') {
      depth -= 1
      if (depth > 0) continue
      return at + 1 < text.length ? text[at + 1] === '(' : 'undecided'
    }
  }
  return 'undecided'
}

/** White space allowed before the target of a link. */
const TARGET_SPACE_MAX_LENGTH = 8

/** A target other than a web page is set apart from its text, and so is that of a definition others could refer to. */
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

/** Longest `<https://…>` that is waited for. */
const AUTOLINK_MAX_LENGTH = 2_000

/** A space keeps what could be a tag from being one; `<https://…>` stays. */
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

/*
 * What a reader of Markdown makes a link of by itself, without any mark: addresses of mail, with or without `mailto:` and
 * `xmpp:`, and `ftp://`. Each is broken by one space; web addresses stay whole.
 */

/** Longest name of a host that is waited for. */
const HOST_MAX_LENGTH = 255

/** The end of a text lies behind the host of a web address that every reader makes a link of, or of the target of a link. */
const IN_WEB_ADDRESS =
  /[\s(<]https?:\/\/(?:[a-z0-9-]+\.)+[a-z0-9-]*[a-z0-9](?::\d+)?[/?#][\w\-.~:/?#@!$&+,;=%]*$/i

/**
 * Before the sign of an address of mail, between angle brackets (CommonMark) or bare (GFM); an entity or an escape may stand
 * for one of its characters.
 */
const LOCAL_PART_END = /[\w.!#$%&'*+\-/=?^`{|}~;\\]$/

function mailSign(text: string, at: number, given: string): Replacement {
  if (!LOCAL_PART_END.test(given) || IN_WEB_ADDRESS.test(given)) return unchanged('@')
  const broken = { text: ' @', length: 1 }
  const rest = text.slice(at + 1, at + 1 + HOST_MAX_LENGTH)
  const [name = ''] = /^[\w-]*/.exec(rest) ?? []
  const [stop, next] = [rest[name.length], rest[name.length + 1]]
  if (rest.length === HOST_MAX_LENGTH && stop === undefined) return broken
  if (stop === undefined || (stop === '.' && next === undefined)) return undecided('@')
  const isMailHost = stop === '.' ? /[\w\-\\&]/.test(next ?? '') : stop === '\\' || stop === '&'
  return isMailHost ? broken : unchanged('@')
}

/** Longest name of an entity for `@`, leading zeros included. */
const ENTITY_MAX_LENGTH = 8

/** An entity that stands for `@` is no entity any more. */
function mailSignEntity(text: string, at: number): Replacement {
  const rest = text.slice(at + 1, at + 2 + ENTITY_MAX_LENGTH)
  const [name = ''] = /^#?[a-z0-9]*/i.exec(rest) ?? []
  const mayBeMailSign = 'commat'.startsWith(name) || /^#(?:\d*|x[\da-f]*)$/i.test(name)
  if (!mayBeMailSign) return unchanged('&')
  if (name.length === rest.length) return name.length > ENTITY_MAX_LENGTH ? unchanged('&') : undecided('&')
  const isMailSign = name === 'commat' || /^#(?:0*64|x0*40)$/i.test(name)
  return isMailSign && rest[name.length] === ';' ? { text: '& ', length: 1 } : unchanged('&')
}

function schemeEnd(text: string, at: number, given: string): Replacement {
  if (!/ftp$/i.test(given) || IN_WEB_ADDRESS.test(given)) return unchanged(':')
  const next = text.slice(at + 1, at + 3)
  if (next === '//') return { text: ' :', length: 1 }
  return '//'.startsWith(next) ? undecided(':') : unchanged(':')
}

/**
 * Controls but tab and newline, and what is ignored when it is drawn, save what joins emoji and the letters of some
 * scripts: a terminal would obey it, and nobody else would see it.
 */
const HIDDEN =
  /(?!\t|\n|\u200C|\u200D|\uFE0E|\uFE0F)[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Noncharacter_Code_Point}\uFFF9-\uFFFB]/gu

/** A whole text as {@link cleaningFilter} gives it. */
export function cleanText(text: string): string {
  const clean = cleaningFilter()
  return clean.push(text) + clean.end()
}

/** Well-formed text without hidden characters, whose lines end in `\n`, however it is cut: safe for a terminal. */
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
