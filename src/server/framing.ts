import type { IncomingMessage, ServerResponse } from 'node:http'
import { notesOf } from './respond.ts'

/** The refusal of a request that another server could parse differently. */
export interface FramingFault {
  status: 400 | 501 | 505
  error: 'bad_request' | 'unsupported_transfer_coding' | 'unsupported_version'
}

const BAD_REQUEST: FramingFault = { status: 400, error: 'bad_request' }

/** `host` or `host:port` of RFC 9110, 7.2, without user, path or list; empty for a target without an authority. */
const HOST_PATTERN = /^(?:[\w.~%!$&'()*+;=-]*|\[[\da-f:.v]+\])(?::\d*)?$/i

/**
 * Detects requests that Node's parser accepts: several or malformed `Host` lines, transfer codings it does not decode,
 * and versions other than 1.0 and 1.1. The parser itself refuses the other ambiguous forms (docs/security.md#requests).
 */
export function framingFault({ headers, httpVersion, rawHeaders }: IncomingMessage): FramingFault | null {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return { status: 505, error: 'unsupported_version' }
  if (hostLines(rawHeaders) > 1 || !HOST_PATTERN.test(headers.host ?? '')) return BAD_REQUEST
  const coding = headers['transfer-encoding']
  if (coding === undefined) return null
  // RFC 9112, 6.1: a 1.0 message with a transfer coding has faulty framing.
  if (httpVersion === '1.0' || coding === '') return BAD_REQUEST
  return coding.toLowerCase() === 'chunked' ? null : { status: 501, error: 'unsupported_transfer_coding' }
}

/** Counts the `Host` lines, of which Node keeps only the first. */
function hostLines(rawHeaders: readonly string[]): number {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  return count
}

/** Refuses a request and closes its connection, since the start of the next request is unknown. */
export function refuseFraming(
  response: ServerResponse,
  { status, error }: FramingFault,
  requestId: string,
): void {
  const body = JSON.stringify({ error })
  notesOf(response).code = error
  response.shouldKeepAlive = false
  response.writeHead(status, {
    'cache-control': 'no-store',
    connection: 'close',
    'content-length': Buffer.byteLength(body),
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': requestId,
  })
  response.end(body)
}
