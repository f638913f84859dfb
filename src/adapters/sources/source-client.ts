import type { IncomingHttpHeaders } from 'node:http'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { KeptResponse } from '../../domain/feed/live-source.ts'
import { HOW_TO_REACH, networkReason } from '../../domain/refusal.ts'
import type { Clock, FeedStore } from '../../domain/ports.ts'
import { isUsedUp, openConnections, readBody, retryAt } from '../http.ts'
import type { Connections, HttpExchange, HttpResponse } from '../http.ts'
import { HostGates, hostOf } from './host-gates.ts'
import type { HostLimits } from './host-gates.ts'

/** No item is near this size; a list says how large it may be. */
const ITEM_MAX_BYTES = 1024 * 1024

/** How often a request is sent when the source is busy (429, 503). */
const TRIES = 3

/** Pause before the second try of a request whose source does not say how long to wait; doubled for each further. */
const FIRST_PAUSE_MS = 1_000

/** A response is used again for at most this long, however unchanged its source says that it is. */
const KEPT_FOR_MS = 24 * 3_600_000

/** A pause is remembered for at most this long: a slip of a source must not silence it for a year. */
const REMEMBERED_MS = 24 * 3_600_000

/** A longer response, in characters, is not kept. */
const KEPT_MAX_LENGTH = 1_000_000

export interface SourceRequest<T> {
  url: string
  /** A JSON body makes it a POST. */
  body?: unknown
  /** So does a form. */
  form?: Record<string, string>
  /** Sent beside the client's own; never to another host. */
  headers?: Record<string, string>
  /** Setting to name when the source refuses the credential. */
  credential?: string
  maxBytes?: number
  /** What a 404 or 410 means; without it they are failures. */
  absent?: T
  /** Keep the response with its validators and ask next time whether it has changed. */
  conditional?: boolean
  /** The value of a JSON response; whatever it throws makes the source unavailable. */
  read: (json: unknown) => T
}

/** What requests cost. */
export interface RequestCounts {
  requests: number
  notModified: number
}

/** What a client remembers of sources from one run to the next. */
export type SourceMemory = Pick<FeedStore, 'keptResponse' | 'keepResponse' | 'pausedUntil' | 'pauseUntil'>

export interface SourceClientOptions {
  /** `dash/<version> (+<URL>)` */
  userAgent: string
  clock: Clock
  /** Rejects with the signal's reason when it is aborted. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** What is known from earlier runs; null when nothing is to be remembered. */
  memory: SourceMemory | null
  limits: HostLimits
  /** Time for a whole response, connection included. */
  answerMs: number
}

/** Asks sources, politely: the one way to any of them. */
export interface SourceClient {
  clock: Clock
  /**
   * One JSON response of a source (docs/collecting.md).
   *
   * @throws SourceUnavailable for everything else: not reachable, another status, too slow, too large, not JSON, another
   *   shape than `read` takes; the signal's reason when it is aborted
   */
  ask: <T>(request: SourceRequest<T>, signal: AbortSignal, counts?: RequestCounts) => Promise<T>
  /** Ends the connections. */
  close: () => Promise<void>
}

/** Opens no connection before the first request; the caller closes it. */
export function openSourceClient(options: SourceClientOptions): SourceClient {
  const { answerMs, clock, memory } = options
  // Each request is limited as a whole; the limit of connecting would only say the same in other words.
  const connections = openConnections({ connect: { timeout: 2 * answerMs } })
  const recall = async (host: string): Promise<number | null> => (await memory?.pausedUntil(host)) ?? null
  const shared = { ...options, connections, gates: new HostGates({ ...options, recall }) }
  return {
    clock,
    ask: (request, signal, counts = { requests: 0, notModified: 0 }) =>
      ask({ ...shared, request, signal, counts }),
    close: () => connections.close(),
  }
}

/** One request on its way. */
interface RequestContext<T> extends SourceClientOptions {
  connections: Connections
  gates: HostGates
  request: SourceRequest<T>
  signal: AbortSignal
  counts: RequestCounts
}

async function ask<T>(context: RequestContext<T>): Promise<T> {
  const { request, clock, counts } = context
  const { url, absent } = request
  const memory = request.conditional === true ? context.memory : null
  const reusable = memory && readKept(request, await memory.keptResponse(url, clock() - KEPT_FOR_MS, clock()))
  const response = await fetchWithRetry(context, reusable?.kept ?? null)
  const { status } = response
  if (status === 304 && reusable) {
    counts.notModified += 1
    return reusable.value
  }
  if ((status === 404 || status === 410) && absent !== undefined) return absent
  if (status !== 200) throw new SourceUnavailable(`${url}: ${refusalOf(response, request)}`)
  const value = readValue(request, response)
  const kept = keepable(response, clock())
  if (memory && kept) await memory.keepResponse(url, kept, kept.keptAt - KEPT_FOR_MS)
  return value
}

/** A kept response and its value; null when its value is no longer what `read` takes. */
function readKept<T>(
  request: SourceRequest<T>,
  kept: KeptResponse | null,
): { kept: KeptResponse; value: T } | null {
  if (kept === null) return null
  try {
    return { kept, value: readValue(request, { text: kept.body, headers: {} }) }
  } catch (error) {
    if (error instanceof SourceUnavailable) return null
    throw error
  }
}

