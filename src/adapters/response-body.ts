import { once } from 'node:events'
import type { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
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

const DECODERS: Readonly<Record<string, (body: Readable) => Transform | Promise<Transform>>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  br: () => createBrotliDecompress(),
  deflate: createAnyInflate,
}

/** Compressions that are not undone. Other unknown names are mistakes, such as `utf-8`, and are ignored as by browsers. */
const UNSUPPORTED_CODINGS: ReadonlySet<string> = new Set('zstd compress x-compress dcb dcz'.split(' '))

/** Some servers leave out the header of zlib. */
async function createAnyInflate(body: Readable): Promise<Transform> {
  await once(body, 'readable')
  const start = body.read() as Buffer | null
  if (start !== null) body.unshift(start)
  return ((start?.[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw()
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
    const decoder = await decoderOf(headers, body)
    await (decoder ? pipeline(body, decoder, collect) : pipeline(body, collect))
  } catch (error) {
    body.destroy()
    failure = error
  }
  const bytes = Buffer.concat(chunks)
  const isCut = bytes.byteLength > maxBytes
  // An error after the limit is a consequence of the limit.
  if (failure !== null && !isCut) throw failure
  return { bytes: bytes.subarray(0, maxBytes), isCut }
}

async function decoderOf(headers: Headers, body: Readable): Promise<Transform | null> {
  const names = [headers['content-encoding'] ?? []].flat().join(',').toLowerCase().split(',')
  const codings = names
    .map((name) => name.trim())
    .filter((name) => Object.hasOwn(DECODERS, name) || UNSUPPORTED_CODINGS.has(name))
  const [coding = ''] = codings
  if (codings.length > 1 || UNSUPPORTED_CODINGS.has(coding))
    throw new UnsupportedCoding(`unsupported compression ${codings.join(', ').slice(0, 40)}`)
  return (await DECODERS[coding]?.(body)) ?? null
}
