import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../../src/domain/ports.ts'
import { dayOf, startOfDay, DAY_MS } from '../../src/domain/time.ts'
import { drawItems } from '../../src/jobs/models/lite-suite.ts'
import type { LiteItems } from '../../src/jobs/models/lite-suite.ts'
import type { ModelResponse } from '../../src/domain/models/lite/suite.ts'
import { solutions } from '../jobs/models/lite-responses.ts'
import { localSource } from './local-source.ts'
import type { SourceRequest } from './local-source.ts'

/**
 * Behaviour of a scripted model: `solver` solves everything, `talker` prints its tool calls as text, `guesser` gets the
 * time wrong, `silent` returns nothing useful.
 */
type Behaviour = 'solver' | 'talker' | 'guesser' | 'silent'

export interface ScriptedModel {
  id: string
  name: string
  behaviour: Behaviour
  contextLength: number
  maxCompletionTokens: number
  /** Reported median latency, in milliseconds. */
  latencyMs: number
}

/** One chat request to the service. */
interface ChatRequest {
  at: number
  model: string
  vendor: string
  kind: 'tool' | 'text'
  /** Number of the request to this model on its day, from 1. */
  number: number
  headers: SourceRequest['headers']
  body: Record<string, unknown>
}

interface Answer {
  status: number
  body: unknown
  headers?: Record<string, string>
}

/** A fault instead of a response: another one, half of one and a cut connection, or none. */
type Fault = Answer | 'cut' | 'hang'

export interface SimulatorOptions {
  models: readonly ScriptedModel[]
  clock: Clock
  /** The account's limit of requests in any 60 s. */
  perMinute?: number
  /** The account's limit of requests per UTC day. */
  perDay?: number
  /** The day's requests used by others, as the key endpoint reports. */
  usedByOthers?: number
  /** A fault for a chat request, or null. */
  fault?: (request: ChatRequest) => Fault | null
  /** A fault for any other request, by its path. */
  factFault?: (path: string) => Fault | null
}

/** The service over a real socket, with a log of its requests and of broken rules. */
export interface RouterSimulator {
  /** API base. */
  url: string
  chats: ChatRequest[]
  /** Paths of the other requests. */
  facts: string[]
  /** Broken rules, one line each; checked after every run. */
  breaches: string[]
}

const MINUTE_MS = 60_000
const REQUESTS_PER_MODEL = 3
const MAX_PER_MINUTE = 20

/**
 * Starts a routing service with scripted models, which respond to the suite of the current day with its solutions, so
 * that an evaluation runs as against the real service. It is closed when the test ends.
 */
export async function startRouter(options: SimulatorOptions): Promise<RouterSimulator> {
  const { clock } = options
  const state: RouterSimulator = { url: '', chats: [], facts: [], breaches: [] }
  let open = 0

  const serve = async (request: SourceRequest, response: ServerResponse): Promise<void> => {
    const path = decodeURIComponent(new URL(request.target, 'http://service').pathname).replace('/api/v1', '')
    if (path !== '/chat/completions') {
      state.facts.push(path)
      const isAuthorized = request.headers.authorization === 'Bearer test-key'
      return send(response, options.factFault?.(path) ?? factsOf(path, isAuthorized, state, options))
    }
    const chat = chatOf(request, state.chats, clock())
    const limitFault = limitMet(chat, state.chats, options)
    state.chats.push(chat)
    recordBreaches(state, chat)
    if (open > 0) state.breaches.push('two open calls')
    open += 1
    // Long enough for concurrent calls to overlap.
    for (let turn = 0; turn < 20; turn += 1) await nextTurn()
    open -= 1
    return send(response, limitFault ?? options.fault?.(chat) ?? completionOf(chat, options))
  }

  const { url } = await localSource((request, response) =>
    serve(request, response).catch((error: unknown) => {
      state.breaches.push(`the service failed: ${String(error)}`)
      response.destroy()
    }),
  )
  state.url = `${url}/api/v1`
  return state
}

