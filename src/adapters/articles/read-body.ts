import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { PageProblem } from './page-problem.ts'

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

export interface BodyLimit {
  /** Of the body as it comes out of its compression. */
  maxBytes: number
  /** What a longer body is: not read at all, or read up to there. */
  beyond: 'refuse' | 'cut'
}

/**
 * A body, decompressed as it comes, so that a small one that unpacks to a huge one is ended at the limit.
 *
 * @param encoding value of the `content-encoding` header
 * @throws PageProblem `tooLarge`, or `notHtml` for a compression that was not asked for
 */
export async function readBody(
  body: Readable,
  encoding: string,
  { maxBytes, beyond }: BodyLimit,
  url: string,
): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  const collect = async (source: AsyncIterable<Uint8Array>): Promise<void> => {
    for await (const chunk of source) {
      size += chunk.byteLength
      chunks.push(chunk)
      if (size > maxBytes) return
    }
  }
  try {
    const name = encoding.trim().toLowerCase()
    if (name === '' || name === 'identity') {
      await pipeline(body, collect)
    } else {
      const decoder = DECODERS[name]
      if (!decoder) throw new PageProblem('notHtml', `${url}: it is compressed with ${name.slice(0, 40)}`)
      await pipeline(body, decoder(), collect)
    }
  } catch (error) {
    body.destroy()
    // What breaks off behind the limit breaks because of it.
    if (size <= maxBytes) throw error
  }
  if (size > maxBytes && beyond === 'refuse') {
    throw new PageProblem('tooLarge', `${url}: it is larger than ${maxBytes} bytes`)
  }
  return Buffer.concat(chunks).subarray(0, maxBytes)
}
