import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { H3Event } from 'h3'
import { FastResponse } from 'srvx'
import { sha256Hex, sha256HexToBase64 } from '../domain/digest.ts'

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

/** Bytes that are published under their digest, with the headers that follow from them. */
export interface Published {
  body: Buffer
  etag: string
  /** For a 200 and a 304 alike. */
  headers: Readonly<Record<string, string>>
  /** Only where the body follows. */
  contentHeaders: Readonly<Record<string, string>>
}

/** What is said of published bytes beside their digest. */
export interface PublishedAs {
  contentType: string
  cacheControl: string
  /** Further headers, for a 200 and a 304 alike. */
  headers?: Readonly<Record<string, string>>
}

/** @param sha256 digest of the body where it is known */
export function published(body: Buffer, as: PublishedAs, sha256 = sha256Hex(body)): Published {
  const etag = `"${sha256}"`
  const digest = `sha-256=:${sha256HexToBase64(sha256)}:`
  return {
    body,
    etag,
    headers: { 'cache-control': as.cacheControl, etag, ...as.headers, 'repr-digest': digest },
    contentHeaders: { 'content-type': as.contentType, 'content-digest': digest },
  }
}

/**
 * 304 when the client holds these very bytes, else 200 with them.
 *
 * @param headers of the route, for both
 */
export function respondPublished(
  event: H3Event,
  headers: Readonly<Record<string, string>>,
  { body, etag, headers: own, contentHeaders }: Published,
): Response {
  const common = { ...headers, ...own }
  if (matchesEntityTag(event.req.headers.get('if-none-match'), etag)) return respond(event, 304, common, null)
  return respond(event, 200, { ...common, ...contentHeaders }, body)
}

/**
 * Whether an `If-None-Match` field names the current representation (RFC 9110, 13.1.2): weak comparison, `*`,
 * and lists. Several header lines arrive joined by commas.
 *
 * @param field the field's value, or null when the request has none
 * @param etag the current strong entity tag, quotes included
 */
export function matchesEntityTag(field: string | null, etag: string): boolean {
  if (field === null) return false
  const elements = field.match(/(?:"[^"]*"|[^",])+/g) ?? []
  return elements.some((element) => {
    const tag = /^(?:W\/)?("[^"]*")$/.exec(element.trim())?.[1]
    return tag === etag || element.trim() === '*'
  })
}
