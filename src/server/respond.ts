import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { H3Event } from 'h3'
import { gzipSync } from 'node:zlib'
import { FastResponse } from 'srvx'
import { sha256Hex, sha256HexToBase64 } from '../domain/digest.ts'
import { once } from '../domain/once.ts'

/** Headers of responses that must not be cached. */
export const NO_STORE = { 'cache-control': 'no-store' }

/** `Cache-Control` of bytes that never change under their URL. */
export const IMMUTABLE = 'public, max-age=31536000, immutable'

export const JSON_TYPE = 'application/json; charset=utf-8'

const REQUEST_ID_PATTERN = /^[\w.:-]{1,128}$/

/** Internal data about a response, kept until it ends. */
export interface ResponseNotes {
  id?: string
  /** The body, which other responses may share; absent for a stream. */
  body?: Buffer
  /** Template of the matched route; null if none matched. */
  route?: string | null
  /** Public code of a refusal. */
  code?: string
}

/** The notes are a property of the response: a weak map with an entry per request is expensive for the garbage collector. */
const NOTES = Symbol('notes')

/** The mutable notes of a Node response; without a response they are discarded. */
export function notesOf(response: { [NOTES]?: ResponseNotes } | object | undefined): ResponseNotes {
  const annotated: { [NOTES]?: ResponseNotes } = response ?? {}
  return (annotated[NOTES] ??= {})
}

/** Records route and body of a response. @returns the id of its request */
function note(event: H3Event, body: Buffer | null): string {
  const notes = notesOf(event.runtime?.node?.res)
  notes.route = event.context.matchedRoute?.route ?? null
  if (body) notes.body = body
  return (notes.id ??= requestId(event.req.headers))
}

type HeaderValues = Readonly<Record<string, string>>

/**
 * A response whose headers and body are complete. The listener sends it directly, because the conversion to a platform
 * `Response` costs more than the rest of a short response.
 */
export class PlainResponse extends FastResponse {
  readonly #headers: [string, string][]
  readonly #body: Buffer | null

  constructor(status: number, headers: [string, string][], body: Buffer | null) {
    // The platform reads headers on demand.
    super(body, { status, headers })
    this.#headers = headers
    this.#body = body
  }

  add(name: string, value: string): void {
    this.#headers.push([name, value])
  }

