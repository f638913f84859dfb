import type { Dispatcher } from 'undici'
import type { AgentEvents, AgentStatus } from '../../domain/agent/schema.ts'
import type { ChatApi, Clock, ServedEvent } from '../../domain/ports.ts'
import type { ChatApiRefusal } from '../../domain/agent/chat-api.ts'
import { Refusal } from '../../domain/refusal.ts'
import { openConnections } from '../connections.ts'
import type { Connections } from '../connections.ts'
import { TimeLimitExceeded } from '../time-limit.ts'
import { EventStream, StreamTooLarge } from '../event-stream.ts'
import { networkReason } from '../../domain/network-reason.ts'
import type { StreamRecord } from '../event-stream.ts'
import { declined, foreign, parseJson, readText, typeOf } from './answers.ts'
import { readEvent } from './events.ts'
import { parseConfig, parseSession, parseStatus } from './schemas.ts'

/** Time until a server begins to answer; a turn's first event comes at once. */
const ANSWER_MS = 20_000

/** Time between two pieces of an answer: a server says something at least every 15 s while it works. */
const SILENCE_MS = 45_000

/** Longest that a turn may take. A server ends its turns after 90 s, unless its operator gives them longer. */
const TURN_MS = 600_000

/** No event and no answer of a sound server is near these sizes. */
const STREAM_BOUNDS = { maxEventBytes: 256 * 1024, maxBytes: 8 * 1024 * 1024 }

const USER_AGENT = 'dash (terminal chat)'

export interface ChatApiOptions {
  answerMs?: number
  silenceMs?: number
  turnMs?: number
  clock?: Clock
}

/**
 * The chat interface of the server at `base`, over its own connections; `close` ends them. The origin sent is the
 * server's own. Redirects are not followed: a question goes to whom it is meant for.
 *
 * @param base absolute http(s) URL; a path in it comes before those of the interface
 */
export function openChatApi(
  base: string,
  { answerMs = ANSWER_MS, silenceMs = SILENCE_MS, turnMs = TURN_MS, clock = Date.now }: ChatApiOptions = {},
): ChatApi & { close(): Promise<void> } {
  const root = base.replace(/\/+$/, '')
  const pool = openConnections({
    connect: { timeout: answerMs },
    headersTimeout: answerMs,
    bodyTimeout: silenceMs,
    connections: 2,
  })
  const send = sender(pool, root)

  const json = async <T>(
    request: Parameters<typeof send>[0],
    parse: (value: unknown) => T | null,
    signal: AbortSignal,
  ): Promise<T> => {
    const response = await send(request, answerMs, signal)
    const text = await readText(response, root, signal)
    if (response.statusCode !== 200) throw declined(root, response, text, clock())
    const value = parse(parseJson(text))
    if (value === null) throw foreign(root, request.path, response)
    return value
  }

  return {
    base: root,
    config: (signal) => json({ method: 'GET', path: '/api/agent/config' }, parseConfig, signal),
    status: (signal): Promise<Pick<AgentStatus, 'ok' | 'budget'>> =>
      json({ method: 'GET', path: '/api/agent/status' }, parseStatus, signal),
    session: (signal) =>
      json({ method: 'POST', path: '/api/agent/session', body: '{}' }, parseSession, signal),
    async *ask(token, body, signal) {
      const path = '/api/agent/chat'
      const response = await send({ method: 'POST', path, body, token }, turnMs, signal)
      if (response.statusCode !== 200)
        throw declined(root, response, await readText(response, root, signal), clock())
      if (typeOf(response) !== 'text/event-stream') {
        response.body.destroy()
        throw foreign(root, path, response)
      }
      yield* eventsOf(response, root, signal)
    },
    close: () => pool.close(),
  }
}

interface Question {
  method: 'GET' | 'POST'
  path: string
  body?: string
  token?: string
}

function sender(
  pool: Connections,
  root: string,
): (question: Question, wholeMs: number, signal: AbortSignal) => Promise<Dispatcher.ResponseData> {
  const { origin } = new URL(root)
  return async ({ method, path, body, token }, wholeMs, signal) => {
    signal.throwIfAborted()
    try {
      const response = await pool.request(`${root}${path}`, {
        method,
        signal,
        headers: {
          origin,
          accept: 'application/json, text/event-stream',
          'accept-encoding': 'identity',
          'user-agent': USER_AGENT,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(token === undefined ? {} : { 'x-agent-session': token }),
        },
        ...(body === undefined ? {} : { body }),
      })
      // Ending a body early makes it say so, and nobody else listens then.
      response.body.on('error', () => undefined)
      endAfter(wholeMs, response.body)
      return response
    } catch (error) {
      signal.throwIfAborted()
      throw unreachable(root, error)
    }
  }
}

/** Ends a body that is not over by then: whatever drips in starts the limit of silence again, comments too. */
function endAfter(ms: number, body: Dispatcher.ResponseData['body']): void {
  const timer = setTimeout(
    () => body.destroy(new TimeLimitExceeded(`no whole answer within ${ms / 1000} s`)),
    ms,
  )
  body.once('close', () => clearTimeout(timer))
}

/** The events of an answer up to its terminal one; a stream without it is `answer_cut`. */
async function* eventsOf(
  response: Dispatcher.ResponseData,
  root: string,
  signal: AbortSignal,
): AsyncGenerator<ServedEvent, void> {
  try {
    for await (const record of recordsOf(response.body)) {
      signal.throwIfAborted()
      const event = readEvent(record, root)
      if (event === null) continue
      yield event
      if (isTerminal(event.event)) return
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Refusal) throw error
    if (error instanceof StreamTooLarge) throw foreign(root, '/api/agent/chat', response, error)
    throw new Refusal<ChatApiRefusal>('answer_cut', `the answer broke off (${networkReason(error)})`, {
      cause: error,
    })
  } finally {
    response.body.destroy()
  }
  signal.throwIfAborted()
  throw new Refusal<ChatApiRefusal>('answer_cut', 'the answer broke off: its stream ended in the middle')
}

/** The records of a stream, a whole one at its end included, however the stream ends. */
async function* recordsOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamRecord, void> {
  const stream = new EventStream(STREAM_BOUNDS)
  let broken: unknown = null
  try {
    for await (const chunk of body) yield* stream.push(chunk)
  } catch (error) {
    if (error instanceof StreamTooLarge) throw error
    broken = error
  }
  const last = stream.end()
  // Half of an event is what a cut stream ends with.
  if (last !== null && parseJson(last.data) !== undefined) yield last
  if (broken !== null) throw broken as Error
}

function isTerminal(name: keyof AgentEvents): boolean {
  return name === 'done' || name === 'error'
}

function unreachable(root: string, error: unknown): Refusal<ChatApiRefusal> {
  return new Refusal('server_unreachable', `the server ${root} cannot be reached (${networkReason(error)})`, {
    cause: error,
  })
}
