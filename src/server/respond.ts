import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { H3Event } from 'h3'
import { FastResponse } from 'srvx'

/** Methods whose requests may carry a body that nobody will read; the connection ends with the answer. */
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/** For answers that nobody may keep. */
export const NO_STORE = { 'cache-control': 'no-store' }

const REQUEST_ID_PATTERN = /^[\w.:-]{1,128}$/

/** Requests whose body has been read to its end, so that the connection can carry another. */
const bodyRead = new WeakSet<object>()

/** Says that nothing of a request is left unread. */
export function markBodyRead(event: H3Event): void {
  bodyRead.add(event)
}

/**
 * The one place a response is made: every answer carries its length and the request's id. The response is srvx's own,
 * whose headers reach the socket as they are given.
 */
export function respond(
  event: H3Event,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: Buffer | null,
): Response {
  const closing = isBodyLeft(event) ? { connection: 'close' } : null
  const response = event.runtime?.node?.res
  if (response && body) bodies.set(response, body)
  // A 304 has no length of its own; some clients wait for the bytes it would announce.
  const length = status === 304 ? null : { 'content-length': String(body?.byteLength ?? 0) }
  return new FastResponse(body, {
    status,
    headers: { ...headers, ...length, ...closing, 'x-request-id': requestId(event.req.headers) },
  })
}

/** An answer that goes on for a while: bytes as they come, so without a length. */
export function respondStream(
  event: H3Event,
  headers: Readonly<Record<string, string>>,
  body: Readable,
): Response {
  return new FastResponse(body, {
    status: 200,
    headers: { ...headers, 'x-request-id': requestId(event.req.headers) },
  })
}

function isBodyLeft(event: H3Event): boolean {
  return METHODS_WITH_BODY.has(event.req.method) && !bodyRead.has(event)
}

/** Bodies of responses, by the runtime's responses that send them. */
const bodies = new WeakMap<object, Buffer>()

/** The body a response sends, which others may send too; undefined for a stream. */
export function bodyOf(response: object): Buffer | undefined {
  return bodies.get(response)
}

/** The runtime's responses whose connections the server cut. */
const cutResponses = new WeakSet<object>()

/** Keeps that the server cuts the connection of a response. */
export function markCut(response: object): void {
  cutResponses.add(response)
}

/** True when the server cut the connection of a response. */
export function wasCut(response: object): boolean {
  return cutResponses.has(response)
}

/** Public codes of refusals, by the runtime's responses that carry them. */
const refusalCodes = new WeakMap<object, string>()

/** The public code a response refuses with, for the log. */
export function refusalCodeOf(response: object): string | undefined {
  return refusalCodes.get(response)
}

/** Keeps the public code of a refusal for the log. */
export function markRefused(response: object | undefined, code: string): void {
  if (response) refusalCodes.set(response, code)
}

/** A value as JSON, with its type and length. */
export function respondJson(
  event: H3Event,
  status: number,
  headers: Readonly<Record<string, string>>,
  value: unknown,
): Response {
  if (status >= 400 && typeof value === 'object' && value !== null && 'error' in value) {
    markRefused(event.runtime?.node?.res, String(value.error))
  }
  const body = Buffer.from(JSON.stringify(value))
  return respond(event, status, { ...headers, 'content-type': 'application/json; charset=utf-8' }, body)
}

/** A text under the given content type, with its length. */
export function respondText(
  event: H3Event,
  status: number,
  headers: Readonly<Record<string, string>>,
  contentType: string,
  text: string,
): Response {
  return respond(event, status, { ...headers, 'content-type': contentType }, Buffer.from(text))
}

/** The caller's request id when it is one, else a new one. The listener puts it on the request for all who ask. */
export function requestId(headers: { get(name: string): string | null }): string {
  const given = headers.get('x-request-id')
  return given !== null && REQUEST_ID_PATTERN.test(given) ? given : randomUUID()
}
