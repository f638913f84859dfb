import { H3 } from 'h3'
import type { H3Event } from 'h3'
import type { NewsSource } from '../../domain/feed/source.ts'
import { drawItems, solutions } from '../../domain/models/lite/items.ts'
import type { LiteItems } from '../../domain/models/lite/items.ts'
import type { ModelResponse } from '../../domain/models/lite/suite.ts'
import type { Clock } from '../../domain/ports.ts'
import { parseJson } from '../../domain/text.ts'
import { dayOf } from '../../domain/time.ts'
import { respondJson, respondText } from '../respond.ts'

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

interface RouterRequest {
  method: string
  /** Below the API base. */
  path: string
  authorized: boolean
  body: string
}

interface RouterResponse {
  status: number
  body: unknown
}

/** The demo's models: one solves every task, the others do not. */
export const DEMO_MODELS: readonly ScriptedModel[] = [
  scripted('orchard/quince-large', 'Orchard: Quince Large', 'solver', 900),
  scripted('harbour/kite-mini', 'Harbour: Kite Mini', 'guesser', 700),
  scripted('millstone/granite-chat', 'Millstone: Granite Chat', 'talker', 1_400),
  scripted('lantern/ember-small', 'Lantern: Ember Small', 'silent', 2_600),
]

const REQUESTS_PER_DAY = 50

const HEADERS = { 'cache-control': 'no-store', 'x-dash-demo': 'true' }

function scripted(id: string, name: string, behaviour: Behaviour, latencyMs: number): ScriptedModel {
  const size = behaviour === 'solver' ? 262_144 : 131_072
  return { id: `${id}:free`, name, behaviour, latencyMs, contextLength: size, maxCompletionTokens: size / 8 }
}

/**
 * A routing service with scripted models, which respond to the suite of the current day with its solutions, so that an
 * evaluation runs as against the real service. Chat requests are counted by UTC day.
 */
export function scriptedRouter(
  models: readonly ScriptedModel[],
  clock: Clock,
): (request: RouterRequest) => RouterResponse {
  const requestsByDay = new Map<string, number>()
  return ({ method, path, authorized, body }) => {
    if (method === 'GET' && path === '/models') return { status: 200, body: catalogueOf(models) }
    if (!authorized) return failure(401, 'No auth credentials found')
    const day = dayOf(clock())
    const count = requestsByDay.get(day) ?? 0
    if (method === 'GET' && path === '/key') return { status: 200, body: keyOf(count) }
    const model = models.find(({ id }) => path === `/models/${id}/endpoints`)
    if (method === 'GET' && model) return { status: 200, body: endpointsOf(model) }
    if (method !== 'POST' || path !== '/chat/completions') return failure(404, 'Not found')
    requestsByDay.set(day, count + 1)
    return completionOf(models, body, clock)
  }
}

/** The scripted routing service as an application; every response is marked as the demo's. */
export function demoRouterApp(models: readonly ScriptedModel[], clock: Clock): H3 {
  const app = new H3({ silent: true })
  const respond = scriptedRouter(models, clock)
  app.all('/**', async (event) => {
    const text = event.req.method === 'POST' ? await event.req.text() : ''
    const { status, body } = respond({
      method: event.req.method,
      path: decodeURIComponent(event.url.pathname),
      authorized: event.req.headers.get('authorization') !== null,
      body: text,
    })
    if (isStream(text) && status === 200 && event.req.method === 'POST') return respondEvents(event, body)
    return respondJson(event, status, HEADERS, body)
  })
  return app
}

function isStream(body: string): boolean {
  const request = parseJson(body)
  return typeof request === 'object' && request !== null && 'stream' in request && request.stream === true
}

/** Sends a completion as one event and the end mark. */
function respondEvents(event: H3Event, body: unknown): Response {
  const { choices, ...completion } = body as { choices: { message: object }[] }
  const deltas = choices.map(({ message, ...choice }) => ({ ...choice, delta: message }))
  const chunk = JSON.stringify({ ...completion, object: 'chat.completion.chunk', choices: deltas })
  return respondText(event, 200, HEADERS, 'text/event-stream', `data: ${chunk}\n\ndata: [DONE]\n\n`)
}