  send(response: ServerResponse): void {
    const values: string[] = []
    for (const [name, value] of this.#headers) values.push(name, value)
    response.writeHead(this.status, '', values)
    const { req: request } = response
    if (request.complete) return void response.end(this.#body)
    // Refused before its end. A socket that closes with unread bytes is reset, and many clients lose the response.
    response.write(this.#body ?? '')
    request.once('close', () => response.end()).resume()
  }
}

export function addHeader(response: Response, name: string, value: string): void {
  if (response instanceof PlainResponse) response.add(name, value)
  else response.headers.set(name, value)
}

/**
 * Makes a response with its length and the request's id. Every response except a stream is made here.
 *
 * @param more further headers, with names that no other part has
 */
export function respond(
  event: H3Event,
  status: number,
  headers: HeaderValues,
  body: Buffer | null,
  ...more: readonly HeaderValues[]
): Response {
  const all: [string, string][] = []
  for (const part of [headers, ...more])
    for (const name of Object.keys(part)) all.push([name, part[name] ?? ''])
  // A 304 has no body; some clients would wait for the bytes of its Content-Length.
  if (status !== 304) all.push(['content-length', String(body?.byteLength ?? 0)])
  all.push(['x-request-id', note(event, body)])
  return new PlainResponse(status, all, body)
}

/** Bytes of a stream that are buffered for a slow client. */
export const STREAM_BUFFER_MAX_BYTES = 16 * 1024

/** Headers of a stream that proxies must not cache, transform or buffer. */
const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}

/** Makes a response of server-sent events, without a length. */
export function respondStream(event: H3Event, headers: HeaderValues, body: Readable): Response {
  // A client that disconnects is not an error.
  body.on('error', () => undefined)
  const all = { ...headers, ...STREAM_HEADERS, 'x-request-id': note(event, null) }
  return new FastResponse(body, { status: 200, headers: all })
}

export function respondJson(
  event: H3Event,
  status: number,
  headers: Readonly<Record<string, string>>,
  value: unknown,
): Response {
  if (status >= 400 && typeof value === 'object' && value !== null && 'error' in value) {
    const { error } = value
    const isOpenAi = typeof error === 'object' && error !== null && 'code' in error
    notesOf(event.runtime?.node?.res).code = String(isOpenAi ? error.code : error)
  }
  const body = Buffer.from(JSON.stringify(value))
  return respond(event, status, { ...headers, 'content-type': JSON_TYPE }, body)
}

/** Makes a text response with the given content type. */
export function respondText(
  event: H3Event,
  status: number,
  headers: Readonly<Record<string, string>>,
  contentType: string,
  text: string,
): Response {
  return respond(event, status, { ...headers, 'content-type': contentType }, Buffer.from(text))
}

/** Returns the caller's request id if it is valid, else a new one. The listener sets it on the request. */
export function requestId(headers: { get(name: string): string | null }): string {
  const requested = headers.get('x-request-id')
  return requested !== null && REQUEST_ID_PATTERN.test(requested) ? requested : randomUUID()
}

/** Returns true if a client accepts gzip: by name or `*`, with a weight above 0 (RFC 9110, 12.5.3). */
export function acceptsGzip(acceptEncoding: string | null): boolean {
  const weights = new Map<string, number>()
  for (const part of (acceptEncoding ?? '').split(',')) {
    const [coding = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    weights.set(coding, weight === undefined ? 1 : Number(weight.slice(2)))
  }
  return (weights.get('gzip') ?? weights.get('*') ?? 0) > 0
}

/** Bytes published under their digest, with the headers derived from them. */
export interface PublishedBody {
  body: Buffer
  etag: string
  /** Headers of both 200 and 304. */
  headers: Readonly<Record<string, string>>
  /** Headers of a 200 only. */
  contentHeaders: Readonly<Record<string, string>>
}

/** Headers of published bytes other than the digests. */
export interface PublishedHeaders {
  contentType: string
  cacheControl: string
  /** Further headers of both 200 and 304. */
  headers?: Readonly<Record<string, string>>
}

/** Derives the headers of published bytes. @param sha256 digest of the body, if it is known */
export function publishedBody(
  content: Buffer | string,
  options: PublishedHeaders,
  sha256?: string,
): PublishedBody {
  const body = typeof content === 'string' ? Buffer.from(content) : content
  const hex = sha256 ?? sha256Hex(body)
  const etag = `"${hex}"`
  const digest = `sha-256=:${sha256HexToBase64(hex)}:`
  return {
    body,
    etag,
    headers: { 'cache-control': options.cacheControl, etag, ...options.headers, 'repr-digest': digest },
    contentHeaders: { 'content-type': options.contentType, 'content-digest': digest },
  }
}

/** Publishes a value as JSON. @param headers further headers of both 200 and 304 */
export function publishedJson(
  value: unknown,
  cacheControl: string,
  headers: HeaderValues = {},
): PublishedBody {
  return publishedBody(JSON.stringify(value), { contentType: JSON_TYPE, cacheControl, headers })
}

/**
 * Responds 304 if the client holds these bytes, else 200 with them.
 *
 * @param headers headers of the route, for both
 * @param requestHeaders headers of this request alone, for both
 */
export function respondPublished(
  event: H3Event,
  headers: HeaderValues,
  { body, etag, headers: bodyHeaders, contentHeaders }: PublishedBody,
  requestHeaders: HeaderValues = {},
): Response {
  const isCurrent = matchesEntityTag(event.req.headers.get('if-none-match'), etag)
  if (isCurrent) return respond(event, 304, headers, null, bodyHeaders, requestHeaders)
  return respond(event, 200, headers, body, bodyHeaders, requestHeaders, contentHeaders)
}

/** Bytes that are compressed for clients that accept gzip. */
export interface Compressible {
  body: Buffer
  gzip: () => Buffer
  /** Digest of the body; null if the response must never be a 304. */
  digest: string | null
}

/** A file as it is served: read once, and compressed at its first compressed response. */
export function compressible(body: Buffer): Compressible & { digest: string } {
  return { body, gzip: once(() => gzipSync(body)), digest: sha256Hex(body) }
}

/**
 * Responds 304 if the client holds these bytes in the negotiated encoding, else with the bytes. Each encoding has its own
 * entity tag.
 *
 * @param contentHeaders headers of a response with a body only
 */
export function respondCompressed(
  event: H3Event,
  status: number,
  headers: Readonly<Record<string, string>>,
  { body, gzip, digest }: Compressible,
  contentHeaders: Readonly<Record<string, string>> = {},
): Response {
  const acceptsEncoding = acceptsGzip(event.req.headers.get('accept-encoding'))
  const common = { ...headers, vary: 'Accept-Encoding' }
  const etag = `"${digest}${acceptsEncoding ? '-gzip' : ''}"`
  const tagged = digest === null ? common : { ...common, etag }
  if (digest !== null && matchesEntityTag(event.req.headers.get('if-none-match'), etag))
    return respond(event, 304, tagged, null)
  const content = { ...tagged, ...contentHeaders }
  if (!acceptsEncoding) return respond(event, status, content, body)
  return respond(event, status, { ...content, 'content-encoding': 'gzip' }, gzip())
}

/**
 * Returns true if an `If-None-Match` field matches the current representation (RFC 9110, 13.1.2), with weak comparison, `*`
 * and lists. Several header lines arrive joined by commas.
 *
 * @param field value of the field; null if the request has none
 * @param etag the current strong entity tag, quotes included
 */
export function matchesEntityTag(field: string | null, etag: string): boolean {
  if (field === null) return false
  if (field === etag) return true
  const elements = field.match(/(?:"[^"]*"|[^",])+/g) ?? []
  return elements.some((element) => {
    const tag = /^(?:W\/)?("[^"]*")$/.exec(element.trim())?.[1]
    return tag === etag || element.trim() === '*'
  })
}
