import type { Catalogue } from '../../domain/models/catalogue.ts'
import type { EndpointRecord, ChatCall, RouterFacts } from '../../domain/models/evaluation.ts'
import type { Clock, ModelRouter } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { TimeLimitExceeded, headerTexts, openConnections, readInto } from '../http.ts'
import type { Connections, HttpExchange } from '../http.ts'
import { classifyResponse } from './classify.ts'
import type { RouterResponse } from './classify.ts'
import { parseCatalogue, parseEndpoints, parseKeyRequests } from './facts.ts'

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

/** A model that needs longer than this for a short question does not serve now. */
const CHAT_TIMEOUT_MS = 90_000
const FACTS_TIMEOUT_MS = 20_000

const CATALOGUE_MAX_BYTES = 32 * 1024 * 1024
const RESPONSE_MAX_BYTES = 1024 * 1024

/**
 * The routing service over HTTP. Chat answers are asked for whole, not as a stream: the suite grades whole answers, and
 * the latency that counts is that to their end.
 */
export function openRouter(options: RouterOptions): ModelRouter & { close: () => Promise<void> } {
  const { base, key, clock, chatTimeoutMs = CHAT_TIMEOUT_MS } = options
  const connections = openConnections({ connect: { timeout: 10_000 } })
  const headers: Record<string, string> = {
    accept: 'application/json',
    'user-agent': 'dash (AI and trends dashboard)',
    'http-referer': options.referer,
    'x-openrouter-title': 'dash',
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
  }
  const ask = async (asked: Question, maxBytes: number): Promise<TimedResponse> =>
    withoutSecret(await send(connections, asked, maxBytes, clock), key)
  const facts = (path: string, signal: AbortSignal, maxBytes = RESPONSE_MAX_BYTES) =>
    ask({ url: `${base}${path}`, headers, timeoutMs: FACTS_TIMEOUT_MS, signal }, maxBytes)
  return {
    hasKey: key !== null,
    catalogue: async (signal) =>
      catalogueOf(await facts('/models', signal, CATALOGUE_MAX_BYTES), `${base}/models`),
    async key(signal) {
      const response = await facts('/key', signal)
      return response.status === 200
        ? { facts: parseKeyRequests(response.body) }
        : { failed: classifyResponse(response) }
    },
    endpoints: async (model, signal) =>
      endpointsOf(await facts(`/models/${pathOf(model)}/endpoints`, signal), model),
    async chat(call, signal) {
      const response = await ask(
        {
          url: `${base}/chat/completions`,
          // A cached answer would have no latency and say nothing about today.
          headers: { ...headers, 'content-type': 'application/json', 'x-openrouter-cache': 'false' },
          body: JSON.stringify(chatBody(call)),
          timeoutMs: chatTimeoutMs,
          signal,
        },
        RESPONSE_MAX_BYTES,
      )
      return { ...classifyResponse(response), endedAt: response.endedAt, latencyMs: response.latencyMs }
    },
    close: () => connections.close(),
  }
}

function catalogueOf({ status, ending, body }: RouterResponse, url: string): Catalogue {
  if (status !== 200 || ending !== 'whole') {
    const unanswered = ending === 'timeout' ? 'it gave no answer in time' : 'it cannot be reached'
    const why = status === null ? unanswered : `it answered ${status}`
    throw unavailable(`${url}: ${why}; try again later, or correct OPENROUTER_BASE_URL`)
  }
  const catalogue = parseCatalogue(body)
  if (catalogue === null) throw unavailable(`${url} is no catalogue of models; correct OPENROUTER_BASE_URL`)
  return catalogue
}

function unavailable(detail: string): Refusal {
  return new Refusal('source_unavailable', detail)
}

/** A model the service does not know has no usable endpoint. */
function endpointsOf(response: RouterResponse, model: string): RouterFacts<EndpointRecord> {
  const { status, ending, body, endedAt: checkedAt } = response
  if (status === 401) return { failed: classifyResponse(response) }
  if (status === 404) return { facts: { model, checkedAt, usable: false, latencyMs: null } }
  const health = status === 200 && ending === 'whole' ? parseEndpoints(body) : null
  return { facts: health && { model, checkedAt, ...health } }
}

/** A response may repeat what was sent; what is kept of responses is published, and must not hold the key. */
function withoutSecret(response: TimedResponse, key: string | null): TimedResponse {
  if (key === null) return response
  const clean = (text: string): string => text.replaceAll(key, '(key)')
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, clean(value)]),
  )
  return { ...response, headers, body: clean(response.body) }
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

type Question = HttpExchange & { signal: AbortSignal }

interface TimedResponse extends RouterResponse {
  latencyMs: number
}

/**
 * Sends a request and reads its response as far as it comes. No redirect is followed.
 *
 * @throws only the signal's own reason: any other failure is how the response ended
 */
async function send(
  connections: Connections,
  asked: Question,
  maxBytes: number,
  clock: Clock,
): Promise<TimedResponse> {
  const startedAt = performance.now()
  let head: Pick<RouterResponse, 'status' | 'headers'> = { status: null, headers: {} }
  const chunks: Uint8Array[] = []
  let failed: RouterResponse['ending'] | null = null
  try {
    await connections.exchange(asked, async (response) => {
      head = { status: response.statusCode, headers: headerTexts(response.headers) }
      await readInto(chunks, response.body, maxBytes)
    })
  } catch (error) {
    asked.signal.throwIfAborted()
    failed = error instanceof TimeLimitExceeded ? 'timeout' : head.status === null ? 'unreachable' : 'cut'
  }
  const latencyMs = Math.round(performance.now() - startedAt)
  const bytes = Buffer.concat(chunks)
  const ending = failed ?? (bytes.byteLength > maxBytes ? 'too-large' : 'whole')
  const body = new TextDecoder().decode(bytes.subarray(0, maxBytes))
  return { ...head, body, ending, endedAt: clock(), latencyMs }
}
