import type { Readable } from 'node:stream'
import { OpenAI } from 'openai'
import type { FailureCode, ModelEvent } from '../../domain/agent/model-call.ts'
import { parseJsonObject } from '../../domain/json.ts'
import { flattenHeaders, openHttpClient, readInto } from '../http.ts'
import type { HttpClient } from '../http.ts'
import { errorIn } from '../completion-message.ts'
import { SseParser, StreamTooLarge, hasData } from '../sse-parser.ts'
import type { StreamBounds, StreamRecord } from '../sse-parser.ts'

export interface UpstreamOptions {
  /** API base without a trailing slash. The key is sent to this base only. */
  base: string
  /** Null for requests without authentication. */
  key: string | null
  userAgent: string
  /** Additional headers of every request. */
  headers?: Readonly<Record<string, string>>
}

/** The bytes of a response body, as the connection delivers them. */
export type ResponseBody = AsyncIterable<Uint8Array> & { destroy: () => unknown }

/** A successful response of the client (`asResponse()`), with its unread body. */
export interface StreamedResponse extends Response {
  stream: ResponseBody
}

/** A provider's API. Its client sends requests. */
export interface Upstream {
  client: OpenAI
  close(): Promise<void>
}

/** Bytes read of an error's body: it is only classified. */
const ERROR_MAX_BYTES = 16 * 1024

/** If the body of an error takes longer, only its status is reported. */
const ERROR_BODY_MS = 1_000

/** The client's own timeout ends with the headers. It must never fire before the limits of this adapter. */
const NO_TIMEOUT_MS = 2 ** 31 - 1

/**
 * Opens a provider. The SDK's client only builds requests and classifies errors. This adapter owns the connections,
 * the headers and the streams (`EventReader`); nothing is retried and no redirect is followed
 * (docs/decisions/0029-provider-streams.md).
 */
export function openUpstream({ base, key, userAgent, headers = {} }: UpstreamOptions): Upstream {
  const http = openHttpClient({ connect: { timeout: 10_000 } })
  const requestHeaders = {
    ...headers,
    accept: 'text/event-stream',
    'accept-encoding': 'identity',
    'content-type': 'application/json',
    'user-agent': userAgent,
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
  }
  const client = new OpenAI({
    baseURL: base,
    // The client requires a key; the header above is the one that is sent.
    apiKey: key ?? 'none',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: 'off',
    maxRetries: 0,
    timeout: NO_TIMEOUT_MS,
    fetch: (target, init) => post(http, requestHeaders, target, init),
  })
  return { client, close: () => http.close() }
}

async function post(
  http: HttpClient,
  headers: Readonly<Record<string, string>>,
  target: string | URL | Request,
  init: RequestInit | undefined,
): Promise<Response> {
  if (typeof target !== 'string' || typeof init?.body !== 'string')
    throw new Error('only text bodies are sent')
  const received = await http.request(target, {
    method: 'POST',
    headers: { ...headers, 'content-length': String(Buffer.byteLength(init.body)) },
    body: singleUseBody(init.body),
    signal: init.signal,
  })
  const { statusCode: status, body } = received
  const responseHeaders = flattenHeaders(received.headers)
  if (status >= 400) {
    // Of an error's body, the client keeps the member `error` alone.
    const error = JSON.stringify({ error: await readError(body) })
    return new Response(error, { status, headers: responseHeaders })
  }
  const response = new Response(null, { status, headers: responseHeaders })
  if (!response.ok) body.destroy()
  return Object.assign(response, { stream: body })
}

/**
 * Creates a request body that is released after it was read once: a connection holds its body for the duration of
 * the response. The types of undici omit the iterables that it accepts.
 */
export function singleUseBody(text: string): Readable {
  let remaining: string | null = text
  const next = (): IteratorResult<Buffer, undefined> => {
    if (remaining === null) return { done: true, value: undefined }
    const value = Buffer.from(remaining)
    remaining = null
    return { done: false, value }
  }
  return { [Symbol.iterator]: () => ({ next }) } as unknown as Readable
}

