import { createParser } from 'eventsource-parser'
import type { EventSourceMessage } from 'eventsource-parser'
import type { AgentConfig, AgentEvent } from '../../../../domain/agent/schema.ts'
import { LIMIT_TEXTS, failureText, limitOf } from '../../../../domain/agent/conversation.ts'
import type { Remaining } from '../../../../domain/agent/conversation.ts'
import { store, stored } from '../dom.ts'

/** Longest wait before an automatic retry after a rate limit, and number of such retries. */
const WAIT_MAX_SECONDS = 3
const WAITS_MAX = 2

/** Interval of the checks of an open stream, and number of checks in a row without a byte that end it. */
const IDLE_CHECK_MS = 15_000
const IDLE_CHECKS_MAX = 4

/** Where the session of this tab is kept, so that it survives a reload. */
const STORED = 'dash-chat-session'

/** A refusal of the server, by its public code. */
class ChatRefusal extends Error {
  readonly body: RefusalBody

  constructor(body: RefusalBody) {
    super(body.error)
    this.body = body
  }
}

interface RefusalBody {
  error: string
  scope?: string
  retryAfterSeconds?: number | undefined
}

export async function chatConfig(): Promise<AgentConfig> {
  const response = await fetch('/api/agent/config')
  if (!response.ok) throw await refusalOf(response)
  return response.json()
}

/**
 * Client of this server's chat. The session starts with the first turn and is renewed when it expires.
 *
 * @param proveHuman returns an unused verification token, or null if none is required
 */
export function chatService(proveHuman: (signal: AbortSignal) => Promise<string | null>) {
  const kept = stored(STORED, 'sessionStorage')
  let token = typeof kept === 'string' ? kept : null

  const keepToken = (value: string | null) => {
    token = value
    store(STORED, value, 'sessionStorage')
  }

  const startSession = async (signal: AbortSignal) => {
    const verificationToken = await proveHuman(signal)
    const body = verificationToken === null ? {} : { body: JSON.stringify({ verificationToken }) }
    const response = await fetch('/api/agent/session', { method: 'POST', signal, ...body })
    if (!response.ok) throw await refusalOf(response)
    const session = await response.json()
    keepToken(session.sessionToken)
    return session.sessionToken
  }

  const send = (body: string, sessionToken: string, signal: AbortSignal) =>
    fetch('/api/agent/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-agent-session': sessionToken },
      body,
      signal,
    })

  /** Sends a turn; waits and retries after a short rate limit. */
  const post: typeof send = async (body, sessionToken, signal) => {
    for (let waits = 0; ; waits += 1) {
      const response = await send(body, sessionToken, signal)
      if (response.status !== 429 || waits === WAITS_MAX) return response
      const { error, retryAfterSeconds = Infinity } = (await refusalOf(response.clone())).body
      if (error !== 'rate_limited' || !(retryAfterSeconds <= WAIT_MAX_SECONDS)) return response
      void response.body?.cancel()
      await wait(retryAfterSeconds * 1000, signal)
    }
  }

  return {
    /** Ends the session: the next turn starts a new one. */
    forget: () => keepToken(null),
    hasSession: () => token !== null,
    /**
     * Runs one turn. An expired session is renewed once, and the same body is sent again.
     *
     * @throws {ChatRefusal} if the server refuses the turn
     */
    async *turn(body: string, signal: AbortSignal) {
      const existingToken = token
      let response = await post(body, existingToken ?? (await startSession(signal)), signal)
      if (response.status === 401) {
        keepToken(null)
        if (existingToken !== null) response = await post(body, await startSession(signal), signal)
      }
      if (!response.ok || !response.body) throw await refusalOf(response)
      yield* eventsOf(response.body)
    },
  }
}

/** @returns rejects with the signal's reason */
function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
}

/** Reads a refusal from a response: with the interface's code, or with the HTTP status if a proxy sent it. */
export async function refusalOf(response: Response) {
  const body = await response.json().catch(() => null)
  if (typeof body?.error === 'string') return new ChatRefusal(body)
  const retryAfterSeconds = secondsIn(response.headers.get('retry-after') ?? '', Date.now())
  return new ChatRefusal({ error: `HTTP ${response.status}`, retryAfterSeconds })
}

/** Parses `Retry-After` (RFC 9110, 10.2.3), seconds or a date, to seconds; undefined if it is invalid. */
function secondsIn(value: string, now: number) {
  if (/^\d+$/.test(value)) return Number(value)
  const at = value.endsWith(' GMT') ? Date.parse(value) : NaN
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000))
}

