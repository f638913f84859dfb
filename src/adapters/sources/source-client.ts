import type { IncomingHttpHeaders } from 'node:http'
import pLimit from 'p-limit'
import type { LimitFunction } from 'p-limit'
import type { z } from 'zod'
import { skewOf } from '../../domain/clock-check.ts'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { KeptResponse, SourceBatch } from '../../domain/feed/live-source.ts'
import { describeIssues } from '../../domain/feed/source.ts'
import { HOW_TO_REACH, networkReason } from '../../domain/refusal.ts'
import type { Clock, FeedStore } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'
import {
  isRateLimitUsedUp,
  openHttpClient,
  redirectTarget,
  retryAt,
  timeOfResponse,
  UnsupportedCoding,
  readDecoded,
} from '../http.ts'
import type { HttpClient, HttpRequest, HttpResponse } from '../http.ts'

/** Default size limit of a response. No item is near this size; lists set their own. */
const ITEM_MAX_BYTES = 1024 * 1024

/** Attempts to send a request while the source is busy (429, 503). */
const ATTEMPTS = 3

/**
 * Pause in milliseconds before the second attempt if the source names no wait; it doubles with each further
 * attempt.
 */
const FIRST_PAUSE_MS = 1_000

/** Maximum age of a reused response, even if its source reports it as unchanged. */
const KEPT_MAX_AGE_MS = 24 * 3_600_000

/** Maximum length of a stored pause: a source's mistake must not disable it for a year. */
const PAUSE_MAX_MS = 24 * 3_600_000

/** Maximum length of a kept response, in characters. */
const KEPT_MAX_LENGTH = 1_000_000

export interface SourceRequest<T> {
  url: string
  /** A JSON body makes it a POST. */
  body?: unknown
  /** A form also makes it a POST. */
  form?: Record<string, string>
  /** Sent in addition to the client's own headers, and never to another host. */
  headers?: Record<string, string>
  /** Setting to name if the source rejects the credential. */
  credential?: string
  maxBytes?: number
  /** Value returned for a 404 or 410; without it they are failures. */
  absent?: T
  /** If true, the response is kept with its validators for a conditional request next time. */
  conditional?: boolean
  /** Parses a JSON response; one of another form makes the source unavailable. */
  shape: z.ZodType<T>
}

/** Counts of requests and of unchanged responses, and the skew of each response with a time. */
export type RequestCounts = Pick<SourceBatch, 'requests' | 'notModified' | 'skews'>

/** State of sources that is kept between runs. */
export type SourceMemory = Pick<FeedStore, 'keptResponse' | 'keepResponse' | 'pausedUntil' | 'pauseUntil'>

export interface SourceClientOptions {
  /** `dash/<version> (+<URL>)` */
  userAgent: string
  clock: Clock
  /** Rejects with the signal's reason when it is aborted. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** State of earlier runs; null if none is kept. */
  memory: SourceMemory | null
  limits: {
    /** Maximum number of open requests to one host. */
    concurrency: number
    /** Most of the pauses of a host that requests wait for, in milliseconds in total. During others no request is sent. */
    maxWaitMs: number
  }
  /** Time limit of a whole response in milliseconds, including the connection. */
  responseTimeoutMs: number
}

/** The only client for requests to sources; it respects their limits. */
export interface SourceClient {
  clock: Clock
  /**
   * Requests JSON from a source (docs/collecting.md).
   *
   * @throws SourceUnavailable for every failure: unreachable, another status, too slow, too large, not JSON, or an
   *   unexpected form; the signal's reason if aborted
   */
  fetchJson: <T>(request: SourceRequest<T>, signal: AbortSignal, counts?: RequestCounts) => Promise<T>
  /** Ends the connections. */
  close: () => Promise<void>
}

/** Creates a source client. It opens no connection before the first request; the caller closes it. */
export function openSourceClient(options: SourceClientOptions): SourceClient {
  const { responseTimeoutMs, clock, memory, limits } = options
  // Each request has one overall time limit; a connect timeout would only report the same failure differently.
  const http = openHttpClient({ connect: { timeout: 2 * responseTimeoutMs } })
  const openHost = async (name: string): Promise<Host> => {
    const until = (await memory?.pausedUntil(name)) ?? 0
    // A longer pause was stored by a clock that was ahead.
    const pausedUntil = until > clock() + PAUSE_MAX_MS ? 0 : until
    return {
      name,
      limit: pLimit(limits.concurrency),
      pausedUntil,
      pausedMs: Math.max(0, pausedUntil - clock()),
    }
  }
  const hosts = new Map<string, Promise<Host>>()
  const hostOf = (url: string): Promise<Host> => {
    const name = new URL(url).host
    const host = hosts.get(name) ?? openHost(name)
    hosts.set(name, host)
    return host
  }
  const shared = { ...options, http, hostOf }
  return {
    clock,
    fetchJson: (request, signal, counts = { requests: 0, notModified: 0, skews: [] }) =>
      fetchJson({ ...shared, request, signal, counts }),
    close: () => http.close(),
  }
}