/** Reads the part of an error's body that arrives in time. */
export async function readError(body: ResponseBody): Promise<string> {
  const chunks: Uint8Array[] = []
  const timer = setTimeout(() => body.destroy(), ERROR_BODY_MS)
  try {
    await readInto(chunks, body, ERROR_MAX_BYTES)
  } catch {
    // The body is cut or late: the status is enough.
  } finally {
    clearTimeout(timer)
    body.destroy()
  }
  return Buffer.concat(chunks).subarray(0, ERROR_MAX_BYTES).toString()
}

/**
 * Returns the ids for the second try of a refused request: those that its error does not name. Null if the error names all
 * ids or no id.
 */
export function unnamedIds(error: string, ids: readonly string[]): readonly string[] | null {
  const others = ids.filter((id) => !error.includes(id))
  return others.length > 0 && others.length < ids.length ? others : null
}

/** The requested id that responds: the only one, or the one that the response names; null if it names another. */
export function respondingId(ids: readonly string[], named: unknown): string | null {
  const [only = null, ...others] = ids
  return others.length === 0 ? only : (ids.find((id) => id === named) ?? null)
}

/** A round that failed. */
export type FailedRound = Extract<ModelEvent, { kind: 'failed' }> & {
  /** The error's text if it may name a part of the request that the provider refuses; it is never passed on. */
  refusal: string | null
}

type FailureDetails = Partial<Pick<FailedRound, 'usage' | 'dispatched' | 'refusal'>>
type UpstreamCode = Extract<FailureCode, { error: 'upstream_error' }>['code']

export function failedRound(failure: FailureCode, details: FailureDetails = {}): FailedRound {
  return { kind: 'failed', usage: null, dispatched: true, refusal: null, ...details, ...failure }
}

/** Creates a round that failed because of the provider. */
export function failedUpstream(code: UpstreamCode, details: FailureDetails = {}): FailedRound {
  return failedRound({ error: 'upstream_error', code }, details)
}

/** Thrown to end a round with a failure. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
  readonly round: FailedRound

  constructor(round: FailedRound, cause?: unknown) {
    super(`${round.error} ${round.code}`, { cause })
    this.round = round
  }
}

export function upstreamError(
  code: UpstreamCode,
  details: FailureDetails = {},
  cause?: unknown,
): ProviderFailure {
  return new ProviderFailure(failedUpstream(code, details), cause)
}

/** Time limits between the events of a response, in milliseconds. */
export interface IdleTimeouts {
  /** Time from the request to the first event. */
  firstEventMs: number
  /** Time between two events; comments do not count. */
  idleMs: number
  /** Replaces {@link AFTER_REASON_MS}; for tests. */
  afterReasonMs?: number
}

/** A completion with a finish reason is complete after this time without another event, in milliseconds. */
export const AFTER_REASON_MS = 10_000

/** Time for a stream to end after its last event, in milliseconds, so that its connection can be reused. */
export const END_MS = 500

/** The data of the last event of a stream. */
export const END_MARK = '[DONE]'

export function isEndMark(data: string): boolean {
  return /^"?\[done\]"?$/i.test(data)
}

/** A part of a stream: one chunk, or all up to and including its next event. */
export interface StreamPart {
  /** The part as it was received. */
  chunks: Uint8Array[]
  /** Data of the events that end in it; of the last one, if its end is missing, after the end. */
  events: string[]
  /** Null while the stream continues. A connection that broke is an end: the data before it counts. */
  ending: 'end' | 'silent' | 'too-large' | null
  /** True if the stream ended within an event. */
  isCut: boolean
}

/**
 * Reads the events of a response, limited in bytes and in the time between events. The signal ends everything
 * immediately, whether or not an event is awaited.
 */