function failure(code: number, message: string): RouterResponse {
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

function keyOf(used: number): unknown {
  const remaining = Math.max(0, REQUESTS_PER_DAY - used)
  return { data: { label: 'demo', free_model_daily_requests: { limit: REQUESTS_PER_DAY, used, remaining } } }
}

function endpointsOf({ id, latencyMs }: ScriptedModel): unknown {
  const latency = { p50: latencyMs, p75: latencyMs * 1.2, p90: latencyMs * 1.5, p99: latencyMs * 3 }
  const endpoint = { provider_name: 'Demo', status: 0, uptime_last_30m: 100, latency_last_30m: latency }
  return { data: { id, endpoints: [endpoint] } }
}

function completionOf(models: readonly ScriptedModel[], body: string, clock: Clock): RouterResponse {
  const request = JSON.parse(body) as { model: string; tools?: unknown[]; messages?: { content: unknown }[] }
  const { model: id, tools, messages = [] } = request
  const model = models.find((each) => each.id === id)
  if (!model) return failure(404, `No endpoints found for ${id}.`)
  const items = drawItems(dayOf(clock()))
  const kind = tools === undefined ? 'text' : 'tool'
  const isSuitePrompt = messages.at(-1)?.content === items.prompts[kind].messages.at(-1)?.content
  const response = isSuitePrompt ? responseOf(model.behaviour, kind, items) : GREETING
  const calls = response.toolCalls.map((call, at) => ({ id: `call_${at}`, type: 'function', function: call }))
  const content = { role: 'assistant', content: response.text }
  const message = calls.length > 0 ? { ...content, tool_calls: calls } : content
  const choices = [{ index: 0, finish_reason: response.finishReason, message }]
  return { status: 200, body: { id: 'gen-demo', object: 'chat.completion', model: id, choices } }
}

/** Response to any other prompt, such as that of the snippets on the page. */
const GREETING: ModelResponse = { text: 'Hello.', toolCalls: [], finishReason: 'stop' }

function responseOf(behaviour: Behaviour, kind: 'tool' | 'text', items: LiteItems): ModelResponse {
  const solved = solutions(items)[kind]
  const textResponse = (text: string): ModelResponse => ({ text, toolCalls: [], finishReason: 'stop' })
  if (behaviour === 'solver') return solved
  if (behaviour === 'silent') return textResponse('I would rather talk about the weather.')
  if (behaviour === 'talker') return kind === 'tool' ? textResponse(JSON.stringify(solved.toolCalls)) : solved
  return kind === 'tool' ? solved : { ...solved, text: solved.text.replace(/TIME: .*$/, 'TIME: 00:00:00') }
}

/** Titles that the demo's sources confirm, by source and source id. */
export type DemoTitles = Readonly<Record<NewsSource, Readonly<Record<string, string>>>>

/** Path prefix of each source's imitated API. */
export const DEMO_SOURCE_PATHS = { hn: '/hn', lobsters: '/lobsters', lesswrong: '/lesswrong' } as const

/**
 * Imitates the three news sources while the demo is prepared, so that titles are requested as from the real ones. Every
 * response is marked as the demo's.
 */
export function demoSourceApp(titles: DemoTitles): H3 {
  const app = new H3({ silent: true })
  const itemOf = (source: NewsSource, id: string, item: object): object | null => {
    const title = titles[source][id]
    return title === undefined ? null : { ...item, title, demo: true }
  }
  app.get(`${DEMO_SOURCE_PATHS.hn}/item/:file`, (event) => {
    const id = idOf(event)
    return respondJson(event, 200, HEADERS, itemOf('hn', id, { id: Number(id), type: 'story' }))
  })
  app.get(`${DEMO_SOURCE_PATHS.lobsters}/s/:file`, (event) => {
    const id = idOf(event)
    return respondJson(event, 200, HEADERS, itemOf('lobsters', id, { short_id: id }))
  })
  app.post(DEMO_SOURCE_PATHS.lesswrong, async (event) => {
    const { variables } = JSON.parse(await event.req.text()) as { variables: { id: string } }
    const result = itemOf('lesswrong', variables.id, { _id: variables.id })
    return respondJson(event, 200, HEADERS, { data: { post: { result } } })
  })
  return app
}

function idOf(event: H3Event): string {
  return (event.context.params?.['file'] ?? '').replace(/\.json$/, '')
}