/** A host, for all callers. */
interface Host {
  /** Host and port. */
  name: string
  /**
   * Limits the open requests. A request queued in the HTTP agent would spend its time limit waiting, and could miss a
   * pause.
   */
  limit: LimitFunction
  /** End of the pause that the host required last, also in an earlier run. */
  pausedUntil: Instant
  /** Total of its pauses. */
  pausedMs: number
}

/** A request in progress with its client. */
interface RequestContext<T> extends SourceClientOptions {
  http: HttpClient
  hostOf: (url: string) => Promise<Host>
  request: SourceRequest<T>
  signal: AbortSignal
  counts: RequestCounts
}

async function fetchJson<T>(context: RequestContext<T>): Promise<T> {
  const { request, clock, counts } = context
  const { url, absent } = request
  const memory = request.conditional === true ? context.memory : null
  const reusable =
    memory && parseKept(request, await memory.keptResponse(url, clock() - KEPT_MAX_AGE_MS, clock()))
  const response = await fetchWithRetry(context, reusable?.kept ?? null)
  const { status } = response
  if (status === 304 && reusable) {
    counts.notModified += 1
    return reusable.value
  }
  if ((status === 404 || status === 410) && absent !== undefined) return absent
  if (status !== 200) throw new SourceUnavailable(`${url}: ${describeStatus(response, request)}`)
  const value = parseValue(request, response)
  const kept = toKeptResponse(response, clock())
  if (memory && kept) await memory.keepResponse(url, kept, kept.keptAt - KEPT_MAX_AGE_MS)
  return value
}

/** Parses a kept response; null if it no longer has the form. */
function parseKept<T>(
  request: SourceRequest<T>,
  kept: KeptResponse | null,
): { kept: KeptResponse; value: T } | null {
  if (kept === null) return null
  try {
    return { kept, value: parseValue(request, { text: kept.body, headers: {} }) }
  } catch (error) {
    if (error instanceof SourceUnavailable) return null
    throw error
  }
}

/** Sends a request, and retries it within the limits while the source is busy. */
async function fetchWithRetry(
  context: RequestContext<unknown>,
  kept: KeptResponse | null,
): Promise<SourceResponse> {
  const { hostOf, clock, memory, limits, counts, signal, responseTimeoutMs, http, request } = context
  const { url, maxBytes = ITEM_MAX_BYTES } = request
  const host = await hostOf(url)
  const headers = requestHeaders(context, kept)
  const exchange = { url, headers, body: requestBody(request), timeoutMs: responseTimeoutMs, signal }
  for (let attempt = 1; ; attempt += 1) {
    const response = await host.limit(async () => {
      await awaitPause(host, context)
      counts.requests += 1
      const sentAt = clock()
      const received = await send(http, exchange, maxBytes)
      const time = timeOfResponse(received.headers)
      if (time !== null) counts.skews.push(skewOf(time, sentAt, clock()))
      return received
    })
    if (!isBusy(response)) return response
    const now = clock()
    const retryAfter = retryAt(response.headers, now)
    const until = retryAfter ?? now + FIRST_PAUSE_MS * 2 ** (attempt - 1)
    host.pausedMs += Math.max(0, until - Math.max(now, host.pausedUntil))
    host.pausedUntil = Math.max(host.pausedUntil, until)
    const mayWait = host.pausedMs <= limits.maxWaitMs
    if (mayWait && attempt < ATTEMPTS) continue
    if (!mayWait && retryAfter !== null)
      await memory?.pauseUntil(host.name, Math.min(retryAfter, now + PAUSE_MAX_MS))
    const reason = `responded with ${response.status}: overloaded or too many requests`
    throw new SourceUnavailable(`${url}: ${reason}`, { retryAt: retryAfter })
  }
}

/**
 * Waits until no pause of the host is left.
 *
 * @throws SourceUnavailable if the pause is longer than allowed
 */
