import { z } from 'zod'
import { parseJsonObject, parseJson } from '../domain/json.ts'
import {
  AGENT_ERRORS,
  EVENT_SCHEMAS,
  configSchema,
  isLastEvent,
  sessionSchema,
  statusSchema,
} from '../domain/agent/schema.ts'
import type {
  AgentSession,
  AgentStatus,
  ChatApiRefusal,
  ServedConfig,
  ServedEvent,
} from '../domain/agent/schema.ts'
import type { Clock } from '../domain/ports.ts'
import { Refusal, networkReason } from '../domain/refusal.ts'
import type { Instant } from '../domain/time.ts'
import { SseParser, StreamTooLarge } from './sse-parser.ts'
import type { StreamRecord } from './sse-parser.ts'
import { TimeLimitExceeded, mediaTypeOf, openHttpClient, retryAt, readBody } from './http.ts'
import type { HttpResponse } from './http.ts'

/**
 * The chat API of a server. Every call throws a Refusal with a public code or a {@link ChatApiRefusal}, or the reason of
 * an aborted signal.
 */
export interface ChatApi {
  /** Base URL without a trailing slash. */
  readonly base: string
  config(signal: AbortSignal): Promise<ServedConfig>
  status(signal: AbortSignal): Promise<Pick<AgentStatus, 'ok' | 'budget'>>
  session(signal: AbortSignal): Promise<Pick<AgentSession, 'sessionToken' | 'quotas'>>
  /**
   * Runs one turn with a request as JSON text. The last event ends the stream; leaving the loop or aborting closes the
   * connection.
   */
  ask(token: string, body: string, signal: AbortSignal): AsyncGenerator<ServedEvent, void>
}

/** Limit of every response except event streams. */
const JSON_MAX_BYTES = 64 * 1024

function refusal(code: ChatApiRefusal, detail: string, cause?: unknown): Refusal<ChatApiRefusal> {
  return new Refusal(code, detail, { cause })
}

/**
 * Reads the body of a response that is not a stream. Returns an empty text if the body is too large, which no
 * server of this API sends.
 */
async function readText({ body }: HttpResponse, root: string, signal: AbortSignal): Promise<string> {
  try {
    return (await readBody(body, JSON_MAX_BYTES))?.toString() ?? ''
  } catch (error) {
    signal.throwIfAborted()
    const reason = `the server ${root} broke the connection (${networkReason(error)})`
    throw refusal('server_unreachable', reason, error)
  }
}

/**
 * Converts a response other than 200 to a Refusal: either an error code of the API with its members (`reason`,
 * `scope`, `retryAfterSeconds`, `status`), or `server_foreign` if the address is not a dash server. Every 429 is a
 * limit: a proxy in front of the server may send one too.
 */
function responseRefusal(root: string, response: HttpResponse, text: string, now: Instant): Refusal {
  const fields = parseJsonObject(text) ?? {}
  const code =
    AGENT_ERRORS.find((errorCode) => errorCode === fields['error']) ??
    (response.statusCode === 429 ? ('rate_limited' as const) : undefined)
  if (code === undefined) return foreignServer(root, '', response)
  const members: Record<string, string | number> = { status: response.statusCode }
  for (const name of ['reason', 'scope'] as const) {
    const value = fields[name]
    if (typeof value === 'string' && /^[a-z_-]{1,64}$/.test(value)) members[name] = value
  }
  const seconds = fields['retryAfterSeconds']
  if (Number.isSafeInteger(seconds) && Number(seconds) >= 0) members['retryAfterSeconds'] = Number(seconds)
  else {
    const until = retryAt(response.headers, now)
    if (until !== null) members['retryAfterSeconds'] = Math.ceil((until - now) / 1000)
  }
  return new Refusal(code, undefined, { members })
}

/** Returns the Refusal for a response that no dash server sends. */
function foreignServer(
  root: string,
  path: string,
  response: HttpResponse,
  cause?: unknown,
): Refusal<ChatApiRefusal> {
  const { statusCode: status, headers } = response
  const type = mediaTypeOf(headers['content-type'])
  const received = status === 200 ? type || 'no type' : `status ${status}${type === '' ? '' : `, ${type}`}`
  const target = headers['location']
  const redirect =
    status >= 300 && status < 400 && typeof target === 'string' && /^[\x21-\x7e]{1,200}$/.test(target)
      ? `; it redirects to ${target}, so try that address`
      : ''
  const detail = `${root}${path} is not the chat of a dash server (${received})${redirect}`
  return refusal('server_foreign', detail, cause)
}

/**
 * Parses one record of the stream. Returns null for an unknown event or the activity of an unknown tool: a later
 * server may send more of both, and neither is part of the answer.
 *
 * @throws Refusal `server_foreign` if the payload does not match the schema of its event
 */
function parseEvent({ name, data }: StreamRecord, root: string): ServedEvent | null {
  if (!Object.hasOwn(EVENT_SCHEMAS, name)) return null
  const event = name as keyof typeof EVENT_SCHEMAS
  const raw = parseJson(data)
  const parsed = EVENT_SCHEMAS[event].safeParse(raw)
  if (parsed.success) return { event, data: parsed.data, raw } as ServedEvent
  if (name === 'tool') return null
  throw refusal('server_foreign', `the server ${root} sent an unknown event \`${name}\``)
}

/** Schemas of the response fields that the client uses. Other fields are ignored. */

const servedConfig = configSchema.pick({
  enabled: true,
  requireVerification: true,
  itemChat: true,
  model: true,
  quotas: true,
})

const servedStatus = statusSchema.pick({ ok: true, budget: true })

