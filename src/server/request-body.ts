import type { IncomingMessage } from 'node:http'
import type { H3Event } from 'h3'
import type { Refusal } from '../domain/refusal.ts'
import { markBodyRead } from './respond.ts'

/** What a request whose body cannot be taken is refused with. */
interface BodyRefusals {
  /** Of one that is longer than what is read. */
  tooLarge: () => Refusal
  /** Of one that ends before it is whole, or is no UTF-8. */
  malformed: () => Refusal
}

/**
 * The body of a request as text, read to its end. No encoding of the content is undone, and no type asked for.
 *
 * @param maxBytes longest body that is read
 */
export async function readBody(event: H3Event, maxBytes: number, refusals: BodyRefusals): Promise<string> {
  const { tooLarge, malformed } = refusals
  if (Number(event.req.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge()
  const incoming = event.runtime?.node?.req as IncomingMessage | undefined
  // A request of the platform's own, which it would be read from, costs time and stays as long as the answer does.
  const bytes = incoming ? await readIncoming(incoming, maxBytes, refusals) : await event.req.arrayBuffer()
  if (bytes.byteLength > maxBytes) throw tooLarge()
  markBodyRead(event)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw malformed()
  }
}

/** Bytes of a request as they come off its socket; of one that is too long nothing more is taken. */
function readIncoming(
  request: IncomingMessage,
  maxBytes: number,
  { tooLarge, malformed }: BodyRefusals,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const take = (chunk: Buffer): void => {
      chunks.push(chunk)
      size += chunk.byteLength
      if (size <= maxBytes) return
      stop()
      request.pause()
      reject(tooLarge())
    }
    const end = (): void => {
      stop()
      resolve(Buffer.concat(chunks, size))
    }
    const fail = (): void => {
      stop()
      reject(malformed())
    }
    const stop = (): void => {
      request.off('data', take).off('end', end).off('close', fail)
    }
    request.on('data', take).once('end', end).once('close', fail)
    // It may have broken before anybody listened.
    if (request.destroyed) fail()
  })
}
