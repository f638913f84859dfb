import type { AnswerEnding, ChatCall, ModelRouter, RouterAnswer } from '../domain/models/router.ts'
import type { Clock } from '../domain/ports.ts'
import { openConnections } from './http.ts'
import type { Connections } from './http.ts'

export interface RouterOptions {
  /** API base, without a slash at its end. The key is sent to nowhere else. */
  base: string
  key: string | null
  /** Names the product to the service: the address under which it is used. */
  referer: string
  clock: Clock
  /** Longest wait for a model's whole answer. */
  chatTimeoutMs?: number
}

/** Whoever needs longer than this to answer a short question does not serve now. */
const CHAT_TIMEOUT_MS = 90_000
const FACTS_TIMEOUT_MS = 20_000

const CATALOGUE_MAX_BYTES = 32 * 1024 * 1024
const ANSWER_MAX_BYTES = 1024 * 1024

/**
 * The routing service over HTTP. Chat answers are asked for whole, not as a stream: the suite grades whole answers, and
 * the latency that counts is that to their end.
 */
export function openRouter(options: RouterOptions): ModelRouter & { close: () => Promise<void> } {
  const { base, key, clock, chatTimeoutMs = CHAT_TIMEOUT_MS } = options
  const connections = openConnections({
    connect: { timeout: 10_000 },
    // One timer of our own for everything: these two start again with each byte.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  const headers: Record<string, string> = {
    accept: 'application/json',
    'user-agent': 'dash (AI and trends dashboard)',
    'http-referer': options.referer,
    'x-openrouter-title': 'dash',
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
  }
  const ask = async (asked: Exchange, signal: AbortSignal): Promise<RouterAnswer> =>
    withoutSecret(await exchange(connections, asked, clock, signal), key)
  const facts = (path: string, signal: AbortSignal, maxBytes = ANSWER_MAX_BYTES) =>
    ask({ url: `${base}${path}`, headers, timeoutMs: FACTS_TIMEOUT_MS, maxBytes }, signal)
  return {
    hasKey: key !== null,
    catalogue: (signal) => facts('/models', signal, CATALOGUE_MAX_BYTES),
    key: (signal) => facts('/key', signal),
    endpoints: (model, signal) => facts(`/models/${pathOf(model)}/endpoints`, signal),
    chat: (call, signal) =>
      ask(
        {
          url: `${base}/chat/completions`,
          // A cached answer would have no latency and say nothing about today.
          headers: { ...headers, 'x-openrouter-cache': 'false' },
          body: chatBody(call),
          timeoutMs: chatTimeoutMs,
          maxBytes: ANSWER_MAX_BYTES,
        },
        signal,
      ),
    close: () => connections.close(),
  }
}

/** An answer may repeat what was sent; what is kept of answers is published, and must not hold the key. */
function withoutSecret(answer: RouterAnswer, key: string | null): RouterAnswer {
  if (key === null) return answer
  const clean = (text: string): string => text.replaceAll(key, '(key)')
  const headers = Object.fromEntries(
    Object.entries(answer.headers).map(([name, value]) => [name, clean(value)]),
  )
  return { ...answer, headers, body: clean(answer.body) }
}

/** The slash of an id stays one; everything else is taken literally. */
function pathOf(model: string): string {
  return model.split('/').map(encodeURIComponent).join('/')
}

/** One model, no list of others to fall back on, and no price: a request that would cost anything is refused. */
function chatBody({ model, question, maxTokens, temperature, lowEffort }: ChatCall): Record<string, unknown> {
  const tools = question.tools.map((tool) => ({ type: 'function', function: tool }))
  return {
    model,
    messages: question.messages,
    ...(tools.length > 0 ? { tools } : {}),
    max_tokens: maxTokens,
    ...(temperature ? { temperature: 0 } : {}),
    ...(lowEffort ? { reasoning: { effort: 'low' } } : {}),
    stream: false,
    provider: { max_price: { prompt: 0, completion: 0 } },
  }
}

/** One request to the service. */
interface Exchange {
  url: string
  headers: Readonly<Record<string, string>>
  /** A JSON body makes it a POST. */
  body?: unknown
  /** For the whole answer, however slowly it drips in. */
  timeoutMs: number
  maxBytes: number
}

/**
 * Sends a request and reads its answer as far as it comes. No redirect is followed.
 *
 * @throws only the signal's own reason: whatever else goes wrong is how the answer ended
 */
async function exchange(
  connections: Connections,
  { url, headers, body, timeoutMs, maxBytes }: Exchange,
  clock: Clock,
  signal: AbortSignal,
): Promise<RouterAnswer> {
  signal.throwIfAborted()
  // Node 20 collects `AbortSignal.timeout()` as garbage before it fires when only `AbortSignal.any()` knows it.
  const limit = new AbortController()
  const stop = (): void => limit.abort()
  const timer = setTimeout(stop, timeoutMs)
  signal.addEventListener('abort', stop, { once: true })
  const startedAt = performance.now()
  const read: Reading = { status: null, headers: {}, chunks: [], size: 0 }
  let ending: AnswerEnding
  try {
    const sent = body === undefined ? null : JSON.stringify(body)
    const response = await connections.request(url, {
      method: sent === null ? 'GET' : 'POST',
      headers: sent === null ? headers : { ...headers, 'content-type': 'application/json' },
      body: sent,
      signal: limit.signal,
    })
    ending = await readAnswer(response, read, maxBytes)
  } catch {
    signal.throwIfAborted()
    ending = limit.signal.aborted ? 'timeout' : read.status === null ? 'unreachable' : 'cut'
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
  const latencyMs = Math.round(performance.now() - startedAt)
  const text = new TextDecoder().decode(Buffer.concat(read.chunks))
  return { status: read.status, headers: read.headers, body: text, ending, endedAt: clock(), latencyMs }
}

interface Reading {
  status: number | null
  headers: Record<string, string>
  chunks: Uint8Array[]
  size: number
}

async function readAnswer(
  response: Awaited<ReturnType<Connections['request']>>,
  read: Reading,
  maxBytes: number,
): Promise<AnswerEnding> {
  read.status = response.statusCode
  for (const [name, value] of Object.entries(response.headers)) {
    if (value !== undefined)
      read.headers[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value
  }
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    read.size += chunk.byteLength
    // Leaving the loop ends the connection: what is still to come is never read.
    if (read.size > maxBytes) return 'too-large'
    read.chunks.push(chunk)
  }
  return 'whole'
}
