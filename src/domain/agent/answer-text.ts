/**
 * What a model says, before anybody reads it (docs/security.md): Markdown of which no reader makes an image, and links
 * to nothing but web pages. Whatever is changed stays readable; nothing is left out but what cannot be seen.
 */
export interface AnswerText {
  /** What can be given out of everything pushed so far; holds back only what the next character decides on. */
  push(chunk: string): string
  /** The rest. */
  end(): string
}

/** Longest text of an image that is waited for; a longer one is taken for an image. */
const ALT_MAX_LENGTH = 500

/** Longest `<https://…>` that is waited for. */
const AUTOLINK_MAX_LENGTH = 2_000

/** White space allowed before the target of a link. */
const TARGET_SPACE_MAX_LENGTH = 8

/**
 * Controls but tab and newline, and what is ignored when it is drawn, save what joins emoji and the letters of some
 * scripts: a terminal would obey it, and nobody else would see it.
 */
const HIDDEN =
  /(?!\t|\n|\u200C|\u200D|\uFE0E|\uFE0F)[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Noncharacter_Code_Point}\uFFF9-\uFFFB]/gu

/**
 * The filter of one answer, however it is cut into chunks. What it changes, and why no more is needed, is told in
 * docs/decisions/0031-untrusted-text.md.
 */
export function answerText(): AnswerText {
  const clean = cleanText()
  let held = ''
  // An answer begins like a line.
  let before = '\n'

  const take = (text: string, isEnd: boolean): string => {
    held += text
    let given = ''
    let at = 0
    for (;;) {
      const next = held.slice(at).search(/[!<\]@&:]/)
      const plainEnd = next === -1 ? held.length : at + next
      given += held.slice(at, plainEnd)
      at = plainEnd
      if (at === held.length) break
      const change = changeAt(before + given, held, at, isEnd)
      if (change === 'undecided') break
      // What is left out must not let what stood before it take its place.
      const joins = held[at] === '!' && change.text !== '!' && (before + given).endsWith('!')
      given += joins ? ` ${change.text}` : change.text
      at += change.length
    }
    held = held.slice(at)
    before = (before + given).slice(-LOOK_BACK_LENGTH)
    return given
  }

  return {
    push: (chunk) => take(clean.push(chunk), false),
    end: () => take(clean.end(), true),
  }
}

const SAME = (text: string): Change => ({ text, length: text.length })

/** @param given what was given out before */
function changeAt(given: string, text: string, at: number, isEnd: boolean): Change {
  switch (text.charAt(at)) {
    case '!':
      return exclamation(text, at, isEnd)
    case ']':
      return closingBracket(text, at, isEnd)
    case '@':
      return mailSign(given, text, at, isEnd)
    case '&':
      return mailSignEntity(text, at, isEnd)
    case ':':
      return schemeEnd(given, text, at, isEnd)
    default:
      return openingAngle(text, at, isEnd)
  }
}

/** The mark before an image goes, so that it is a link; one without a text gets one. */
function exclamation(text: string, at: number, isEnd: boolean): Change {
  const next = text[at + 1]
  if (next === undefined) return isEnd ? SAME('!') : 'undecided'
  if (next !== '[') return SAME('!')
  const image = isImage(text, at + 1)
  if (image === 'undecided') return isEnd ? SAME('!') : 'undecided'
  if (!image) return SAME('!')
  return text[at + 2] === ']' ? { text: '[image', length: 2 } : { text: '', length: 1 }
}

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

/** A target other than a web page is set apart from its text, and so is that of a definition others could refer to. */
function closingBracket(text: string, at: number, isEnd: boolean): Change {
  const next = text[at + 1]
  if (next === undefined) return isEnd ? SAME(']') : 'undecided'
  if (next === ':') return { text: '] :', length: 2 }
  if (next !== '(') return SAME(']')
  const target = text.slice(at + 2).replace(/^[ \t\n]*/, '')
  const space = text.length - at - 2 - target.length
  const isWeb = space <= TARGET_SPACE_MAX_LENGTH && beginsAsWebAddress(target.replace(/^</, ''))
  if (isWeb === 'undecided') return isEnd ? { text: '] (', length: 2 } : 'undecided'
  return isWeb ? SAME('](') : { text: '] (', length: 2 }
}

const WEB_BEGINNINGS = ['https://', 'http://']

function beginsAsWebAddress(text: string): boolean | 'undecided' {
  const begun = text.slice(0, 'https://'.length).toLowerCase()
  if (WEB_BEGINNINGS.some((beginning) => begun.startsWith(beginning))) return true
  return WEB_BEGINNINGS.some((beginning) => beginning.startsWith(begun)) ? 'undecided' : false
}

