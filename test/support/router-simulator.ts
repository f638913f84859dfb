import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../../src/domain/ports.ts'
import { dayOf, startOfDay, DAY_MS } from '../../src/domain/time.ts'
import { localSource } from './local-source.ts'
import type { SourceRequest } from './local-source.ts'
import { scriptedRouter } from './scripted-router.ts'
import type { ScriptedModel } from './scripted-router.ts'

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

/** A fault instead of a response. */
type Fault =
  | { status: number; body: unknown; headers?: Record<string, string> }
  /** Half of a response, then a cut connection. */
  | 'cut'
  /** No response. */
  | 'hang'
  /** A response without an end. */
  | 'endless'

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

/** Starts the service; it is closed when the test ends. */
export async function startRouter(options: SimulatorOptions): Promise<RouterSimulator> {
  const { models, clock } = options
  const respond = scriptedRouter(models, clock)
  const state: RouterSimulator = { url: '', chats: [], facts: [], breaches: [] }
  let open = 0

  const serve = async (request: SourceRequest, response: ServerResponse): Promise<void> => {
    const { method, target, headers, body } = request
    const path = decodeURIComponent(new URL(target, 'http://service').pathname).replace('/api/v1', '')
    const authorized = headers.authorization === 'Bearer test-key'
    const routerRequest = { method, path, authorized, body }
    if (path !== '/chat/completions') {
      state.facts.push(path)
      const fault = options.factFault?.(path) ?? null
      if (fault !== null) return misbehave(fault, response)
      if (path === '/key' && authorized) return send(response, 200, keyOf(state, options))
      const { status, body: facts } = respond(routerRequest)
      return send(response, status, facts)
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
    const fault = limitFault ?? options.fault?.(chat) ?? null
    if (fault !== null) return misbehave(fault, response)
    const routerResponse = respond(routerRequest)
    return send(response, routerResponse.status, routerResponse.body)
  }

  const { url } = await localSource((routerRequest, response) =>
    serve(routerRequest, response).catch((error: unknown) => {
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
): Fault | null {
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

function limit(message: string, max: number, reset: number, source: string): Fault {
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

function misbehave(fault: Fault, response: ServerResponse): void {
  if (fault === 'hang') return
  if (fault === 'cut' || fault === 'endless') {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{"choices":[{"message":{"content":"half of')
    if (fault === 'cut') setImmediate(() => response.destroy())
    else pour(response)
    return
  }
  send(response, fault.status, fault.body, fault.headers)
}

function pour(response: ServerResponse): void {
  const more = (): void => {
    while (!response.destroyed && response.write(' '.repeat(65_536)));
    if (!response.destroyed) response.once('drain', more)
  }
  more()
}

function send(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const type = typeof body === 'string' ? 'text/html' : 'application/json'
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
