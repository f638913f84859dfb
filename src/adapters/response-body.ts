import { pipeline } from 'node:stream'
import type { Readable, Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'

type Headers = Readonly<Record<string, string | string[] | undefined>>

/**
 * Reads a body.
 *
 * @returns null if the body has more than `maxBytes`; the rest is not read
 */
export async function readBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer | null> {
  const chunks: Uint8Array[] = []
  await readInto(chunks, body, maxBytes)
  const bytes = Buffer.concat(chunks)
  return bytes.byteLength > maxBytes ? null : bytes
}

/**
 * Reads a body until it ends or exceeds `maxBytes`.
 *
 * @param chunks receives the data, so that it is available if the body breaks off
 */
export async function readInto(
  chunks: Uint8Array[],
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<void> {
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.byteLength
    // Leaving the loop ends the connection; the rest is never read.
    if (size > maxBytes) return
  }
}

/** Thrown for a body whose content coding cannot be undone. */
export class UnsupportedCoding extends Error {
  override readonly name = 'UnsupportedCoding'
}

/** Makes a decoder for a body that begins with the given bytes; null if they are not compressed. */
const DECODERS: Readonly<Record<string, (start: Uint8Array) => Transform | null>> = {
  gzip: createAnyGunzip,
  'x-gzip': createAnyGunzip,
  br: () => createBrotliDecompress(),
  // Some servers leave out the header of zlib.
  deflate: ([first = 0]) => ((first & 0x0f) === 8 ? createInflate() : createInflateRaw()),
}

/** Compressions that are not undone. Other unknown names are mistakes, such as `utf-8`, and are ignored as by browsers. */
const UNSUPPORTED_CODINGS: ReadonlySet<string> = new Set('zstd compress x-compress dcb dcz'.split(' '))

/** Most codings of one body. */
const MAX_CODINGS = 3

/** Servers name gzip wrongly, twice or not at all, but its first bytes begin no text. */
function createAnyGunzip([first, second = 0x8b]: Uint8Array): Transform | null {
  return first === 0x1f && second === 0x8b ? createGunzip() : null
}

/**
 * Reads a body and undoes its compression, requested or not. It does so as a stream, so that a decompression bomb ends
 * at the limit.
 *
 * @returns at most `maxBytes`; `isCut`: the body has more, which is not read
 * @throws UnsupportedCoding; errors of the network and of a broken compression
 */
export async function readDecoded(
  { headers, body }: { headers: Headers; body: Readable },
  maxBytes: number,
): Promise<{ bytes: Buffer; isCut: boolean }> {
  const chunks: Uint8Array[] = []
  const collect = (source: AsyncIterable<Uint8Array>): Promise<void> => readInto(chunks, source, maxBytes)
  let failure: unknown = null
  try {
    let decoded = body
    // The coding that was applied last stands last.
    for (const coding of ['gzip', ...codingsOf(headers)].toReversed()) {
      const decoder = DECODERS[coding]?.(await startOf(decoded))
      if (decoder) decoded = pipeline(decoded, decoder, () => undefined)
    }
    await collect(decoded)
  } catch (error) {
    failure = error
  } finally {
    body.destroy()
  }
  const bytes = Buffer.concat(chunks)
  const isCut = bytes.byteLength > maxBytes
  // An error after the limit is a consequence of the limit.
  if (failure !== null && !isCut) throw failure
  return { bytes: bytes.subarray(0, maxBytes), isCut }
}

/** True for a `Content-Encoding` that names a compression; any other name, such as `none` or `utf-8`, names none. */
export function isCompressed(headers: Headers): boolean {
  return compressionsOf(headers).length > 0
}

function compressionsOf(headers: Headers): string[] {
  const names = [headers['content-encoding'] ?? []].flat().join(',').toLowerCase().split(',')
  return names
    .map((name) => name.trim())
    .filter((name) => Object.hasOwn(DECODERS, name) || UNSUPPORTED_CODINGS.has(name))
}

/** The codings in the order in which they were applied. */
function codingsOf(headers: Headers): string[] {
  const codings = compressionsOf(headers)
  if (codings.length > MAX_CODINGS || codings.some((coding) => UNSUPPORTED_CODINGS.has(coding)))
    throw new UnsupportedCoding(`unsupported compression ${codings.join(', ').slice(0, 40)}`)
  return codings
}

/** Returns the first bytes of a body without consuming them; nothing if it is empty or failed. */
async function startOf(body: Readable): Promise<Uint8Array> {
  if (body.readableLength === 0 && !body.readableEnded && !body.destroyed)
    await new Promise((resolve) => {
      for (const event of ['readable', 'end', 'error', 'close']) body.once(event, resolve)
    })
  const start = body.read() as Buffer | null
  if (start !== null) body.unshift(start)
  return start ?? Buffer.alloc(0)
}
