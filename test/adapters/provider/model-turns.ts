import { expect, onTestFinished } from 'vitest'
import { localSource } from '../../support/local-source.ts'
import { openChatModel } from '../../../src/adapters/provider/chat-model.ts'
import type { ChatModelOptions } from '../../../src/adapters/provider/chat-model.ts'
import { TOOL_DEFINITIONS } from '../../../src/domain/agent/tools.ts'
import type { ChatModel } from '../../../src/domain/ports.ts'
import type { ModelCall, ModelEvent, ToolRound } from '../../../src/domain/agent/model-call.ts'

/** A signal that is never aborted. */
export const NEVER_ABORTED = new AbortController().signal

/** A call with one tool. */
export const CALL: ModelCall = {
  instructions: 'You answer questions about a feed.',
  input: [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Hello.' },
    { role: 'user', content: 'What is new?' },
  ],
  rounds: [],
  tools: [
    {
      name: 'search_items',
      description: 'Finds items.',
      parameters: {
        type: 'object',
        properties: { query: { type: 'string' } },
        required: ['query'],
        additionalProperties: false,
      },
    },
  ],
  maxOutputTokens: 1_000,
}

/** The same with the tools of the chat. */
export const ASK: ModelCall = { ...CALL, tools: TOOL_DEFINITIONS }

/** A turn after a call, with the reasoning of the call. */
export function afterCall(reasoning = {}): ModelCall {
  const call = { callId: 'a', name: 'search_items', arguments: '{"query":"x"}' }
  const output = { text: '', reasoning, calls: [{ id: 'a', name: call.name, arguments: call.arguments }] }
  return { ...ASK, rounds: [{ output, results: [{ call, output: '{"items":[]}' }] }] }
}

/** A model behind a provider; closed when the test ends. */
export function modelAt(base: string, changes: Partial<ChatModelOptions> = {}): ChatModel {
  const options: ChatModelOptions = {
    base,
    key: 'test-key',
    userAgent: 'dash/test',
    model: 'model-1',
    firstEventMs: 5_000,
    idleMs: 5_000,
    ...changes,
  }
  const model = openChatModel(options)
  onTestFinished(() => model.close())
  return model
}

/** Every event of one round. */
export async function collectEvents(
  model: ChatModel,
  call = CALL,
  signal = NEVER_ABORTED,
): Promise<ModelEvent[]> {
  const events: ModelEvent[] = []
  for await (const event of model.ask(call, signal)) events.push(event)
  return events
}

/** The joined texts and the end event, which must be the only one and the last. */
export function outcome(events: readonly ModelEvent[]): {
  text: string
  end: Exclude<ModelEvent, { kind: 'text' }>
} {
  const ends = events.filter((event) => event.kind !== 'text')
  const [end] = ends
  expect(ends.length).toBe(1)
  expect(events.at(-1)).toBe(end)
  if (!end) throw new Error('there is no end')
  const text = events.map((event) => (event.kind === 'text' ? event.text : '')).join('')
  return { text, end }
}

/** Calls the model until it requests no tool, with a result for each tool call. */
export async function runTurn(
  model: ChatModel,
  maxRounds = 5,
  input = CALL.input,
): Promise<{ rounds: ToolRound[]; last: ReturnType<typeof outcome> }> {
  const rounds: ToolRound[] = []
  for (;;) {
    const last = outcome(await collectEvents(model, { ...CALL, input, rounds }))
    if (last.end.kind === 'failed' || last.end.calls.length === 0 || rounds.length === maxRounds) {
      return { rounds, last }
    }
    const { output, calls } = last.end
    rounds.push({ output, results: calls.map((call, index) => ({ call, output: `result ${index}` })) })
  }
}

/** An event of a stream with a delta of the first choice. */
export const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
export const DONE = 'data: [DONE]\n\n'

/** The API base of a provider that responds with a stream. */
export async function streamAt(stream: string, headers: Record<string, string> = {}): Promise<string> {
  const { url } = await localSource((_request, response) =>
    response.writeHead(200, { 'content-type': 'text/event-stream', ...headers }).end(stream),
  )
  return url
}

/** The outcome of a round with this stream. */
export async function answerOf(
  stream: string,
  headers?: Record<string, string>,
): Promise<ReturnType<typeof outcome>> {
  return outcome(await collectEvents(modelAt(await streamAt(stream, headers))))
}
