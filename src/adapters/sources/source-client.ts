import type { IncomingHttpHeaders } from 'node:http'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { KeptAnswer } from '../../domain/feed/live-source.ts'
import { HOW_TO_REACH, networkReason } from '../../domain/refusal.ts'
import type { Clock, FeedStore } from '../../domain/ports.ts'
import { isUsedUp, openConnections, readBody, retryAt } from '../http.ts'
import type { Connections, HttpExchange, HttpResponse } from '../http.ts'
import { HostGates, hostOf } from './host-gates.ts'
import type { HostLimits } from './host-gates.ts'

/** No item is near this size; a list says how large it may be. */
const ITEM_MAX_BYTES = 1024 * 1024

/** How often a question is sent when the source is busy (429, 503). */
const TRIES = 3

/** Pause before the second try of a question whose source does not say how long to wait; doubled for each further. */
const FIRST_PAUSE_MS = 1_000

/** An answer is used again for at most this long, however unchanged its source says that it is. */
const KEPT_FOR_MS = 24 * 3_600_000

/** A pause is remembered for at most this long: a slip of a source must not silence it for a year. */
const REMEMBERED_MS = 24 * 3_600_000

/** A longer answer, in characters, is not kept. */
const KEPT_MAX_LENGTH = 1_000_000

export interface SourceRequest<T> {
  url: string
  /** A JSON body makes it a POST. */
  body?: unknown
  /** So does a form. */
  form?: Record<string, string>
  /** Sent beside the client's own; never to another host. */
  headers?: Record<string, string>
  /** Setting to name when the source refuses who is asking. */
  credential?: string
  maxBytes?: number
  /** What a 404 or 410 means; without it they are failures. */
  absent?: T
  /** Keep the answer with its validators and ask next time whether it has changed. */
  conditional?: boolean
  /** The value of a JSON answer; whatever it throws makes the source unavailable. */
  read: (answer: unknown) => T
}

/** What questions cost. */
export interface RequestCounts {
  requests: number
  notModified: number
}

/** What a client remembers of sources from one run to the next. */
export type SourceMemory = Pick<FeedStore, 'keptAnswer' | 'keepAnswer' | 'pausedUntil' | 'pauseUntil'>

export interface SourceClientOptions {
  /** `dash/<version> (+<URL>)` */
  userAgent: string
  clock: Clock
  /** Rejects with the signal's reason when it is aborted. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** What is known from earlier runs; null when nothing is to be remembered. */
  memory: SourceMemory | null
  limits: HostLimits
  /** Time for a whole answer, connection included. */
  answerMs: number
}

/** Asks sources, politely: the one way to any of them. */
export interface SourceClient {
  clock: Clock
  /**
   * One JSON answer of a source (docs/collecting.md).
   *
   * @throws SourceUnavailable for everything that is no answer: not reachable, another status, too slow, too large, not
   *   JSON, another shape than `read` takes; the signal's reason when it is aborted
   */
  ask: <T>(request: SourceRequest<T>, signal: AbortSignal, counts?: RequestCounts) => Promise<T>
  /** Ends the connections. */
  close: () => Promise<void>
}

/** Opens no connection before the first question; whoever opens a client closes it. */
export function openSourceClient(options: SourceClientOptions): SourceClient {
  const { answerMs, clock, sleep, limits, memory } = options
  // Each request is limited as a whole; the limit of connecting would only say the same in other words.
  const connections = openConnections({ connect: { timeout: 2 * answerMs } })
  const gates = new HostGates(limits, clock, sleep, async (host) => (await memory?.pausedUntil(host)) ?? null)
  const asking = { ...options, connections, gates }
  return {
    clock,
    ask: (request, signal, counts = { requests: 0, notModified: 0 }) => ask(asking, request, signal, counts),
    close: () => connections.close(),
  }
}

type Asking = SourceClientOptions & { connections: Connections; gates: HostGates }

async function ask<T>(
  asking: Asking,
  request: SourceRequest<T>,
  signal: AbortSignal,
  counts: RequestCounts,
): Promise<T> {
  const { url } = request
  const memory = request.conditional === true ? asking.memory : null
  const known = await reusable(asking, memory, request)
  const answer = await askPatiently(asking, request, known?.kept ?? null, signal, counts)
  if (answer.status === 304 && known) {
    counts.notModified += 1
    return known.value
  }
  if ((answer.status === 404 || answer.status === 410) && request.absent !== undefined) return request.absent
  if (answer.status !== 200) throw new SourceUnavailable(`${url}: ${refusalOf(answer, request)}`)
  const value = readValue(request, readJson(url, answer.text, answer.headers))
  const kept = keepable(answer, asking.clock())
  if (memory && kept) await memory.keepAnswer(url, kept, kept.keptAt - KEPT_FOR_MS)
  return value
}

/** The kept answer and its value; none when its value is no longer what `read` takes. */
async function reusable<T>(
  { clock }: Asking,
  memory: SourceMemory | null,
  request: SourceRequest<T>,
): Promise<{ kept: KeptAnswer; value: T } | null> {
  const now = clock()
  const kept = await memory?.keptAnswer(request.url, now - KEPT_FOR_MS, now)
  if (!kept) return null
  try {
    return { kept, value: readValue(request, readJson(request.url, kept.body, {})) }
  } catch (error) {
    if (error instanceof SourceUnavailable) return null
    throw error
  }
}

