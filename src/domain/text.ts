/**
 * Cleaning and measuring of untrusted text before a model reads it (docs/decisions/0031-untrusted-text.md): only
 * visible characters stay.
 */

/** Every Unicode line ending except a line feed alone. */
export const LINE_ENDS = /\r\n?|[\v\f\u0085\u2028\u2029]/g

/**
 * Control characters except newline, default-ignorable characters (zero-width and bidirectional characters, soft
 * hyphens, variation selectors, tag characters), annotation marks, noncharacters and private use.
 */
const HIDDEN =
  /(?!\n|\u200C|\u200D|\uFE0E|\uFE0F)[\p{Cc}\p{Co}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Noncharacter_Code_Point}\uFFF9-\uFFFB]/gu

const JOINERS = /\u200C|\u200D|\uFE0E|\uFE0F/g

/** Scripts whose letters joiners shape. */
const SCRIPTS = 'Arab Syrc Mong Deva Beng Guru Gujr Orya Taml Telu Knda Mlym Sinh Khmr Mymr'.split(' ')
const SHAPED = `[${SCRIPTS.map((script) => String.raw`\p{scx=${script}}`).join('')}]`

/**
 * Joiners and presentation selectors that affect the display: inside emoji and keycaps, and between letters that they
 * shape. Elsewhere they are hidden text. The match looks at the neighbours after removal of the other hidden
 * characters, so that cleaning twice changes nothing.
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

/**
 * Placeholders for displayed joiners while the others are removed; they are hidden characters themselves, so that no
 * cleaned text holds them.
 */
const KEPT = new Map([
  ['\u200C', '\uE000'],
  ['\u200D', '\uE001'],
  ['\uFE0E', '\uE002'],
  ['\uFE0F', '\uE003'],
])
const RESTORED = new Map([...KEPT].map(([joiner, mark]) => [mark, joiner]))

/**
 * Cleans stored text for a model: well-formed Unicode with line feeds and without invisible characters. Emoji sequences
 * and shaped letters stay. Cleaning twice changes nothing.
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

/** {@link visibleLine} without any joiner or selector, for the settings of a request. */
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

/** The longest prefix of a well-formed text in at most `bytes` of UTF-8, whole characters only. */
export function firstBytes(text: string, bytes: number): string {
  const beginning = new TextEncoder().encode(text).subarray(0, bytes)
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(beginning, { stream: true })
}

/** Removes characters that override the direction of a text; isolates and marks, which languages need, stay. */
export function withoutOverrides(text: string): string {
  return text.replaceAll(/[\u202a-\u202e]/g, '')
}

/** Longest text in a report, in characters. */
const TEXT_MAX_LENGTH = 400

/** Shortens a text for a report to one line; a shortened text ends in `…`. */
export function shorten(text: string): string {
  // Avoids splitting a very long text.
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

export function byteLengthOf(text: string): number {
  return encoder.encode(text).byteLength
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes UTF-8, and keeps a byte order mark; null for other bytes. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

/**
 * Decodes a text that must be UTF-8 to the last byte, such as a signed one. A byte order mark is a character of it.
 *
 * @returns an empty text, which no signed format accepts, for other or no bytes
 */
export function utf8Text(bytes: Uint8Array | null | undefined): string {
  return bytes ? (decodeUtf8(bytes) ?? '') : ''
}

/**
 * True for an absolute http or https URL (docs/importing.md).
 *
 * Uses the constructor, because `URL.canParse` on Node 20 and 22 rejects some valid hosts after many calls
 * (`https://\u00ef.at`).
 */
export function isHttpUrl(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol)
  } catch {
    return false
  }
}