/** A space keeps what could be a tag from being one; `<https://…>` stays. */
function openingAngle(text: string, at: number, isEnd: boolean): Change {
  const next = text[at + 1]
  if (next === undefined) return isEnd ? SAME('<') : 'undecided'
  if (!/[a-z/!?]/i.test(next)) return SAME('<')
  const isWeb = beginsAsWebAddress(text.slice(at + 1))
  if (isWeb === 'undecided' && !isEnd) return 'undecided'
  if (isWeb !== true) return { text: '< ', length: 1 }
  const inside = text.slice(at + 1, at + 1 + AUTOLINK_MAX_LENGTH)
  const [address = ''] = /^[^\s<>]*/.exec(inside) ?? []
  if (address.length < inside.length)
    return inside[address.length] === '>' ? SAME('<') : { text: '< ', length: 1 }
  return isEnd || inside.length === AUTOLINK_MAX_LENGTH ? { text: '< ', length: 1 } : 'undecided'
}

/** A whole text as {@link cleanText} gives it. */
export function cleaned(text: string): string {
  const clean = cleanText()
  return clean.push(text) + clean.end()
}

/** Well-formed text without hidden characters, whose lines end in `\n`, however it is cut: safe for a terminal. */
export function cleanText(): AnswerText {
  let highSurrogate = ''
  let afterReturn = false

  const clean = (text: string): string => {
    if (text === '') return ''
    const continued = afterReturn ? text.replace(/^\n/, '') : text
    afterReturn = text.endsWith('\r')
    return continued
      .toWellFormed()
      .replace(/\r\n?|[\v\f\u0085\u2028\u2029]/g, '\n')
      .replace(HIDDEN, '')
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

/**
 * What a reader of Markdown makes a link of by itself, without any mark: addresses of mail, with or without `mailto:` and
 * `xmpp:`, and `ftp://` (docs/decisions/0031-untrusted-text.md). Each is broken by one space; web addresses stay whole.
 */

/** What is given out for the next `length` code units; `undecided`: more must be known. */
type Change = { text: string; length: number } | 'undecided'

/** How much of what was given out decides on what follows. */
const LOOK_BACK_LENGTH = 2_000

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

/**
 * @param given what was given out before, at least its last {@link LOOK_BACK_LENGTH} code units
 * @param at place of an `@` in `text`
 */
function mailSign(given: string, text: string, at: number, isEnd: boolean): Change {
  const same = { text: '@', length: 1 }
  if (!LOCAL_PART_END.test(given) || IN_WEB_ADDRESS.test(given)) return same
  const broken = { text: ' @', length: 1 }
  const rest = text.slice(at + 1, at + 1 + HOST_MAX_LENGTH)
  const [name = ''] = /^[\w-]*/.exec(rest) ?? []
  const [stop, next] = [rest[name.length], rest[name.length + 1]]
  if (rest.length === HOST_MAX_LENGTH && stop === undefined) return broken
  if (stop === undefined || (stop === '.' && next === undefined)) return isEnd ? same : 'undecided'
  const goesOn = stop === '.' ? /[\w\-\\&]/.test(next ?? '') : stop === '\\' || stop === '&'
  return goesOn ? broken : same
}

/** Longest name of an entity for `@`, leading zeros included. */
const ENTITY_MAX_LENGTH = 8

/** @param at place of an `&` in `text`, which begins an entity that stands for `@` or does not */
function mailSignEntity(text: string, at: number, isEnd: boolean): Change {
  const same = { text: '&', length: 1 }
  const rest = text.slice(at + 1, at + 2 + ENTITY_MAX_LENGTH)
  const [name = ''] = /^#?[a-z0-9]*/i.exec(rest) ?? []
  const couldBe = 'commat'.startsWith(name) || /^#(?:\d*|x[\da-f]*)$/i.test(name)
  if (!couldBe) return same
  if (name.length === rest.length) return isEnd || name.length > ENTITY_MAX_LENGTH ? same : 'undecided'
  const is = name === 'commat' || /^#(?:0*64|x0*40)$/i.test(name)
  return is && rest[name.length] === ';' ? { text: '& ', length: 1 } : same
}

/** @param at place of a `:` in `text` */
function schemeEnd(given: string, text: string, at: number, isEnd: boolean): Change {
  const same = { text: ':', length: 1 }
  if (!/ftp$/i.test(given) || IN_WEB_ADDRESS.test(given)) return same
  const next = text.slice(at + 1, at + 3)
  if (next === '//') return { text: ' :', length: 1 }
  return '//'.startsWith(next) && !isEnd ? 'undecided' : same
}