/** Sends a question until it is answered by more than "not now", as often and as long as the limits allow. */
async function askPatiently(
  { connections, gates, clock, memory, userAgent, answerMs }: Asking,
  request: SourceRequest<unknown>,
  kept: KeptAnswer | null,
  signal: AbortSignal,
  counts: RequestCounts,
): Promise<Answer> {
  const { url } = request
  const question = {
    url,
    headers: headersOf(request, userAgent, kept),
    body: bodyOf(request),
    timeoutMs: answerMs,
    signal,
  }
  for (let attempt = 1; ; attempt += 1) {
    const answer = await gates.pass(url, signal, () => {
      counts.requests += 1
      return send(connections, question, request.maxBytes ?? ITEM_MAX_BYTES)
    })
    if (!isBusy(answer)) return answer
    const asked = retryAt(answer.headers, clock())
    const until = asked ?? clock() + FIRST_PAUSE_MS * 2 ** (attempt - 1)
    const mayWait = gates.pause(url, until)
    if (!mayWait && asked !== null) {
      await memory?.pauseUntil(hostOf(url), Math.min(asked, clock() + REMEMBERED_MS))
    }
    if (!mayWait || attempt === TRIES) {
      throw new SourceUnavailable(`${url}: it answered ${answer.status}, too busy or asked too often`, {
        retryAt: asked,
      })
    }
  }
}

/** GitHub says 403 where others say 429. */
function isBusy({ status, headers }: Answer): boolean {
  if (status === 403) return headers['retry-after'] !== undefined || isUsedUp(headers)
  return status === 429 || status === 503
}

function headersOf(
  { body, form, headers }: SourceRequest<unknown>,
  userAgent: string,
  kept: KeptAnswer | null,
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

function readValue<T>({ url, read }: SourceRequest<T>, json: unknown): T {
  try {
    return read(json)
  } catch (cause) {
    const why = cause instanceof AnswerProblem ? cause.message : 'its answer has another shape than expected'
    throw new SourceUnavailable(`${url}: ${why}`, { cause })
  }
}

/** Thrown by a `read` that can tell what is wrong with an answer. */
export class AnswerProblem extends Error {
  override readonly name = 'AnswerProblem'
}

function keepable({ headers, text }: Answer, keptAt: number): KeptAnswer | null {
  const etag = headers['etag'] ?? null
  const lastModified = headers['last-modified'] ?? null
  if ((etag === null && lastModified === null) || text.length > KEPT_MAX_LENGTH) return null
  return { etag, lastModified, body: text, keptAt }
}

function refusalOf({ status, headers }: Answer, { credential }: SourceRequest<unknown>): string {
  if ((status === 401 || status === 403) && credential !== undefined) {
    return `it answered ${status}: check ${credential}`
  }
  const location = headers['location']
  if (status < 300 || status > 399 || typeof location !== 'string') return `it answered ${status}`
  return `it answered ${status} and points to ${JSON.stringify(location.slice(0, 200))}, which is not followed`
}

interface Answer {
  status: number
  headers: IncomingHttpHeaders
  /** Of a 200 alone. */
  text: string
}

/**
 * Sends one question once. Redirections are answers like any other: nothing is ever followed, so that no token is
 * sent where it does not belong.
 *
 * @param maxBytes largest body of a 200
 * @throws SourceUnavailable when no whole answer comes: not reachable, cut, too slow, too large, not UTF-8
 */
async function send(
  connections: Connections,
  question: HttpExchange & { url: string },
  maxBytes: number,
): Promise<Answer> {
  const { url, signal } = question
  try {
    return await connections.exchange(question, async (response) => {
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
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity')
    throw new SourceUnavailable(
      `${url}: it answered in the encoding ${String(encoding)}, which was not asked for`,
    )
  const bytes = await readBody(body, maxBytes)
  if (bytes === null) throw new SourceUnavailable(`${url}: its answer is larger than ${maxBytes} bytes`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new SourceUnavailable(`${url}: its answer is not UTF-8`, { cause })
  }
}

/**
 * The value of a JSON answer.
 *
 * @throws SourceUnavailable telling an HTML page, an empty answer, JSON that is cut short and anything else apart
 */
function readJson(url: string, text: string, headers: IncomingHttpHeaders): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new SourceUnavailable(`${url}: ${whatElse(text, headers, cause)}`, { cause })
  }
}

function whatElse(text: string, headers: IncomingHttpHeaders, error: unknown): string {
  const type = headers['content-type'] ?? 'no content type'
  if (text.trim() === '') return 'its answer is empty'
  if (text.trimStart().startsWith('<')) return `it answered with a page (${type}) instead of JSON`
  if (isCutShort(text, error)) return `its JSON is cut short after ${text.length} characters`
  return `its answer (${type}) is not JSON`
}

/** True when nothing was wrong with a text before its end. */
function isCutShort(text: string, error: unknown): boolean {
  const message = error instanceof Error ? error.message : ''
  if (/Unexpected end|Unterminated/.test(message)) return true
  return Number(/at position (\d+)/.exec(message)?.[1]) === text.length
}
