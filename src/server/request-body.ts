import type { H3Event } from 'h3'
import type { Refusal } from '../domain/refusal.ts'
import { markBodyRead } from './respond.ts'

/**
 * The body of a request as text, read to its end. No encoding of the content is undone, and no type asked for.
 *
 * @param maxBytes longest body that is read
 * @param tooLarge what a longer one is refused with
 * @param malformed what one is refused with that ends before it is whole, or is no UTF-8
 */
export async function readBody(
  event: H3Event,
  maxBytes: number,
  { tooLarge, malformed }: { tooLarge: () => Refusal; malformed: () => Refusal },
): Promise<string> {
  if (Number(event.req.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge()
  let bytes
  try {
    bytes = await event.req.arrayBuffer()
  } catch (error) {
    // What is longer than any body this server reads stops the reading there (listen.ts).
    throw isTooLarge(error) ? tooLarge() : malformed()
  }
  if (bytes.byteLength > maxBytes) throw tooLarge()
  markBodyRead(event)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw malformed()
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && 'status' in error && error.status === 413
}
