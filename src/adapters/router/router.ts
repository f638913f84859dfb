import type { Catalogue } from '../../domain/models/catalogue.ts'
import type { EndpointRecord, ChatCall, RouterFacts } from '../../domain/models/evaluation.ts'
import type { Clock, ModelRouter } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { TimeLimitExceeded, flattenHeaders, openHttpClient } from '../http.ts'
import { readInto } from '../response-body.ts'
import type { HttpClient, HttpRequest } from '../http.ts'
import { classifyResponse } from './classify.ts'
import type { RouterResponse } from './classify.ts'
import { parseCatalogue, parseEndpoints, parseKeyRequests } from './facts.ts'

export interface RouterOptions {
  /** API base without a trailing slash. The key is sent to this base only. */
  base: string
  key: string | null
  /** Identifies the product to the service: the URL under which it is used. */
  referer: string
  userAgent: string
  clock: Clock
  /** Time limit of a model's whole response, in milliseconds. */
  chatTimeoutMs?: number
}

/** A model that needs longer for a short prompt counts as unavailable. */
const CHAT_TIMEOUT_MS = 90_000
const FACTS_TIMEOUT_MS = 20_000

const CATALOGUE_MAX_BYTES = 32 * 1024 * 1024
const RESPONSE_MAX_BYTES = 1024 * 1024

/**
 * Opens the routing service over HTTP. Chat completions are requested as a whole, not as a stream: the suite grades
 * whole answers and measures the latency of the whole response.
 */
export function openRouter(options: RouterOptions): ModelRouter & { close: () => Promise<void> } {
  const { base, key, clock, chatTimeoutMs = CHAT_TIMEOUT_MS } = options
  const http = openHttpClient({ connect: { timeout: 10_000 } })
  const headers: Record<string, string> = {
    accept: 'application/json',
    'user-agent': options.userAgent,
    'http-referer': options.referer,
    'x-openrouter-title': 'dash',
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
  }
  const sendRedacted = async (request: RouterRequest, maxBytes: number): Promise<TimedResponse> =>
    redactKey(await send(http, request, maxBytes, clock), key)
  const getFacts = (path: string, signal: AbortSignal, maxBytes = RESPONSE_MAX_BYTES) =>
    sendRedacted({ url: `${base}${path}`, headers, timeoutMs: FACTS_TIMEOUT_MS, signal }, maxBytes)
  return {
    hasKey: key !== null,
    catalogue: async (signal) =>
      toCatalogue(await getFacts('/models', signal, CATALOGUE_MAX_BYTES), `${base}/models`),
    async key(signal) {
      const response = await getFacts('/key', signal)
      return response.status === 200
        ? { facts: parseKeyRequests(response.body) }
        : { failed: classifyResponse(response) }
    },
    endpoints: async (model, signal) =>
      toEndpointRecord(await getFacts(`/models/${pathOf(model)}/endpoints`, signal), model),
    async chat(call, signal) {
      const response = await sendRedacted(
        {
          url: `${base}/chat/completions`,
          // A cached answer would have no latency, and would not describe the model of today.
          headers: { ...headers, 'content-type': 'application/json', 'x-openrouter-cache': 'false' },
          body: JSON.stringify(chatBody(call)),
          timeoutMs: chatTimeoutMs,
          signal,
        },
        RESPONSE_MAX_BYTES,
      )
      return { ...classifyResponse(response), endedAt: response.endedAt, latencyMs: response.latencyMs }
    },
    close: () => http.close(),
  }
}

function toCatalogue({ status, ending, body }: RouterResponse, url: string): Catalogue {
  if (status !== 200 || ending !== 'whole') {
    const noResponse = ending === 'timeout' ? 'no response in time' : 'cannot be reached'
    const reason = status === null ? noResponse : `responded with ${status}`
    throw unavailable(`${url}: ${reason}; try again later, or correct OPENROUTER_BASE_URL`)
  }
  const catalogue = parseCatalogue(body)
  if (catalogue === null) throw unavailable(`${url} is not a model catalogue; correct OPENROUTER_BASE_URL`)
  return catalogue
}

function unavailable(detail: string): Refusal {
  return new Refusal('source_unavailable', detail)
}

/** Converts a response about endpoints. A model unknown to the service has no usable endpoint. */
function toEndpointRecord(response: RouterResponse, model: string): RouterFacts<EndpointRecord> {
  const { status, ending, body, endedAt: checkedAt } = response
  if (status === 401) return { failed: classifyResponse(response) }
  if (status === 404) return { facts: { model, checkedAt, usable: false, latencyMs: null } }
  const health = status === 200 && ending === 'whole' ? parseEndpoints(body) : null
  return { facts: health && { model, checkedAt, ...health } }
}

/** Removes the key from a response, which may repeat it: previews of responses are published. */
function redactKey(response: TimedResponse, key: string | null): TimedResponse {
  if (key === null) return response
  const redact = (text: string): string => text.replaceAll(key, '(key)')
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, redact(value)]),
  )
  return { ...response, headers, body: redact(response.body) }
}

/** Encodes a model id for a path and keeps its slash. */
function pathOf(model: string): string {
  return model.split('/').map(encodeURIComponent).join('/')
}

/**
 * Request body for one model, without fallback models, at a price of zero: the service refuses a request that would
 * cost anything.
 */
function chatBody({ model, prompt, maxTokens, temperature, lowEffort }: ChatCall): Record<string, unknown> {
  const tools = prompt.tools.map((tool) => ({ type: 'function', function: tool }))
  return {
    model,
    messages: prompt.messages,
    ...(tools.length > 0 ? { tools } : {}),
    max_tokens: maxTokens,
    ...(temperature ? { temperature: 0 } : {}),
    ...(lowEffort ? { reasoning: { effort: 'low' } } : {}),
    stream: false,
    provider: { max_price: { prompt: 0, completion: 0 } },
  }
}

type RouterRequest = HttpRequest & { signal: AbortSignal }

interface TimedResponse extends RouterResponse {
  latencyMs: number
}

/**
 * Sends a request and reads as much of its response as arrives. Redirects are not followed.
 *
 * @throws only the signal's reason: every other failure is reported as the `ending` of the response
 */
async function send(
  http: HttpClient,
  request: RouterRequest,
  maxBytes: number,
  clock: Clock,
): Promise<TimedResponse> {
  const startedAt = performance.now()
  let head: Pick<RouterResponse, 'status' | 'headers'> = { status: null, headers: {} }
  const chunks: Uint8Array[] = []
  let failed: RouterResponse['ending'] | null = null
  try {
    await http.exchange(request, async (response) => {
      head = { status: response.statusCode, headers: flattenHeaders(response.headers) }
      await readInto(chunks, response.body, maxBytes)
    })
  } catch (error) {
    request.signal.throwIfAborted()
    failed = error instanceof TimeLimitExceeded ? 'timeout' : head.status === null ? 'unreachable' : 'cut'
  }
  const latencyMs = Math.round(performance.now() - startedAt)
  const bytes = Buffer.concat(chunks)
  const ending = failed ?? (bytes.byteLength > maxBytes ? 'too-large' : 'whole')
  const body = new TextDecoder().decode(bytes.subarray(0, maxBytes))
  return { ...head, body, ending, endedAt: clock(), latencyMs }
}
