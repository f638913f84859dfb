/**
 * Text of strangers, stored or typed, before it is shown to a model (docs/decisions/0031-untrusted-text.md): what is left
 * is what a reader would see.
 */

/** Every way to end a line that Unicode knows. */
export const LINE_ENDS = /\r\n?|[\v\f\u0085\u2028\u2029]/g

/**
 * Controls but newline; everything Unicode calls ignorable when it is drawn (zero-width and bidirectional characters, soft
 * hyphens, variation selectors and their supplement, tag characters); annotation marks, noncharacters and private use,
 * which nobody can read.
 */
const HIDDEN =
  /(?!\n|\u200C|\u200D|\uFE0E|\uFE0F)[\p{Cc}\p{Co}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Noncharacter_Code_Point}\uFFF9-\uFFFB]/gu

const JOINERS = /\u200C|\u200D|\uFE0E|\uFE0F/g

/** Scripts whose letters joiners shape. */
const SCRIPTS = 'Arab Syrc Mong Deva Beng Guru Gujr Orya Taml Telu Knda Mlym Sinh Khmr Mymr'.split(' ')
const SHAPED = `[${SCRIPTS.map((script) => String.raw`\p{scx=${script}}`).join('')}]`

/**
 * Joiners and presentation selectors that are part of what is drawn: inside emoji and keycaps, and between letters that
 * they shape. Anywhere else they are hidden text. What stands beside them is looked at with the rest already removed, and
 * never is one of them itself but for the selector of an emoji, so that cleaning a text again changes nothing.
 */
const DRAWN_JOINER = new RegExp(
  [
    String.raw`(?<=\p{Extended_Pictographic}(?:\uFE0F|\p{Emoji_Modifier})?)\u200D(?=\p{Extended_Pictographic})`,
    String.raw`(?<=\p{Extended_Pictographic})[\uFE0E\uFE0F]`,
    String.raw`(?<=[0-9#*])\uFE0F(?=\u20E3)`,
    `(?<=${SHAPED})[\\u200C\\u200D](?=${SHAPED})`,
  ].join('|'),
  'gu',
)

/** Stands for a drawn joiner while the others are removed; hidden itself, so that no text holds it. */
const KEPT = new Map([
  ['\u200C', '\uE000'],
  ['\u200D', '\uE001'],
  ['\uFE0E', '\uE002'],
  ['\uFE0F', '\uE003'],
])
const RESTORED = new Map([...KEPT].map(([joiner, mark]) => [mark, joiner]))

/**
 * Stored text as a model is shown it: well-formed Unicode whose lines end in `\n`, without anything a reader would not
 * see. Emoji sequences and the letters that joiners shape stay as they are. The same text again is left as it is.
 */
export function visibleText(text: string): string {
  return text
    .toWellFormed()
    .replace(LINE_ENDS, '\n')
    .replaceAll('\t', ' ')
    .replace(HIDDEN, '')
    .replace(DRAWN_JOINER, (joiner) => KEPT.get(joiner) ?? '')
    .replace(JOINERS, '')
    .replace(/[\uE000-\uE003]/g, (mark) => RESTORED.get(mark) ?? '')
}

/** {@link visibleLine} without any joiner or selector, as the settings of a request are read. */
export function strictLine(text: string): string {
  return visibleLine(visibleText(text).replace(JOINERS, ''))
}

/** {@link visibleText} on one line, for titles, names and links. */
export function visibleLine(text: string): string {
  return visibleText(text).replace(/\s+/g, ' ').trim()
}

/** The first `length` code points. */
export function firstCodePoints(text: string, length: number): string {
  return text.length <= length
    ? text
    : Array.from(text.slice(0, 2 * length))
        .slice(0, length)
        .join('')
}

/** The longest beginning of a well-formed text that takes at most `bytes` of UTF-8, whole characters only. */
export function firstBytes(text: string, bytes: number): string {
  const beginning = new TextEncoder().encode(text).subarray(0, bytes)
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(beginning, { stream: true })
}

/** Longest text of a report, in characters: input and responses are not to be repeated at length. */
const TEXT_MAX_LENGTH = 400

/** A text short enough for a report, and on one line; `…` at its end where some of it was left out. */
export function shorten(text: string): string {
  // A text of many megabytes need not be taken apart to see that it is too long.
  const start = text.slice(0, 2 * TEXT_MAX_LENGTH + 1)
  const characters = Array.from(start.replaceAll(/\s+/g, ' '))
  const isCut = characters.length > TEXT_MAX_LENGTH || start.length < text.length
  return characters.slice(0, TEXT_MAX_LENGTH).join('') + (isCut ? '…' : '')
}

/** Code-unit order, the same on every machine and in every locale. */
export function compareCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

const encoder = new TextEncoder()

/** How many bytes of UTF-8 a text takes. */
export function byteLengthOf(text: string): number {
  return encoder.encode(text).byteLength
}

/** The value of a JSON text; undefined for any other. The parser's own error repeats the text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
