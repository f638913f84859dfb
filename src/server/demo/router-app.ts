import { H3 } from 'h3'
import type { H3Event } from 'h3'
import type { NewsSource } from '../../domain/feed/source.ts'
import { drawItems, solutions } from '../../domain/models/lite/items.ts'
import type { LiteItems } from '../../domain/models/lite/items.ts'
import type { ModelResponse } from '../../domain/models/lite/suite.ts'
import type { Clock } from '../../domain/ports.ts'
import { dayOf } from '../../domain/time.ts'
import { respondJson } from '../respond.ts'

/**
 * What a scripted model is like: `solver` answers everything, `talker` prints its tool calls as text, `guesser` gets the
 * time wrong, `silent` says nothing of use.
 */
type Character = 'solver' | 'talker' | 'guesser' | 'silent'

export interface ScriptedModel {
  id: string
  name: string
  character: Character
  contextLength: number
  maxCompletionTokens: number
  /** Median latency its endpoint tells, in milliseconds. */
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

/** The demo's models: one that is good at everything, and others that are not. */
export const DEMO_MODELS: readonly ScriptedModel[] = [
  scripted('orchard/quince-large', 'Orchard: Quince Large', 'solver', 900),
  scripted('harbour/kite-mini', 'Harbour: Kite Mini', 'guesser', 700),
  scripted('millstone/granite-chat', 'Millstone: Granite Chat', 'talker', 1_400),
  scripted('lantern/ember-small', 'Lantern: Ember Small', 'silent', 2_600),
]

const REQUESTS_A_DAY = 50

const HEADERS = { 'cache-control': 'no-store', 'x-dash-demo': 'true' }

function scripted(id: string, name: string, character: Character, latencyMs: number): ScriptedModel {
  const size = character === 'solver' ? 262_144 : 131_072
  return { id: `${id}:free`, name, character, latencyMs, contextLength: size, maxCompletionTokens: size / 8 }
}

/**
 * The routing service with scripted models, which answer the suite of the current day by its own solutions, so that an
 * evaluation runs as it would against the real one. Counts its chat requests by UTC day.
 */
export function scriptedRouter(
  models: readonly ScriptedModel[],
  clock: Clock,
): (request: RouterRequest) => RouterResponse {
  const used = new Map<string, number>()
  return ({ method, path, authorized, body }) => {
    if (method === 'GET' && path === '/models') return { status: 200, body: catalogueOf(models) }
    if (!authorized) return failure(401, 'No auth credentials found')
    const day = dayOf(clock())
    const count = used.get(day) ?? 0
    if (method === 'GET' && path === '/key') return { status: 200, body: keyOf(count) }
    const model = models.find(({ id }) => path === `/models/${id}/endpoints`)
    if (method === 'GET' && model) return { status: 200, body: endpointsOf(model) }
    if (method !== 'POST' || path !== '/chat/completions') return failure(404, 'Not found')
    used.set(day, count + 1)
    return completionOf(models, body, clock)
  }
}

/** The scripted service as an application; every answer says that it is the demo's. */
export function demoRouterApp(models: readonly ScriptedModel[], clock: Clock): H3 {
  const app = new H3({ silent: true })
  const answer = scriptedRouter(models, clock)
  app.all('/**', async (event) => {
    const { status, body } = answer({
      method: event.req.method,
      path: decodeURIComponent(event.url.pathname),
      authorized: event.req.headers.get('authorization') !== null,
      body: event.req.method === 'POST' ? await event.req.text() : '',
    })
    return respondJson(event, status, HEADERS, body)
  })
  return app
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
  const remaining = Math.max(0, REQUESTS_A_DAY - used)
  return { data: { label: 'demo', free_model_daily_requests: { limit: REQUESTS_A_DAY, used, remaining } } }
}

function endpointsOf({ id, latencyMs }: ScriptedModel): unknown {
  const latency = { p50: latencyMs, p75: latencyMs * 1.2, p90: latencyMs * 1.5, p99: latencyMs * 3 }
  const endpoint = { provider_name: 'Demo', status: 0, uptime_last_30m: 100, latency_last_30m: latency }
  return { data: { id, endpoints: [endpoint] } }
}

function completionOf(models: readonly ScriptedModel[], body: string, clock: Clock): RouterResponse {
  const asked = JSON.parse(body) as { model: string; tools?: unknown[]; messages?: { content: unknown }[] }
  const { model: id, tools, messages = [] } = asked
  const model = models.find((each) => each.id === id)
  if (!model) return failure(404, `No endpoints found for ${id}.`)
  const items = drawItems(dayOf(clock()))
  const kind = tools === undefined ? 'text' : 'tool'
  const isOfSuite = messages.at(-1)?.content === items.questions[kind].messages.at(-1)?.content
  const reply = isOfSuite ? replyOf(model.character, kind, items) : GREETING
  const calls = reply.toolCalls.map((call, at) => ({ id: `call_${at}`, type: 'function', function: call }))
  const content = { role: 'assistant', content: reply.text }
  const message = calls.length > 0 ? { ...content, tool_calls: calls } : content
  const choices = [{ index: 0, finish_reason: reply.finishReason, message }]
  return { status: 200, body: { id: 'gen-demo', object: 'chat.completion', model: id, choices } }
}

/** What every model says to whatever the suite does not ask, such as the question of the lines that the page has to copy. */
const GREETING: ModelResponse = { text: 'Hello.', toolCalls: [], finishReason: 'stop' }

function replyOf(character: Character, kind: 'tool' | 'text', items: LiteItems): ModelResponse {
  const solved = solutions(items)[kind]
  const said = (text: string): ModelResponse => ({ text, toolCalls: [], finishReason: 'stop' })
  if (character === 'solver') return solved
  if (character === 'silent') return said('I would rather talk about the weather.')
  if (character === 'talker') return kind === 'tool' ? said(JSON.stringify(solved.toolCalls)) : solved
  return kind === 'tool' ? solved : { ...solved, text: solved.text.replace(/TIME: .*$/, 'TIME: 00:00:00') }
}

/** Titles the demo's sources vouch for, by source and the source's own id. */
export type DemoTitles = Readonly<Record<NewsSource, Readonly<Record<string, string>>>>

/** Path below which each source's API is imitated. */
export const DEMO_SOURCE_PATHS = { hn: '/hn', lobsters: '/lobsters', lesswrong: '/lesswrong' } as const

/**
 * Stands in for the three owning sources while the demo is prepared, so that asking them for titles runs as it would
 * against the real ones. Every answer says that it is the demo's.
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