function chatOf(
  { headers, body: text }: SourceRequest,
  before: readonly ChatRequest[],
  at: number,
): ChatRequest {
  const body = JSON.parse(text) as Record<string, unknown>
  const model = String(body['model'])
  const sameDay = before.filter((each) => each.model === model && dayOf(each.at) === dayOf(at))
  return {
    at,
    model,
    vendor: model.split('/')[0] ?? '',
    kind: body['tools'] === undefined ? 'text' : 'tool',
    number: sameDay.length + 1,
    headers,
    body,
  }
}

/** Records every rule that a request breaks. */
function recordBreaches({ chats, breaches }: RouterSimulator, chat: ChatRequest): void {
  const recent = chats.filter(({ at }) => at > chat.at - MINUTE_MS).length
  if (recent > MAX_PER_MINUTE) breaches.push(`${recent} requests within a minute`)
  if (chat.number > REQUESTS_PER_MODEL) breaches.push(`request ${chat.number} of the day to ${chat.model}`)
  const { body, headers } = chat
  const price = JSON.stringify((body['provider'] as Record<string, unknown> | undefined)?.['max_price'])
  if (price !== '{"prompt":0,"completion":0}') breaches.push(`a price of ${price}`)
  if (body['models'] !== undefined || body['route'] !== undefined) breaches.push('a list of fallbacks')
  if (headers['x-openrouter-cache'] !== 'false') breaches.push('an answer from a cache is allowed')
}

function limitMet(
  chat: ChatRequest,
  before: readonly ChatRequest[],
  options: SimulatorOptions,
): Answer | null {
  const { perMinute = MAX_PER_MINUTE, perDay = 50, usedByOthers = 0 } = options
  const today = before.filter(({ at }) => dayOf(at) === dayOf(chat.at)).length
  if (today + usedByOthers >= perDay) {
    const reset = startOfDay(dayOf(chat.at)) + DAY_MS
    return limit(
      'free-models-per-day. Add 10 credits to unlock 1000 free model requests per day',
      perDay,
      reset,
      'openrouter_free_tier_daily',
    )
  }
  const recent = before.filter(({ at }) => at > chat.at - MINUTE_MS)
  if (recent.length < perMinute) return null
  return limit(
    'free-models-per-min. ',
    perMinute,
    (recent[0]?.at ?? chat.at) + MINUTE_MS,
    'openrouter_free_tier_minute',
  )
}

function limit(message: string, max: number, reset: number, source: string): Answer {
  const headers = {
    'X-RateLimit-Limit': `${max}`,
    'X-RateLimit-Remaining': '0',
    'X-RateLimit-Reset': `${reset}`,
  }
  const metadata = { headers, limit_source: source }
  return {
    status: 429,
    headers,
    body: { error: { code: 429, message: `Rate limit exceeded: ${message}`, metadata } },
  }
}

/** The response to a request for facts: the catalogue, the key, or the endpoints of a model. */
function factsOf(
  path: string,
  isAuthorized: boolean,
  state: RouterSimulator,
  options: SimulatorOptions,
): Answer {
  const { models } = options
  if (path === '/models') return { status: 200, body: catalogueOf(models) }
  if (!isAuthorized) return failure(401, 'No auth credentials found')
  if (path === '/key') return { status: 200, body: keyOf(state, options) }
  const model = models.find(({ id }) => path === `/models/${id}/endpoints`)
  return model ? { status: 200, body: endpointsOf(model) } : failure(404, 'Not found')
}

function keyOf(
  { chats }: RouterSimulator,
  { perDay = 50, usedByOthers = 0, clock }: SimulatorOptions,
): unknown {
  const used = usedByOthers + chats.filter(({ at }) => dayOf(at) === dayOf(clock())).length
  return {
    data: {
      label: 'test',
      free_model_daily_requests: { limit: perDay, used, remaining: Math.max(0, perDay - used) },
    },
  }
}