/**
 * Parses the events of an answer, without comments. A complete last event counts even if its line ends are missing or the
 * connection breaks after it. A server sends a ping if it has no event; a stream without a byte for 45 to 60 s ends.
 */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<AgentEvent> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  const received: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (message) => void received.push(message) })
  let idleChecks = 0
  // One timer of 60 s would expire when a sleeping page wakes up, before it reads the bytes that have arrived.
  const timer = setInterval(() => {
    idleChecks += 1
    if (idleChecks === IDLE_CHECKS_MAX) void reader.cancel().catch(() => undefined)
  }, IDLE_CHECK_MS)
  try {
    for (;;) {
      let readError: unknown = null
      const { done, value } = await reader.read().catch((error: unknown) => {
        readError = error
        return { done: true, value: undefined }
      })
      idleChecks = 0
      parser.feed(done ? `${decoder.decode()}\n\n` : decoder.decode(value, { stream: true }))
      for (const message of received.splice(0)) {
        const event = eventOf(message, done)
        if (event) yield event
      }
      if (readError) throw readError
      if (done) return
    }
  } finally {
    clearInterval(timer)
    void reader.cancel().catch(() => undefined)
  }
}

/** @param isLast whether the stream has ended, perhaps within this event */
function eventOf({ event, data }: EventSourceMessage, isLast: boolean): AgentEvent | null {
  try {
    return { event: event ?? 'message', data: JSON.parse(data) } as AgentEvent
  } catch (error) {
    if (isLast) return null
    throw error
  }
}

const REFUSALS: Readonly<Record<string, string>> = {
  disabled: 'The chat of this server is switched off.',
  misconfigured:
    'The chat of this server is not set up: its operator must set a secret, a model and a price.',
  forbidden_origin:
    'This server does not accept questions from the address of this page; its operator can allow it.',
  human_verification_failed: 'The verification failed. Verify again, then retry.',
  invalid_session: 'The server rejected the session. Retry, or start a new conversation.',
  'HTTP 429': 'The server or a proxy refused the request: too many requests (HTTP 429).',
  internal_error: 'The server cannot answer now; no model was used.',
}

/** A hundred years; a time further ahead is not shown. */
const LONGEST_SECONDS = 100 * 366 * 86_400

export const CUT_OFF = 'The connection broke before the answer ended.'

/** The message for a failed turn. @param remaining null if the server has not reported it yet */
export function problemMessage(error: unknown, now: number, remaining: Remaining | null) {
  if (!(error instanceof ChatRefusal)) return 'The server could not be reached, or the connection broke.'
  const { error: code, scope = '', retryAfterSeconds } = error.body
  const message =
    code === 'rate_limited'
      ? limitMessage(scope, retryAfterSeconds ?? Infinity, remaining)
      : (REFUSALS[code] ?? `The server refused: ${code}.`)
  if (retryAfterSeconds === undefined || !(retryAfterSeconds <= LONGEST_SECONDS)) return message
  const time = clockTime(retryAfterSeconds, now)
  return `${message} Try again at ${time}.`
}

function limitMessage(scope: string, seconds: number, remaining: Remaining | null) {
  const limit = limitOf(scope, seconds, remaining)
  const text = capitalized(LIMIT_TEXTS[limit])
  const advice = limit === 'session' ? '; start a new conversation' : ''
  return `${text}${advice}${scope === '' ? '' : ` (scope ${scope})`}.`
}

/** The message for a stream that ended with an error. */
export function failureMessage(failure: { error: string; code: string }) {
  return `${capitalized(failureText(failure))} (${failure.error}, ${failure.code}). This message counted.`
}

function capitalized(text: string) {
  return text.replace(/^./, (first) => first.toUpperCase())
}

/** The visitor's local time after some seconds, with seconds if it is near, and with day and year if they differ. */
function clockTime(seconds: number, now: number) {
  const at = new Date(now + seconds * 1000)
  const isToday = at.toDateString() === new Date(now).toDateString()
  const format: Intl.DateTimeFormatOptions = {
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    ...(seconds < 120 ? { second: '2-digit' } : {}),
    ...(isToday ? {} : { day: 'numeric', month: 'short' }),
    ...(at.getFullYear() === new Date(now).getFullYear() ? {} : { year: 'numeric' }),
  }
  return new Intl.DateTimeFormat('en-GB', format).format(at)
}