const servedSession = sessionSchema.pick({ quotas: true }).extend({
  // The token is sent unchanged in a header.
  sessionToken: z.string().regex(/^[\x21-\x7e]{1,4096}$/),
})

/** Time limit for the response headers; a turn's first event follows them immediately. */
const RESPONSE_START_MS = 20_000

/** Time limit between two chunks of a response: a working server sends something at least every 15 s. */
const IDLE_MS = 45_000

/** Time limit of a turn. A server ends its turns after 90 s unless its operator configured more. */
const TURN_MS = 600_000

/** A correct server sends no event and no answer near these sizes. */
const STREAM_BOUNDS = { maxEventBytes: 256 * 1024, maxBytes: 8 * 1024 * 1024 }

const USER_AGENT = 'dash (terminal chat)'

interface ChatRequest {
  path: string
  /** Request body; its presence makes the request a POST. */
  body?: string | null
  token?: string
}

export interface ChatApiOptions {
  responseStartMs?: number
  idleMs?: number
  turnMs?: number
  clock?: Clock
}

/**
 * Opens the chat API of the server at `base` over its own connections; `close` ends them. The `origin` header is
 * the server's own. Redirects are not followed, so a question reaches no other server.
 *
 * @param base absolute http(s) URL; its path is prepended to the paths of the API
 */
export function openChatApi(
  base: string,
  {
    responseStartMs = RESPONSE_START_MS,
    idleMs = IDLE_MS,
    turnMs = TURN_MS,
    clock = Date.now,
  }: ChatApiOptions = {},
): ChatApi & { close(): Promise<void> } {
  const root = base.replace(/\/+$/, '')
  const http = openHttpClient({
    connect: { timeout: responseStartMs },
    headersTimeout: responseStartMs,
    bodyTimeout: idleMs,
    connections: 2,
  })
  const { origin } = new URL(root)

  const send = async (
    { path, body = null, token }: ChatRequest,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<HttpResponse> => {
    signal.throwIfAborted()
    const headers = {
      origin,
      accept: 'application/json, text/event-stream',
      'accept-encoding': 'identity',
      'user-agent': USER_AGENT,
      ...(body === null ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { 'x-agent-session': token }),
    }
    try {
      const method = body === null ? 'GET' : 'POST'
      const response = await http.request(`${root}${path}`, { method, signal, headers, body })
      destroyAfter(timeoutMs, response.body)
      return response
    } catch (error) {
      signal.throwIfAborted()
      const reason = `the server ${root} cannot be reached (${networkReason(error)})`
      throw refusal('server_unreachable', reason, error)
    }
  }

  const requestJson = async <T>(
    request: ChatRequest,
    schema: z.ZodType<T>,
    signal: AbortSignal,
  ): Promise<T> => {
    const response = await send(request, responseStartMs, signal)
    const text = await readText(response, root, signal)
    if (response.statusCode !== 200) throw responseRefusal(root, response, text, clock())
    const parsed = schema.safeParse(parseJson(text))
    if (!parsed.success) throw foreignServer(root, request.path, response)
    return parsed.data
  }

  return {
    base: root,
    config: (signal) => requestJson({ path: '/api/agent/config' }, servedConfig, signal),
    status: (signal) => requestJson({ path: '/api/agent/status' }, servedStatus, signal),
    session: (signal) => requestJson({ path: '/api/agent/session', body: '{}' }, servedSession, signal),
    async *ask(token, body, signal) {
      const path = '/api/agent/chat'
      const response = await send({ path, body, token }, turnMs, signal)
      if (response.statusCode !== 200)
        throw responseRefusal(root, response, await readText(response, root, signal), clock())
      if (mediaTypeOf(response.headers['content-type']) !== 'text/event-stream') {
        response.body.destroy()
        throw foreignServer(root, path, response)
      }
      yield* readEvents(response, root, signal)
    },
    close: () => http.close(),
  }
}

/**
 * Destroys a body that has not ended after `ms`. The idle limit alone is not enough: every chunk restarts it, even
 * a comment.
 */
function destroyAfter(ms: number, body: HttpResponse['body']): void {
  const timer = setTimeout(
    () => body.destroy(new TimeLimitExceeded(`no complete response within ${ms / 1000} s`)),
    ms,
  )
  body.once('close', () => clearTimeout(timer))
}

/**
 * Yields the events of an answer up to the terminal one.
 *
 * @throws Refusal `answer_cut` if the stream ends without it
 */
async function* readEvents(
  response: HttpResponse,
  root: string,
  signal: AbortSignal,
): AsyncGenerator<ServedEvent, void> {
  try {
    for await (const record of readRecords(response.body)) {
      signal.throwIfAborted()
      const event = parseEvent(record, root)
      if (event === null) continue
      yield event
      if (isLastEvent(event)) return
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Refusal) throw error
    if (error instanceof StreamTooLarge) throw foreignServer(root, '/api/agent/chat', response, error)
    throw refusal('answer_cut', `the connection broke during the answer (${networkReason(error)})`, error)
  } finally {
    response.body.destroy()
  }
  signal.throwIfAborted()
  throw refusal('answer_cut', 'the connection broke during the answer: the stream ended early')
}

/**
 * Yields the records of a stream, including a complete last record without a blank line, even if the connection
 * breaks.
 */
async function* readRecords(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamRecord, void> {
  const stream = new SseParser(STREAM_BOUNDS)
  let broken: unknown = null
  try {
    for await (const chunk of body) yield* stream.push(chunk)
  } catch (error) {
    if (error instanceof StreamTooLarge) throw error
    broken = error
  }
  const last = stream.end()
  // A cut stream can end with half an event.
  if (last !== null && parseJson(last.data) !== undefined) yield last
  if (broken !== null) throw broken as Error
}
