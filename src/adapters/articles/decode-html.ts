import { TextDecoder } from 'node:util'

/** How far into a page its own word for its character set is looked for, in bytes; HTML allows no more. */
const PRESCAN_BYTES = 1_024

/**
 * The text of a page: by its byte order mark, else the character set its header names, else the one it names itself,
 * else UTF-8. Bytes that are no characters become U+FFFD.
 *
 * @param contentType value of the `content-type` header
 */
export function decodePage(bytes: Uint8Array, contentType: string): string {
  const decoder =
    decoderOfMark(bytes) ?? decoderOf(charsetOf(contentType)) ?? decoderOf(ownCharset(bytes)) ?? utf8()
  return decoder.decode(bytes)
}

/** The media type of a `content-type` header, in lower case and without parameters. */
export function mediaTypeOf(contentType: string): string {
  return (contentType.split(';')[0] ?? '').trim().toLowerCase()
}

function decoderOfMark([first, second, third]: Uint8Array): TextDecoder | null {
  if (first === 0xef && second === 0xbb && third === 0xbf) return utf8()
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le')
  return first === 0xfe && second === 0xff ? new TextDecoder('utf-16be') : null
}

function decoderOf(label: string | null): TextDecoder | null {
  if (label === null) return null
  try {
    return new TextDecoder(label)
  } catch {
    // A name nobody knows is as good as none.
    return null
  }
}

function charsetOf(contentType: string): string | null {
  const [, quoted, plain] = /;\s*charset\s*=\s*(?:"([^"]*)"|([^\s;"]+))/i.exec(contentType) ?? []
  return quoted ?? plain ?? null
}

/** What `<meta charset>` or `<meta http-equiv>` says; a page that says UTF-16 there can be read, so it is not. */
function ownCharset(bytes: Uint8Array): string | null {
  const start = new TextDecoder('latin1').decode(bytes.subarray(0, PRESCAN_BYTES))
  const [, label = null] = /<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([^\s"'/>;]+)/i.exec(start) ?? []
  return label !== null && /^utf-?16/i.test(label) ? 'utf-8' : label
}

function utf8(): TextDecoder {
  return new TextDecoder('utf-8')
}