/** Sends a request until its source is no longer busy, as often and as long as the limits allow. */
async function fetchWithRetry(
  context: RequestContext<unknown>,
  kept: KeptResponse | null,
): Promise<Response> {
  const { gates, clock, memory, counts, signal, answerMs, connections, request } = context
  const { url, maxBytes = ITEM_MAX_BYTES } = request
  const headers = headersOf(context, kept)
  const exchange = { url, headers, body: bodyOf(request), timeoutMs: answerMs, signal }
  for (let attempt = 1; ; attempt += 1) {
    const response = await gates.pass(url, signal, () => {
      counts.requests += 1
      return send(connections, exchange, maxBytes)
    })
    if (!isBusy(response)) return response
    const asked = retryAt(response.headers, clock())
    const mayWait = gates.pause(url, asked ?? clock() + FIRST_PAUSE_MS * 2 ** (attempt - 1))
    if (!mayWait && asked !== null)
      await memory?.pauseUntil(hostOf(url), Math.min(asked, clock() + REMEMBERED_MS))
    if (mayWait && attempt < TRIES) continue
    const why = `it answered ${response.status}, too busy or asked too often`
    throw new SourceUnavailable(`${url}: ${why}`, { retryAt: asked })
  }
}

/** GitHub says 403 where others say 429. */
function isBusy({ status, headers }: Response): boolean {
  if (status === 403) return headers['retry-after'] !== undefined || isUsedUp(headers)
  return status === 429 || status === 503
}

function headersOf(
  { request: { body, form, headers }, userAgent }: RequestContext<unknown>,
  kept: KeptResponse | null,
): Record<string, string> {
  return {
    accept: 'application/json',
    'user-agent': userAgent,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
    ...(kept?.etag ? { 'if-none-match': kept.etag } : {}),
    ...(kept?.lastModified ? { 'if-modified-since': kept.lastModified } : {}),
    ...headers,
  }
}

function bodyOf({ body, form }: SourceRequest<unknown>): string | null {
  if (form !== undefined) return new URLSearchParams(form).toString()
  return body === undefined ? null : JSON.stringify(body)
}

function keepable({ headers, text }: Response, keptAt: number): KeptResponse | null {
  const etag = headers['etag'] ?? null
  const lastModified = headers['last-modified'] ?? null
  if ((etag === null && lastModified === null) || text.length > KEPT_MAX_LENGTH) return null
  return { etag, lastModified, body: text, keptAt }
}

function refusalOf({ status, headers }: Response, { credential }: SourceRequest<unknown>): string {
  if ((status === 401 || status === 403) && credential !== undefined)
    return `it answered ${status}: check ${credential}`
  const location = headers['location']
  if (status < 300 || status > 399 || typeof location !== 'string') return `it answered ${status}`
  return `it answered ${status} and points to ${JSON.stringify(location.slice(0, 200))}, which is not followed`
}

interface Response {
  status: number
  headers: IncomingHttpHeaders
  /** Of a 200 alone. */
  text: string
}

/**
 * Sends one request once. Redirections are responses like any other: nothing is ever followed, so that no token is
 * sent where it does not belong.
 *
 * @throws SourceUnavailable when no whole response comes: not reachable, cut, too slow, too large, not UTF-8
 */
async function send(
  connections: Connections,
  exchange: HttpExchange & { url: string },
  maxBytes: number,
): Promise<Response> {
  const { url, signal } = exchange
  try {
    return await connections.exchange(exchange, async (response) => {
      const { statusCode: status, headers } = response
      return { status, headers, text: status === 200 ? await readText(response, url, maxBytes) : '' }
    })
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof SourceUnavailable) throw error
    throw new SourceUnavailable(`${url}: ${networkReason(error)}; ${HOW_TO_REACH}`, { cause: error })
  }
}

async function readText({ headers, body }: HttpResponse, url: string, maxBytes: number): Promise<string> {
  const encoding = String(headers['content-encoding'] ?? 'identity')
  if (encoding !== 'identity')
    throw new SourceUnavailable(`${url}: it answered in the encoding ${encoding}, which was not asked for`)
  const bytes = await readBody(body, maxBytes)
  if (bytes === null) throw new SourceUnavailable(`${url}: its answer is larger than ${maxBytes} bytes`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new SourceUnavailable(`${url}: its answer is not UTF-8`, { cause })
  }
}

/** Thrown by a `read` that can tell what is wrong with a response. */
export class UnexpectedResponse extends Error {
  override readonly name = 'UnexpectedResponse'
}

/** @throws SourceUnavailable telling an HTML page, an empty body, JSON that is cut short and anything else apart */
function readValue<T>({ url, read }: SourceRequest<T>, { text, headers }: Omit<Response, 'status'>): T {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (cause) {
    throw new SourceUnavailable(`${url}: ${describeNonJson(text, headers, cause)}`, { cause })
  }
  try {
    return read(json)
  } catch (cause) {
    const why = cause instanceof UnexpectedResponse ? cause.message : OTHER_SHAPE
    throw new SourceUnavailable(`${url}: ${why}`, { cause })
  }
}

/** Said of a JSON response that is not what was asked for. */
export const OTHER_SHAPE = 'its answer has another shape than expected'

function describeNonJson(text: string, headers: IncomingHttpHeaders, error: unknown): string {
  const type = headers['content-type'] ?? 'no content type'
  const message = error instanceof Error ? error.message : ''
  // Nothing was wrong with it before its end.
  const isCutShort =
    /Unexpected end|Unterminated/.test(message) ||
    Number(/at position (\d+)/.exec(message)?.[1]) === text.length
  if (text.trim() === '') return 'its answer is empty'
  if (text.trimStart().startsWith('<')) return `it answered with a page (${type}) instead of JSON`
  if (isCutShort) return `its JSON is cut short after ${text.length} characters`
  return `its answer (${type}) is not JSON`
}