async function awaitPause(
  host: Host,
  { clock, sleep, limits, request, signal }: RequestContext<unknown>,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted()
    const waitMs = host.pausedUntil - clock()
    if (waitMs <= 0) return
    if (host.pausedMs > limits.maxWaitMs)
      throw new SourceUnavailable(`${request.url}: not requested`, { retryAt: host.pausedUntil })
    await sleep(waitMs, signal)
  }
}

/** GitHub sends 403 where others send 429. */
function isBusy({ status, headers }: SourceResponse): boolean {
  if (status === 403) return headers['retry-after'] !== undefined || isRateLimitUsedUp(headers)
  return status === 429 || status === 503
}

function requestHeaders(
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

function requestBody({ body, form }: SourceRequest<unknown>): string | null {
  if (form !== undefined) return new URLSearchParams(form).toString()
  return body === undefined ? null : JSON.stringify(body)
}

function toKeptResponse({ headers, text }: SourceResponse, keptAt: number): KeptResponse | null {
  const etag = headers['etag'] ?? null
  const lastModified = headers['last-modified'] ?? null
  if ((etag === null && lastModified === null) || text.length > KEPT_MAX_LENGTH) return null
  return { etag, lastModified, body: text, keptAt }
}

function describeStatus({ status, headers }: SourceResponse, { credential }: SourceRequest<unknown>): string {
  if ((status === 401 || status === 403) && credential !== undefined)
    return `responded with ${status}; check ${credential}`
  const location = redirectTarget(headers)
  if (status < 300 || status > 399 || location === '') return `responded with ${status}`
  return `responded with ${status} and redirects to ${JSON.stringify(location.slice(0, 200))}, which is not followed`
}

interface SourceResponse {
  status: number
  headers: IncomingHttpHeaders
  /** Body of a 200; otherwise empty. */
  text: string
}

/**
 * Sends one request once. Redirects are never followed, so that no token is sent to another host.
 *
 * @throws SourceUnavailable without a complete response: unreachable, cut off, too slow, too large, not UTF-8
 */
async function send(
  http: HttpClient,
  exchange: HttpRequest & { url: string },
  maxBytes: number,
): Promise<SourceResponse> {
  const { url, signal } = exchange
  try {
    return await http.exchange(exchange, async (response) => {
      const { statusCode: status, headers } = response
      return { status, headers, text: status === 200 ? await readText(response, url, maxBytes) : '' }
    })
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof SourceUnavailable) throw error
    const advice = error instanceof UnsupportedCoding ? '' : `; ${HOW_TO_REACH}`
    throw new SourceUnavailable(`${url}: ${networkReason(error)}${advice}`, { cause: error })
  }
}

async function readText(response: HttpResponse, url: string, maxBytes: number): Promise<string> {
  const { bytes, isCut } = await readDecoded(response, maxBytes)
  if (isCut) throw new SourceUnavailable(`${url}: the response is larger than ${maxBytes} bytes`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new SourceUnavailable(`${url}: the response is not UTF-8`, { cause })
  }
}

/** @throws SourceUnavailable with a reason that distinguishes an HTML page, an empty body and truncated JSON */
function parseValue<T>(
  { url, shape }: SourceRequest<T>,
  { text, headers }: Omit<SourceResponse, 'status'>,
): T {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (cause) {
    throw new SourceUnavailable(`${url}: ${describeNonJson(text, headers, cause)}`, { cause })
  }
  const parsed = shape.safeParse(json)
  if (parsed.success) return parsed.data
  const issues = describeIssues(parsed.error).slice(0, 300)
  throw new SourceUnavailable(`${url}: ${UNEXPECTED_SHAPE} (${issues})`)
}

/** Message for JSON of an unexpected form. */
export const UNEXPECTED_SHAPE = 'the response does not have the expected fields'

function describeNonJson(text: string, headers: IncomingHttpHeaders, error: unknown): string {
  const type = headers['content-type'] ?? 'no content type'
  const message = error instanceof Error ? error.message : ''
  // The JSON is valid up to its end.
  const isCutShort =
    /Unexpected end|Unterminated/.test(message) ||
    Number(/at position (\d+)/.exec(message)?.[1]) === text.length
  if (text.trim() === '') return 'the response is empty'
  if (text.trimStart().startsWith('<')) return `the response is a web page (${type}) instead of JSON`
  if (isCutShort) return `the JSON of the response ends early after ${text.length} characters`
  return `the response (${type}) is not JSON`
}