function send(response: ServerResponse, answer: Fault): void {
  if (answer === 'hang') return
  if (answer === 'cut') {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{"choices":[{"message":{"content":"half of')
    setImmediate(() => response.destroy())
    return
  }
  const { status, body, headers } = answer
  const [type, text] =
    typeof body === 'string' ? ['text/html', body] : ['application/json', JSON.stringify(body)]
  response.writeHead(status, { 'content-type': type, ...headers }).end(text)
}

/** Models of a service, `count` of them at vendors of the given names in turn; the first solves everything. */
export function scriptedModels(
  count: number,
  vendors: readonly string[] = ['alder', 'birch', 'cedar', 'dogwood', 'elm', 'fir'],
): ScriptedModel[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${vendors[index % vendors.length]}/model-${index + 1}:free`,
    name: `Model ${index + 1}`,
    behaviour: (['solver', 'guesser', 'talker', 'silent'] as const)[index % 4] ?? 'silent',
    contextLength: 131_072,
    maxCompletionTokens: 16_384,
    latencyMs: 500 + index,
  }))
}

function failure(code: number, message: string): Answer {
  return { status: code, body: { error: { code, message } } }
}

function catalogueOf(models: readonly ScriptedModel[]): unknown {
  const data = models.map(({ id, name, contextLength, maxCompletionTokens }) => ({
    id,
    canonical_slug: id.replace(':free', ''),
    name: `${name} (free)`,
    created: 1_767_225_600,
    description: 'A scripted model.',
    context_length: contextLength,
    architecture: { modality: 'text->text', input_modalities: ['text'], output_modalities: ['text'] },
    pricing: { prompt: '0', completion: '0' },
    top_provider: { context_length: contextLength, max_completion_tokens: maxCompletionTokens },
    supported_parameters: ['max_tokens', 'temperature', 'tools', 'tool_choice', 'stop', 'seed'],
    expiration_date: null,
  }))
  return { data, total_count: data.length, links: { next: null } }
}

function endpointsOf({ id, latencyMs }: ScriptedModel): unknown {
  const latency = { p50: latencyMs, p75: latencyMs * 1.2, p90: latencyMs * 1.5, p99: latencyMs * 3 }
  const endpoint = { provider_name: 'Test', status: 0, uptime_last_30m: 100, latency_last_30m: latency }
  return { data: { id, endpoints: [endpoint] } }
}

function completionOf({ model: id, kind, body }: ChatRequest, { models, clock }: SimulatorOptions): Answer {
  const { messages = [] } = body as { messages?: { content: unknown }[] }
  const model = models.find((each) => each.id === id)
  if (!model) return failure(404, `No endpoints found for ${id}.`)
  const items = drawItems(dayOf(clock()))
  const isSuitePrompt = messages.at(-1)?.content === items.prompts[kind].messages.at(-1)?.content
  const response = isSuitePrompt ? responseOf(model.behaviour, kind, items) : GREETING
  const calls = response.toolCalls.map((call, at) => ({ id: `call_${at}`, type: 'function', function: call }))
  const content = { role: 'assistant', content: response.text }
  const message = calls.length > 0 ? { ...content, tool_calls: calls } : content
  const choices = [{ index: 0, finish_reason: response.finishReason, message }]
  return { status: 200, body: { id: 'gen-test', object: 'chat.completion', model: id, choices } }
}

/** Response to any other prompt. */
const GREETING: ModelResponse = { text: 'Hello.', toolCalls: [], finishReason: 'stop' }

function responseOf(behaviour: Behaviour, kind: 'tool' | 'text', items: LiteItems): ModelResponse {
  const solved = solutions(items)[kind]
  const textResponse = (text: string): ModelResponse => ({ text, toolCalls: [], finishReason: 'stop' })
  if (behaviour === 'solver') return solved
  if (behaviour === 'silent') return textResponse('I would rather talk about the weather.')
  if (behaviour === 'talker') return kind === 'tool' ? textResponse(JSON.stringify(solved.toolCalls)) : solved
  return kind === 'tool' ? solved : { ...solved, text: solved.text.replace(/TIME: .*$/, 'TIME: 00:00:00') }
}
