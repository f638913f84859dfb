import type { IncomingMessage } from 'node:http'
import type { H3Event } from 'h3'
import { markBodyRead } from './respond.ts'

interface BodyRefusals {
  /** For a body above the limit. */
  tooLarge: () => Error
  /** For a body that is incomplete or not UTF-8. */
  malformed: () => Error
  /** Called with the bytes of each part; its error ends the reading. */
  hold?: (bytes: number) => Error | null
}

/**
 * Reads the body of a request as text. Content encoding and content type are ignored.
 *
 * @param maxBytes largest body
 */
export async function readBody(event: H3Event, maxBytes: number, refusals: BodyRefusals): Promise<string> {
  const { tooLarge, malformed } = refusals
  if (Number(event.req.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge()
  const incoming = event.runtime?.node?.req as IncomingMessage | undefined
  // Reading from a platform `Request` costs time, and it stays in memory as long as the response.
  const bytes = await (incoming ? readIncoming(incoming, maxBytes, refusals) : event.req.arrayBuffer())
  if (bytes.byteLength > maxBytes) throw tooLarge()
  markBodyRead(event)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw malformed()
  }
}

/** Reads a request from its socket; stops as soon as it is too long, and leaves the socket open for the refusal. */
async function readIncoming(
  request: IncomingMessage,
  maxBytes: number,
  { tooLarge, malformed, hold }: BodyRefusals,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let receivedBytes = 0
  let refusal: Error | null = null
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      receivedBytes += chunk.byteLength
      refusal = receivedBytes > maxBytes ? tooLarge() : (hold?.(chunk.byteLength) ?? null)
      if (refusal !== null) break
    }
  } catch {
    // The connection was closed before the end.
    throw malformed()
  }
  if (refusal !== null) throw refusal
  return Buffer.concat(chunks, receivedBytes)
}
