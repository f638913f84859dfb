import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { H3Event } from 'h3'
import { respond } from './respond.ts'

const compress = promisify(gzip)

/** True when a client takes gzip: it names it, or everything, without the weight 0 (RFC 9110, 12.5.3). */
export function acceptsGzip(acceptEncoding: string | null): boolean {
  const weights = new Map<string, number>()
  for (const part of (acceptEncoding ?? '').split(',')) {
    const [coding = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    weights.set(coding, weight === undefined ? 1 : Number(weight.slice(2)))
  }
  return (weights.get('gzip') ?? weights.get('*') ?? 0) > 0
}

/**
 * A text, compressed where the client takes it. For pages alone: what is published under its digest is always sent as
 * it is.
 */
export async function respondCompressed(
  event: H3Event,
  status: number,
  headers: Readonly<Record<string, string>>,
  contentType: string,
  text: string,
): Promise<Response> {
  const bytes = Buffer.from(text)
  const all = { ...headers, 'content-type': contentType, vary: 'Accept-Encoding' }
  if (!acceptsGzip(event.req.headers.get('accept-encoding'))) return respond(event, status, all, bytes)
  return respond(event, status, { ...all, 'content-encoding': 'gzip' }, await compress(bytes))
}
