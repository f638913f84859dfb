import { legacyHookDecode, normalizeEncoding } from '@exodus/bytes/encoding.js'

/**
 * Decodes pages as the HTML standard does (docs/decisions/0015-article-fetching.md). Node's own decoder reads
 * windows-1252 and EUC-KR wrong.
 */

/** Decodes bytes by their byte order mark, otherwise in an encoding. Invalid bytes become U+FFFD. */
export function decode(bytes: Uint8Array, encoding: string): string {
  return legacyHookDecode(bytes, encoding)
}

/** The encoding in a `content-type` header; null if it names none that exists. */
export function headerEncoding(contentType: string): string | null {
  return encodingOf(/[;\s]charset\s*=\s*["']?([^\s;"']+)/i.exec(contentType))
}

/** The encoding in an XML declaration. */
export function xmlEncoding(bytes: Uint8Array): string | null {
  const start = Buffer.from(bytes.subarray(0, 1_024)).toString('latin1')
  if (start.startsWith('<\0?\0')) return 'utf-16le'
  if (start.startsWith('\0<\0?')) return 'utf-16be'
  return readableEncoding(/^<\?xml\s[^>]*?\bencoding\s*=\s*["']([^"'>]*)["']/.exec(start))
}

/** The attributes of a `meta` element that matter here. */
export interface MetaAttributes {
  charset: string | null
  httpEquiv: string | null
  content: string | null
}

/** The encoding in a `meta` element. */
export function metaEncoding({ charset, httpEquiv, content }: MetaAttributes): string | null {
  if (charset !== null) return readableEncoding(/^\s*(.*?)\s*$/s.exec(charset))
  if (httpEquiv?.trim().toLowerCase() !== 'content-type') return null
  return readableEncoding(/charset\s*=\s*["']?([^\s;"']+)/i.exec(content ?? ''))
}

/** The numbers of characters outside ASCII, and of invalid parts, of bytes read as UTF-8. */
function countUtf8(bytes: Uint8Array): { others: number; invalid: number } {
  const counts = { others: 0, invalid: 0 }
  for (const character of decode(bytes, 'utf-8')) {
    if (character === '\uFFFD') counts.invalid += 1
    else if (character > '\x7F') counts.others += 1
  }
  return counts
}

/**
 * The encoding of a text that names none: UTF-8, unless most of what is not ASCII is invalid in it; otherwise
 * windows-1252, the default of browsers.
 */
export function likelyEncoding(bytes: Uint8Array): string {
  const { others, invalid } = countUtf8(bytes)
  return invalid > others ? 'windows-1252' : 'utf-8'
}

/** True for other data that a server names text, such as a PDF: texts have hardly any control characters. */
export function isBinary(text: string): boolean {
  return (text.match(/(?![\0\b\t\n\v\f\r\x80-\x9F])\p{Cc}/gu)?.length ?? 0) > text.length / 100
}

/**
 * The encoding that a page or its server names; null if the bytes contradict it: UTF-8 is hardly ever valid by chance.
 * Browsers show such pages without their letters.
 */
export function credibleEncoding(encoding: string | null, bytes: Uint8Array): string | null {
  if (encoding === null) return null
  const { others, invalid } = countUtf8(bytes)
  const isContradicted = encoding === 'utf-8' ? invalid > others : others > 0 && invalid === 0
  return isContradicted ? null : encoding
}

/** A declaration that was readable as ASCII cannot be in UTF-16; HTML takes it for UTF-8. */
function readableEncoding(match: RegExpExecArray | null): string | null {
  const encoding = encodingOf(match)
  if (encoding === 'x-user-defined') return 'windows-1252'
  return encoding?.startsWith('utf-16') ? 'utf-8' : encoding
}

function encodingOf(match: RegExpExecArray | null): string | null {
  return match?.[1] === undefined ? null : normalizeEncoding(match[1])
}
