import { onTestFinished, describe, expect, test } from 'vitest'
import { openChatModel } from '../../../src/adapters/provider/chat-model.ts'
import type { ChatModelOptions } from '../../../src/adapters/provider/chat-model.ts'
import type { ChatModel, ModelCall, ModelEvent, ToolRound } from '../../../src/domain/agent/ports.ts'
import { unreachableUrl } from '../../support/local-source.ts'
import { MODES } from '../../support/provider-modes.ts'
import type { ModeName } from '../../support/provider-modes.ts'
import { startProvider } from '../../support/synthetic-provider.ts'

const LIVING = new AbortController().signal
const APIS = ['responses', 'chat'] as const

const CALL: ModelCall = {
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

function modelAt(base: string, changes: Partial<ChatModelOptions> = {}): ChatModel {
  const options: ChatModelOptions = {
    base,
    key: 'test-key',
    model: 'model-1',
    api: 'responses',
    firstEventMs: 5_000,
    idleMs: 5_000,
    ...changes,
  }
  const model = openChatModel(options)
  onTestFinished(() => model.close())
  return model
}

async function heard(model: ChatModel, call = CALL, signal = LIVING): Promise<ModelEvent[]> {
  const events: ModelEvent[] = []
  for await (const event of model.ask(call, signal)) events.push(event)
  return events
}

/** Texts joined and the end, which must be the only one and the last. */
function outcome(events: readonly ModelEvent[]): {
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

/** Asks until no tool is called, with a result for each call. */
async function turn(
  model: ChatModel,
  most = 5,
): Promise<{ rounds: ToolRound[]; last: ReturnType<typeof outcome> }> {
  const rounds: ToolRound[] = []
  for (;;) {
    const last = outcome(await heard(model, { ...CALL, rounds }))
    if (last.end.kind === 'failed' || last.end.calls.length === 0 || rounds.length === most) {
      return { rounds, last }
    }
    const { output, calls } = last.end
    rounds.push({ output, results: calls.map((call, index) => ({ call, output: `result ${index}` })) })
  }
}

const WHOLE = 'Hello Да 👩‍🚀 é'
const USAGE = { in: 100, out: 20, cached: 40 }

type Expected = Partial<Extract<ModelEvent, { kind: 'end' }>> | { error: string; code: string }

/** Every misbehaviour of one round: text given out, and how it ends. */
const TABLE: readonly (readonly [ModeName, string, Expected])[] = [
  ['answer', WHOLE, { refused: false, calls: [], usage: USAGE }],
  ['clean end without terminal', WHOLE, { error: 'upstream_error', code: 'truncated' }],
  ['half an event at the end', 'Hello ', { error: 'upstream_error', code: 'truncated' }],
  ['reset', 'Hello ', { error: 'upstream_error', code: 'truncated' }],
  ['silence before headers', '', { error: 'timeout', code: 'first_event' }],
  ['silence after headers', '', { error: 'timeout', code: 'first_event' }],
  ['silence after first event', '', { error: 'timeout', code: 'idle' }],
  ['comments only', '', { error: 'timeout', code: 'first_event' }],
  ['HTML 200', '', { error: 'upstream_error', code: 'invalid_stream' }],
  ['JSON 200', '', { error: 'upstream_error', code: 'invalid_stream' }],
  ['failed', 'Hello ', { error: 'upstream_error', code: 'failed' }],
  ['incomplete', 'Hello ', { error: 'upstream_error', code: 'incomplete' }],
  ['error event', 'Hello ', { error: 'upstream_error', code: 'failed' }],
  ['refusal', 'I cannot help.', { refused: true, calls: [], usage: USAGE }],
  ['empty answer', '', { error: 'upstream_error', code: 'empty' }],
  ['429 with retry-after 3600', '', { error: 'upstream_error', code: 'http_429' }],
  ['500 with HTML', '', { error: 'upstream_error', code: 'http_500' }],
  ['redirect', '', { error: 'upstream_error', code: 'http_307' }],
  ['one-byte chunks', WHOLE, { refused: false, usage: USAGE }],
  ['CRLF', WHOLE, { refused: false, usage: USAGE }],
  ['CRLF in one-byte chunks', WHOLE, { refused: false, usage: USAGE }],
  ['CR alone', WHOLE, { refused: false, usage: USAGE }],
  ['byte order mark', WHOLE, { refused: false, usage: USAGE }],
  ['no final blank line', WHOLE, { refused: false, usage: USAGE }],
  ['200 MiB line', 'Hello ', { error: 'upstream_error', code: 'invalid_stream' }],
  ['usage null', 'Hello', { usage: null }],
  ['usage zero', 'Hello', { usage: { in: 0, out: 0, cached: 0 } }],
  ['usage negative', 'Hello', { usage: null }],
  ['usage huge', 'Hello', { usage: null }],
  ['more cached than read', 'Hello', { usage: { in: 10, out: 20, cached: 0 } }],
]

describe.each(APIS)('a round over %s', (api) => {
  test.each(TABLE)('of a provider of %s', async (mode, text, expected) => {
    const provider = await startProvider(mode)
    const behaviour = MODES[mode]
    const quick = 'silent' in behaviour ? { firstEventMs: 150, idleMs: 150 } : {}
    const events = await heard(modelAt(provider.url, { api, ...quick }))
    const heardOf = outcome(events)
    expect(heardOf.text).toBe(text)
    expect(heardOf.end).toMatchObject('code' in expected ? { kind: 'failed', ...expected } : expected)
    expect(JSON.stringify(events)).not.toContain('SECRET')
    expect(provider.requests.length).toBe(1)
    expect(provider.breaches).toEqual([])
    await provider.requests[0]?.closed
  })

  test('reads no more of a line without an end than its bound, and lets go of it', async () => {
    const provider = await startProvider('200 MiB line')
    await heard(modelAt(provider.url, { api }))
    await provider.requests[0]?.closed
    expect(provider.requests[0]?.written).toBeLessThan(16 * 1024 * 1024)
  })

  test('fails where nobody listens, and nothing was sent', async () => {
    const { end } = outcome(await heard(modelAt(`${await unreachableUrl()}/v1`, { api })))
    expect(end).toEqual({
      kind: 'failed',
      error: 'upstream_error',
      code: 'connect',
      usage: null,
      dispatched: false,
    })
  })

  test.each([
    ['429 with retry-after 3600', false],
    ['redirect', false],
    ['500 with HTML', true],
    ['reset', true],
    ['HTML 200', true],
  ] as const)('tells whether %s may have cost anything', async (mode, dispatched) => {
    const provider = await startProvider(mode)
    const { end } = outcome(await heard(modelAt(provider.url, { api })))
    expect(end).toMatchObject({ kind: 'failed', dispatched })
  })

  test('sends the key to the configured base alone, and nothing of this machine', async () => {
    const provider = await startProvider('redirect')
    await heard(modelAt(provider.url, { api }))
    expect(provider.requests.map(({ path }) => path)).toEqual([
      api === 'chat' ? '/v1/chat/completions' : '/v1/responses',
    ])
    expect(Object.keys(provider.requests[0]?.headers ?? {}).sort()).toEqual([
      'accept',
      'authorization',
      'connection',
      'content-length',
      'content-type',
      'host',
      'user-agent',
    ])
    expect(provider.requests[0]?.headers).toMatchObject({
      authorization: 'Bearer test-key',
      accept: 'text/event-stream',
    })
  })

  test('sends no key when it has none', async () => {
    const provider = await startProvider()
    await heard(modelAt(provider.url, { api, key: null }))
    expect(provider.requests[0]?.headers.authorization).toBeUndefined()
  })

  test.each([
    'silence before headers',
    'silence after headers',
    'silence after first event',
    'comments only',
  ] as const)('ends at once when it is aborted in %s', async (mode) => {
    const provider = await startProvider(mode)
    const abort = new AbortController()
    const asked = heard(modelAt(provider.url, { api }), CALL, abort.signal)
    await provider.arrived(1)
    const reason = new Error('the client left')
    const at = performance.now()
    abort.abort(reason)
    await expect(asked).rejects.toBe(reason)
    expect((await provider.requests[0]?.closed) ?? Infinity).toBeGreaterThanOrEqual(at)
  })

  test('lets go of the provider when nobody asks for the next event', async () => {
    const provider = await startProvider('answer')
    const abort = new AbortController()
    const events = modelAt(provider.url, { api }).ask(CALL, abort.signal)[Symbol.asyncIterator]()
    expect(await events.next()).toMatchObject({ value: { kind: 'text', text: 'Hello ' } })
    abort.abort(new Error('the client left'))
    await provider.requests[0]?.closed
    await expect(events.next()).rejects.toThrow('the client left')
  })

  test('sends nothing when it is aborted before', async () => {
    const provider = await startProvider()
    await expect(
      heard(modelAt(provider.url, { api }), CALL, AbortSignal.abort(new Error('gone'))),
    ).rejects.toThrow('gone')
    expect(provider.requests).toEqual([])
  })

  test('lets go of the provider when the answer is left', async () => {
    const provider = await startProvider('answer')
    for await (const event of modelAt(provider.url, { api }).ask(CALL, LIVING)) {
      expect(event).toEqual({ kind: 'text', text: 'Hello ' })
      break
    }
    await provider.requests[0]?.closed
  })

  test('uses a connection again whose answer was whole', async () => {
    const provider = await startProvider('three rounds of tools')
    await turn(modelAt(provider.url, { api }))
    expect(provider.requests.length).toBe(3)
    expect(new Set(provider.requests.map(({ port }) => port)).size).toBeLessThan(3)
  })
})

describe.each(APIS)('tools over %s', (api) => {
  test('are called in rounds, each given back whole', async () => {
    const provider = await startProvider('three rounds of tools')
    const { rounds, last } = await turn(modelAt(provider.url, { api }))
    expect(rounds.flatMap(({ results }) => results.map(({ call }) => call))).toEqual([
      { callId: 'call_a', name: 'search_items', arguments: '{"query":"chips","limit":5}' },
      { callId: 'call_b', name: 'search_items', arguments: '{"query":"robots","limit":5}' },
    ])
    expect(last).toMatchObject({ text: WHOLE, end: { kind: 'end', model: 'model-1', calls: [] } })
    expect(provider.breaches).toEqual([])
  })

  test.each([
    ['unknown tool', [['delete everything!', '{}']]],
    ['bad arguments', [['search_items', '{"query":']]],
    [
      '30 parallel calls',
      Array.from({ length: 30 }, (_, index) => ['search_items', `{"query":"word ${index}","limit":5}`]),
    ],
  ] as const)(
    'are told as the model wrote them, and given back so that a provider takes them: %s',
    async (mode, calls) => {
      const provider = await startProvider(mode)
      const { rounds, last } = await turn(modelAt(provider.url, { api }))
      expect(rounds[0]?.results.map(({ call }) => [call.name, call.arguments])).toEqual(calls)
      expect(last.text).toBe(WHOLE)
      expect(provider.breaches).toEqual([])
    },
  )

  test('have an id of their own each, even when the model repeats or leaves out ids', async () => {
    const provider = await startProvider('repeated call ids')
    const { rounds, last } = await turn(modelAt(provider.url, { api }))
    const ids = rounds.flatMap(({ results }) => results.map(({ call }) => call.callId))
    expect(ids.length).toBe(4)
    expect(ids[0]).toBe('call_r')
    expect(new Set(ids).size).toBe(4)
    expect(last.text).toBe(WHOLE)
    expect(provider.breaches).toEqual([])
  })

  test('that nobody ran are answered all the same: a provider declines an open call', async () => {
    const provider = await startProvider('30 parallel calls')
    const model = modelAt(provider.url, { api })
    const { end } = outcome(await heard(model))
    if (end.kind !== 'end') throw new Error('it failed')
    const [first] = end.calls
    if (!first) throw new Error('there is no call')
    const round: ToolRound = { output: end.output, results: [{ call: first, output: 'result' }] }
    expect(outcome(await heard(model, { ...CALL, rounds: [round] })).text).toBe(WHOLE)
    expect(provider.breaches).toEqual([])
    expect(JSON.stringify(provider.requests[1]?.body).match(/not_run/g)?.length).toBe(29)
  })

  test('may be called for ever by the model: each round ends', async () => {
    const provider = await startProvider('runaway tools')
    const { rounds, last } = await turn(modelAt(provider.url, { api }))
    expect(rounds.length).toBe(5)
    expect(last.end).toMatchObject({ kind: 'end', calls: [{ name: 'search_items' }] })
    expect(provider.breaches).toEqual([])
  })

  test('are not told of when there are none', async () => {
    const provider = await startProvider()
    await heard(modelAt(provider.url, { api }), { ...CALL, tools: [] })
    expect(Object.keys(provider.requests[0]?.body ?? {})).not.toContain('tools')
  })
})

test('asks the Responses API to store nothing, and gives whole items back in their order', async () => {
  const provider = await startProvider('three rounds of tools')
  await turn(modelAt(provider.url))
  const [first, , third] = provider.requests.map(({ body }) => body)
  expect(first).toEqual({
    model: 'model-1',
    instructions: CALL.instructions,
    input: CALL.input.map((message) => ({ type: 'message', ...message })),
    tools: [{ type: 'function', strict: true, ...CALL.tools[0] }],
    include: ['reasoning.encrypted_content'],
    max_output_tokens: 1_000,
    store: false,
    stream: true,
  })
  expect(((third?.['input'] ?? []) as unknown[]).slice(3)).toEqual([
    { id: 'rs_0', type: 'reasoning', summary: [], encrypted_content: 'SEALED-1' },
    {
      id: 'fc_1',
      type: 'function_call',
      call_id: 'call_a',
      name: 'search_items',
      status: 'completed',
      arguments: '{"query":"chips","limit":5}',
    },
    { type: 'function_call_output', call_id: 'call_a', output: 'result 0' },
    { id: 'rs_0', type: 'reasoning', summary: [], encrypted_content: 'SEALED-2' },
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Let me see. ', annotations: [] }],
    },
    {
      id: 'fc_2',
      type: 'function_call',
      call_id: 'call_b',
      name: 'search_items',
      status: 'completed',
      arguments: '{"query":"robots","limit":5}',
    },
    { type: 'function_call_output', call_id: 'call_b', output: 'result 0' },
  ])
})

test('asks a model for its reasoning no more when the provider says that it has none', async () => {
  const provider = await startProvider({
    answer: {
      status: 400,
      type: 'application/json',
      body: '{"error":{"message":"SECRET","type":"invalid_request_error","param":"include","code":null}}',
    },
  })
  const model = modelAt(provider.url)
  expect(outcome(await heard(model)).end).toMatchObject({ code: 'http_400', dispatched: false })
  provider.behave('answer')
  expect(outcome(await heard(model)).text).toBe(WHOLE)
  expect(provider.requests.map(({ body }) => 'include' in body)).toEqual([true, false, false])
})

test('asks chat completions for usage, and gives calls and results back in pairs', async () => {
  const provider = await startProvider('three rounds of tools')
  await turn(modelAt(provider.url, { api: 'chat' }))
  const [first, , third] = provider.requests.map(({ body }) => body)
  expect(first).toEqual({
    model: 'model-1',
    messages: [{ role: 'system', content: CALL.instructions }, ...CALL.input],
    tools: [{ type: 'function', function: { ...CALL.tools[0], strict: true } }],
    max_tokens: 1_000,
    stream: true,
    stream_options: { include_usage: true },
  })
  const call = (id: string, query: string): unknown => ({
    id,
    type: 'function',
    function: { name: 'search_items', arguments: `{"query":"${query}","limit":5}` },
  })
  expect(((third?.['messages'] ?? []) as unknown[]).slice(4)).toEqual([
    { role: 'assistant', content: null, tool_calls: [call('call_a', 'chips')] },
    { role: 'tool', tool_call_id: 'call_a', content: 'result 0' },
    { role: 'assistant', content: 'Let me see. ', tool_calls: [call('call_b', 'robots')] },
    { role: 'tool', tool_call_id: 'call_b', content: 'result 0' },
  ])
})

describe('chat completions of local engines', () => {
  const chunk = (choice: object): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, finish_reason: null, ...choice }] })}\n\n`
  const asStream = (body: string): Parameters<typeof startProvider>[0] => ({
    answer: { status: 200, type: 'text/event-stream', body },
  })
  const told = (name: string, text: unknown): object => ({
    type: 'function',
    function: { name, arguments: text },
  })

  test.each([
    [
      'without an index',
      [
        { id: 'a', ...told('x', '{"n":1}') },
        { id: 'b', ...told('y', '{"n":2}') },
      ],
    ],
    [
      'all at the index 0',
      [
        { index: 0, id: 'a', ...told('x', '{"n":1}') },
        { index: 0, id: 'b', ...told('y', '{"n":2}') },
      ],
    ],
    [
      'with arguments that are no text',
      [
        { index: 0, id: 'a', ...told('x', { n: 1 }) },
        { index: 1, id: 'b', ...told('y', { n: 2 }) },
      ],
    ],
  ])('may give whole calls in one chunk, %s', async (_how, calls) => {
    const stream = chunk({ delta: { tool_calls: calls } }) + chunk({ delta: {}, finish_reason: 'stop' })
    const provider = await startProvider(asStream(stream))
    const { end } = outcome(await heard(modelAt(provider.url, { api: 'chat' })))
    expect(end).toMatchObject({
      kind: 'end',
      usage: null,
      calls: [
        { callId: 'a', name: 'x', arguments: '{"n":1}' },
        { callId: 'b', name: 'y', arguments: '{"n":2}' },
      ],
    })
  })

  test('may end after the reason to finish, without usage or a mark', async () => {
    const provider = await startProvider(asStream(chunk({ delta: { content: 'Hi' }, finish_reason: 'stop' })))
    expect(outcome(await heard(modelAt(provider.url, { api: 'chat' })))).toMatchObject({
      text: 'Hi',
      end: { kind: 'end', usage: null },
    })
  })

  test('have not ended with the mark alone', async () => {
    const provider = await startProvider(asStream(`${chunk({ delta: { content: 'Hi' } })}data: [DONE]\n\n`))
    expect(outcome(await heard(modelAt(provider.url, { api: 'chat' }))).end).toMatchObject({
      code: 'truncated',
    })
  })

  test('cut by a filter are incomplete', async () => {
    const stream = chunk({ delta: { content: 'Hi' }, finish_reason: 'content_filter' })
    const provider = await startProvider(asStream(stream))
    expect(outcome(await heard(modelAt(provider.url, { api: 'chat' }))).end).toMatchObject({
      code: 'incomplete',
    })
  })
})

test('takes no event for JSON that is none', async () => {
  const provider = await startProvider({
    answer: { status: 200, type: 'text/event-stream', body: 'data: {"type":\n\ndata: {}\n\n' },
  })
  expect(outcome(await heard(modelAt(provider.url))).end).toMatchObject({ code: 'invalid_stream' })
})