export class EventReader {
  readonly #signal: AbortSignal
  readonly #stop = new AbortController()
  readonly #abort = (): void => {
    this.#stop.abort()
    this.#body?.destroy()
  }
  readonly #parser: SseParser
  #timer: NodeJS.Timeout | undefined
  #body: ResponseBody | null = null
  #chunks: AsyncIterator<Uint8Array> | null = null
  #hasStarted = false
  /** Time left for the next event after chunks without one; null before them. */
  #leftMs: number | null = null
  #hasEnded = false
  /** The time limit that was exceeded. */
  expired: 'first_event' | 'idle' | null = null

  /** Starts the time until the first event. */
  constructor({ firstEventMs }: IdleTimeouts, bounds: StreamBounds, signal: AbortSignal) {
    this.#parser = new SseParser(bounds)
    this.#signal = signal
    signal.addEventListener('abort', this.#abort, { once: true })
    this.#limit('first_event', firstEventMs)
  }

  /** Aborts the request. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** @param takesObject true if a JSON object in place of a stream is one event */
  begin(body: ResponseBody, takesObject = false): void {
    this.#parser.takesObject = takesObject
    this.#body = body
    this.#chunks = body[Symbol.asyncIterator]()
  }

  /**
   * Reads up to the next event, or to the end.
   *
   * @param idleMs time limit; the first event has its own
   * @param isByChunk returns each chunk as it arrives; comments do not prolong the time limit
   * @throws the signal's reason
   */
  async read(idleMs: number, isByChunk = false): Promise<StreamPart> {
    const since = performance.now()
    const leftMs = this.#leftMs ?? idleMs
    if (this.#hasStarted) this.#limit('idle', leftMs)
    this.#hasStarted = true
    const part: StreamPart = { chunks: [], events: [], ending: null, isCut: false }
    const isRead = (): boolean => isByChunk || part.events.length > 0 || part.ending !== null
    do await this.#readChunk(part)
    while (!isRead())
    clearTimeout(this.#timer)
    this.#leftMs = part.events.length > 0 ? null : Math.max(1, leftMs - (performance.now() - since))
    this.#hasEnded = part.ending !== null
    return part
  }

  async #readChunk(part: StreamPart): Promise<void> {
    const chunk = await this.#chunks?.next().catch(() => null)
    this.#signal.throwIfAborted()
    if (!chunk || chunk.done === true) {
      const last = this.#parser.end()
      part.events.push(...dataOf(last === null ? [] : [last]))
      part.ending = this.expired === null ? 'end' : 'silent'
      part.isCut = last !== null
      return
    }
    try {
      part.events.push(...dataOf(this.#parser.push(chunk.value)))
      part.chunks.push(chunk.value)
    } catch (error) {
      if (!(error instanceof StreamTooLarge)) throw error
      part.ending = 'too-large'
      this.#abort()
    }
  }

  /** Ends the request. The connection is reused if nothing follows the last event. */
  close(isComplete = false): void {
    clearTimeout(this.#timer)
    if (isComplete && !this.#hasEnded) {
      void this.read(END_MS)
        .catch(() => null)
        .finally(() => this.close())
      return
    }
    this.#signal.removeEventListener('abort', this.#abort)
    if (!this.#hasEnded) this.#abort()
  }

  #limit(name: 'first_event' | 'idle', ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.expired = name
      this.#abort()
    }, ms)
  }
}

/** Where some gateways lack the blank line between two events. */
const JOINT = /(?<=\})[^\S\n]*\n\s*(?=\{|"?\[DONE)/i

/** The data of events, without events that only keep a connection open, and without those of other names. */
function dataOf(records: readonly StreamRecord[]): string[] {
  return records
    .flatMap(({ name, data }) => data.split(JOINT).map((part) => ({ name, data: part.trim() })))
    .filter(({ name, data }) => hasData(data) && (PLAIN_NAMES.has(name) || COMPLETION.test(data)))
    .map(({ name, data }) => (name === ERROR_NAME ? asError(data) : data))
}

const ERROR_NAME = 'error'
const PLAIN_NAMES = new Set(['message', ERROR_NAME])

/** What an event of another name has if it belongs to the completion. */
const COMPLETION = /"choices"|"error"|^"?\[done\]/i

function asError(data: string): string {
  const event = parseJsonObject(data)
  return event !== null && errorIn(event) !== null ? data : JSON.stringify({ error: data })
}
