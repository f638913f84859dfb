import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
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

/** What the server keeps of a response until it has ended, beside what it sends. */
export interface ResponseNotes {
  /** Id of the request. */
  id?: string
  /** The body, which other responses may send too; none for a stream. */
  body?: Buffer
  /** Template of the route that answered; null where none did. */
  route?: string | null
  /** Public code of a refusal. */
  code?: string
  /** True when the server cut the connection. */
  cut?: true
}

/** The notes stand at the response itself: a weak map with an entry for each request costs the garbage collector much. */
const NOTES = Symbol('notes')

/** The notes on one of the runtime's responses, to read and to add to; without a socket they are forgotten. */
export function notesOf(response: { [NOTES]?: ResponseNotes } | object | undefined): ResponseNotes {
  const annotated: { [NOTES]?: ResponseNotes } = response ?? {}
  return (annotated[NOTES] ??= {})
}

/** Takes notes on a response. @returns the id of its request */
function note(event: H3Event, body: Buffer | null): string {
  const notes = notesOf(event.runtime?.node?.res)
  notes.route = event.context.matchedRoute?.route ?? null
  if (body) notes.body = body
  return (notes.id ??= requestId(event.req.headers))
}

type HeaderValues = Readonly<Record<string, string>>

/**
 * A response whose headers and bytes are known. The listener sends it as it is: what the platform would make of it first
 * costs more than all else of a short response.
 */
export class PlainResponse extends FastResponse {
  readonly #headers: HeaderList
  readonly #body: Buffer | null

  constructor(status: number, headers: HeaderList, body: Buffer | null) {
    // The platform reads them when it is asked for them; it takes any list of pairs.
    super(body, { status, headers: headers as unknown as [string, string][] })
    this.#headers = headers
    this.#body = body
  }

  add(name: string, value: string): void {
    this.#headers.values.push(name, value)
  }

  send(response: ServerResponse): void {
    response.writeHead(this.status, '', this.#headers.values)
    response.end(this.#body)
  }
}

/** Headers as Node takes them, names and values in turn, and as the platform reads them. */
class HeaderList {
  readonly values: string[] = [];

  *entries(): Generator<[string, string]> {
    for (let index = 0; index < this.values.length; index += 2)
      yield [this.values[index] ?? '', this.values[index + 1] ?? '']
  }

  [Symbol.iterator](): Generator<[string, string]> {
    return this.entries()
  }
}

/** Adds a header to a response that is made. */
export function addHeader(response: Response, name: string, value: string): void {
  if (response instanceof PlainResponse) response.add(name, value)
  else response.headers.set(name, value)
}

/** The one place a response is made: every answer carries its length and the request's id. */
export function respond(
  event: H3Event,
  status: number,
  headers: HeaderValues,
  body: Buffer | null,
): Response {
  return respondWith(event, status, body, headers)
}

/** @param parts headers, each name in one of them */
function respondWith(
  event: H3Event,
  status: number,
  body: Buffer | null,
  ...parts: readonly HeaderValues[]
): Response {
  const headers = new HeaderList()
  const { values } = headers
  for (const part of parts) for (const name of Object.keys(part)) values.push(name, part[name] ?? '')
  // A 304 has no length of its own; some clients wait for the bytes it would announce.
  if (status !== 304) values.push('content-length', String(body?.byteLength ?? 0))
  if (isBodyLeft(event)) values.push('connection', 'close')
  values.push('x-request-id', note(event, body))
  return new PlainResponse(status, headers, body)
}

/** An answer that goes on for a while: bytes as they come, so without a length. */
export function respondStream(
  event: H3Event,
  headers: Readonly<Record<string, string>>,
  body: Readable,
): Response {
  return new FastResponse(body, { status: 200, headers: { ...headers, 'x-request-id': note(event, null) } })
}

function isBodyLeft(event: H3Event): boolean {
  return METHODS_WITH_BODY.has(event.req.method) && !bodyRead.has(event)
}

/** A value as JSON, with its type and length. */
export function respondJson(
  event: H3Event,
  status: number,
  headers: Readonly<Record<string, string>>,
  value: unknown,
): Response {
  if (status >= 400 && typeof value === 'object' && value !== null && 'error' in value) {
    notesOf(event.runtime?.node?.res).code = String(value.error)
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
  const requested = headers.get('x-request-id')
  return requested !== null && REQUEST_ID_PATTERN.test(requested) ? requested : randomUUID()
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
export interface PublishedBody {
  body: Buffer
  etag: string
  /** For a 200 and a 304 alike. */
  headers: Readonly<Record<string, string>>
  /** Only where the body follows. */
  contentHeaders: Readonly<Record<string, string>>
}

/** What is said of published bytes beside their digest. */
export interface PublishedHeaders {
  contentType: string
  cacheControl: string
  /** Further headers, for a 200 and a 304 alike. */
  headers?: Readonly<Record<string, string>>
}

/** @param sha256 digest of the body where it is known */
export function publishedBody(
  body: Buffer,
  options: PublishedHeaders,
  sha256 = sha256Hex(body),
): PublishedBody {
  const etag = `"${sha256}"`
  const digest = `sha-256=:${sha256HexToBase64(sha256)}:`
  return {
    body,
    etag,
    headers: { 'cache-control': options.cacheControl, etag, ...options.headers, 'repr-digest': digest },
    contentHeaders: { 'content-type': options.contentType, 'content-digest': digest },
  }
}

/**
 * 304 when the client holds these very bytes, else 200 with them.
 *
 * @param headers of the route, for both
 * @param requestHeaders headers of this request alone, for both
 */
export function respondPublished(
  event: H3Event,
  headers: HeaderValues,
  { body, etag, headers: bodyHeaders, contentHeaders }: PublishedBody,
  requestHeaders: HeaderValues = {},
): Response {
  const isCurrent = matchesEntityTag(event.req.headers.get('if-none-match'), etag)
  if (isCurrent) return respondWith(event, 304, null, headers, bodyHeaders, requestHeaders)
  return respondWith(event, 200, body, headers, bodyHeaders, requestHeaders, contentHeaders)
}

/** Bytes that are sent compressed to clients that take it. */
export interface Compressible {
  body: Buffer
  gzip: () => Buffer
  /** Of the body; null for one that is never a 304. */
  digest: string | null
}

/**
 * 304 when the client holds these bytes in the encoding it takes, else the bytes. Each encoding has a tag of its own.
 *
 * @param contentHeaders only where the body follows
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
 * Whether an `If-None-Match` field names the current representation (RFC 9110, 13.1.2): weak comparison, `*`,
 * and lists. Several header lines arrive joined by commas.
 *
 * @param field the field's value, or null when the request has none
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
