import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../../../src/domain/ports.ts'
import { dayOf, startOfDay, DAY_MS } from '../../../src/domain/time.ts'
import { drawItems } from '../../../src/jobs/models/lite-suite.ts'
import type { ModelResponse } from '../../../src/domain/models/lite/suite.ts'
import { solutions } from './lite-responses.ts'
import { localSource } from '../../support/local-source.ts'
import type { SourceRequest } from '../../support/local-source.ts'

export interface ScriptedModel {
  id: string
  /**
   * `solver` solves everything, `guesser` gets the time wrong, `talker` prints its tool calls as text, `silent` returns
   * nothing useful.
   */
  behaviour: 'solver' | 'guesser' | 'talker' | 'silent'
  maxCompletionTokens: number
}

/** One chat request to the service. */
interface ChatRequest {
  at: number
  model: string
  kind: 'tool' | 'text'
  /** Number of the request to this model on its day, from 1. */
  number: number
  body: Record<string, unknown>
}

interface Answer {
  status: number
  body: unknown
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

const NO_PRICE = '"max_price":{"prompt":0,"completion":0}'

/** An error response of the service. */
export const errorOf = (code: number, message: string, metadata: object = {}): Answer => ({
  status: code,
  body: { error: { code, message, metadata } },
})

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
    const body = JSON.parse(request.body) as ChatRequest['body']
    const model = String(body['model'])
    const today = state.chats.filter(({ at }) => dayOf(at) === dayOf(clock()))
    const number = today.filter((each) => each.model === model).length + 1
    const kind = body['tools'] === undefined ? 'text' : 'tool'
    const chat: ChatRequest = { at: clock(), model, kind, number, body }
    const recent = state.chats.filter(({ at }) => at > chat.at - MINUTE_MS)
    const limited = limitMet(chat.at, recent, today.length, options)
    state.chats.push(chat)
    const broken: [boolean, string][] = [
      [recent.length >= 20, 'more than 20 requests within a minute'],
      [number > 3, `request ${number} of the day to ${model}`],
      [!JSON.stringify(body['provider']).includes(NO_PRICE), 'a price'],
      [body['models'] !== undefined || body['route'] !== undefined, 'a list of fallbacks'],
      [request.headers['x-openrouter-cache'] !== 'false', 'an answer from a cache is allowed'],
      [open > 0, 'two open calls'],
    ]
    state.breaches.push(...broken.flatMap(([isBroken, breach]) => (isBroken ? [breach] : [])))
    open += 1
    // Long enough for concurrent calls to overlap.
    for (let turn = 0; turn < 20; turn += 1) await nextTurn()
    open -= 1
    return send(response, limited ?? options.fault?.(chat) ?? completionOf(chat, options))
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

function limitMet(
  now: number,
  recent: readonly ChatRequest[],
  today: number,
  { perMinute = 20, perDay = 50, usedByOthers = 0 }: SimulatorOptions,
): Answer | null {
  const limit = (name: string, max: number, reset: number, source: string): Answer =>
    errorOf(429, `Rate limit exceeded: free-models-per-${name}`, {
      headers: {
        'X-RateLimit-Limit': `${max}`,
        'X-RateLimit-Remaining': '0',
        'X-RateLimit-Reset': `${reset}`,
      },
      limit_source: `openrouter_free_tier_${source}`,
    })
  if (today + usedByOthers >= perDay) {
    const message = 'day. Add 10 credits to unlock 1000 free model requests per day'
    return limit(message, perDay, startOfDay(dayOf(now)) + DAY_MS, 'daily')
  }
  if (recent.length < perMinute) return null
  return limit('min. ', perMinute, (recent[0]?.at ?? now) + MINUTE_MS, 'minute')
}

/** The response to a request for facts: the catalogue, the key, or the endpoints of a model. */
function factsOf(
  path: string,
  isAuthorized: boolean,
  { chats }: RouterSimulator,
  { models, clock, perDay = 50, usedByOthers = 0 }: SimulatorOptions,
): Answer {
  if (path === '/models') return { status: 200, body: { data: models.map(catalogueRow) } }
  if (!isAuthorized) return errorOf(401, 'No auth credentials found')
  if (path === '/key') {
    const used = usedByOthers + chats.filter(({ at }) => dayOf(at) === dayOf(clock())).length
    const requests = { limit: perDay, used, remaining: Math.max(0, perDay - used) }
    return { status: 200, body: { data: { label: 'test', free_model_daily_requests: requests } } }
  }
  const id = models.find((model) => path === `/models/${model.id}/endpoints`)?.id
  if (id === undefined) return errorOf(404, 'Not found')
  const latency = { p50: 500, p75: 600, p90: 750, p99: 1500 }
  const endpoint = { provider_name: 'Test', status: 0, uptime_last_30m: 100, latency_last_30m: latency }
  return { status: 200, body: { data: { id, endpoints: [endpoint] } } }
}

function catalogueRow({ id, maxCompletionTokens }: ScriptedModel): unknown {
  return {
    id,
    name: `Model ${id} (free)`,
    created: 1_767_225_600,
    description: 'A scripted model.',
    context_length: 131_072,
    architecture: { modality: 'text->text', input_modalities: ['text'], output_modalities: ['text'] },
    pricing: { prompt: '0', completion: '0' },
    top_provider: { context_length: 131_072, max_completion_tokens: maxCompletionTokens },
    supported_parameters: ['max_tokens', 'temperature', 'tools', 'tool_choice', 'stop', 'seed'],
    expiration_date: null,
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
  const { status, body } = answer
  const [type, text] =
    typeof body === 'string' ? ['text/html', body] : ['application/json', JSON.stringify(body)]
  response.writeHead(status, { 'content-type': type }).end(text)
}

/** Models of a service, `count` of them at vendors of the given names in turn; the first solves everything. */
export function scriptedModels(
  count: number,
  vendors: readonly string[] = ['alder', 'birch', 'cedar', 'dogwood', 'elm', 'fir'],
): ScriptedModel[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${vendors[index % vendors.length]}/model-${index + 1}:free`,
    behaviour: (['solver', 'guesser', 'talker', 'silent'] as const)[index % 4] ?? 'silent',
    maxCompletionTokens: 16_384,
  }))
}

function completionOf({ model: id, kind, body }: ChatRequest, { models, clock }: SimulatorOptions): Answer {
  const { messages = [] } = body as { messages?: { content: unknown }[] }
  const behaviour = models.find((each) => each.id === id)?.behaviour
  if (!behaviour) return errorOf(404, `No endpoints found for ${id}.`)
  const items = drawItems(dayOf(clock()))
  const isOfSuite = messages.at(-1)?.content === items.prompts[kind].messages.at(-1)?.content
  const response = isOfSuite ? responseOf(behaviour, kind, solutions(items)[kind]) : saying('Hello.')
  const calls = response.toolCalls.map((call, at) => ({ id: `call_${at}`, type: 'function', function: call }))
  const content = { role: 'assistant', content: response.text }
  const message = calls.length > 0 ? { ...content, tool_calls: calls } : content
  const choices = [{ index: 0, finish_reason: response.finishReason, message }]
  return { status: 200, body: { id: 'gen-test', object: 'chat.completion', model: id, choices } }
}

const saying = (text: string): ModelResponse => ({ text, toolCalls: [], finishReason: 'stop' })

function responseOf(
  behaviour: ScriptedModel['behaviour'],
  kind: 'tool' | 'text',
  solved: ModelResponse,
): ModelResponse {
  if (behaviour === 'silent') return saying('I would rather talk about the weather.')
  if (behaviour === 'talker' && kind === 'tool') return saying(JSON.stringify(solved.toolCalls))
  if (behaviour !== 'guesser' || kind === 'tool') return solved
  return { ...solved, text: solved.text.replace(/TIME: .*$/, 'TIME: 00:00:00') }
}
