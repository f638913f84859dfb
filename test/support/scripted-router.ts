import { drawItems } from '../../src/jobs/models/lite-suite.ts'
import { solutions } from './lite-responses.ts'
import type { LiteItems } from '../../src/jobs/models/lite-suite.ts'
import type { ModelResponse } from '../../src/domain/models/lite/suite.ts'
import type { Clock } from '../../src/domain/ports.ts'
import { dayOf } from '../../src/domain/time.ts'

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

/**
 * A routing service with scripted models, which respond to the suite of the current day with its solutions, so that an
 * evaluation runs as against the real service.
 */
export function scriptedRouter(
  models: readonly ScriptedModel[],
  clock: Clock,
): (request: RouterRequest) => RouterResponse {
  return ({ method, path, authorized, body }) => {
    if (method === 'GET' && path === '/models') return { status: 200, body: catalogueOf(models) }
    if (!authorized) return failure(401, 'No auth credentials found')
    const model = models.find(({ id }) => path === `/models/${id}/endpoints`)
    if (method === 'GET' && model) return { status: 200, body: endpointsOf(model) }
    if (method !== 'POST' || path !== '/chat/completions') return failure(404, 'Not found')
    return completionOf(models, body, clock)
  }
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

function endpointsOf({ id, latencyMs }: ScriptedModel): unknown {
  const latency = { p50: latencyMs, p75: latencyMs * 1.2, p90: latencyMs * 1.5, p99: latencyMs * 3 }
  const endpoint = { provider_name: 'Test', status: 0, uptime_last_30m: 100, latency_last_30m: latency }
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
