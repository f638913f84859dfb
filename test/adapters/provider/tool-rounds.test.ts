import { describe, expect, test } from 'vitest'
import type { ToolRound } from '../../../src/domain/agent/model-call.ts'
import { APIS, CALL, collectEvents, modelAt, outcome, runTurn } from '../../support/model-turns.ts'
import { startProvider } from '../../support/synthetic-provider.ts'

const WHOLE = 'Hello Да 👩‍🚀 é'

describe.each(APIS)('tools over %s', (api) => {
  test('tools are called in rounds, each sent back completely', async () => {
    const provider = await startProvider('three rounds of tools')
    const { rounds, last } = await runTurn(modelAt(provider.url, { api }))
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
    'calls are reported as the model wrote them, and sent back in a form that a provider accepts: %s',
    async (mode, calls) => {
      const provider = await startProvider(mode)
      const { rounds, last } = await runTurn(modelAt(provider.url, { api }))
      expect(rounds[0]?.results.map(({ call }) => [call.name, call.arguments])).toEqual(calls)
      expect(last.text).toBe(WHOLE)
      expect(provider.breaches).toEqual([])
    },
  )

  test('each call has a unique id, even if the model repeats or omits ids', async () => {
    const provider = await startProvider('repeated call ids')
    const { rounds, last } = await runTurn(modelAt(provider.url, { api }))
    const ids = rounds.flatMap(({ results }) => results.map(({ call }) => call.callId))
    expect([ids[0], ids.length, new Set(ids).size]).toEqual(['call_r', 4, 4])
    expect(last.text).toBe(WHOLE)
    expect(provider.breaches).toEqual([])
  })

  test('calls that were not run get a result too: a provider rejects a call without one', async () => {
    const provider = await startProvider('30 parallel calls')
    const model = modelAt(provider.url, { api })
    const { end } = outcome(await collectEvents(model))
    if (end.kind !== 'end') throw new Error('it failed')
    const [first] = end.calls
    if (!first) throw new Error('there is no call')
    const round: ToolRound = { output: end.output, results: [{ call: first, output: 'result' }] }
    expect(outcome(await collectEvents(model, { ...CALL, rounds: [round] })).text).toBe(WHOLE)
    expect(provider.breaches).toEqual([])
    expect(JSON.stringify(provider.requests[1]?.body).match(/not_run/g)?.length).toBe(29)
  })

  test('a model may call tools in every round: each round ends', async () => {
    const provider = await startProvider('runaway tools')
    const { rounds, last } = await runTurn(modelAt(provider.url, { api }))
    expect(rounds.length).toBe(5)
    expect(last.end).toMatchObject({ kind: 'end', calls: [{ name: 'search_items' }] })
    expect(provider.breaches).toEqual([])
  })

  test('tools are not mentioned if there are none', async () => {
    const provider = await startProvider()
    await collectEvents(modelAt(provider.url, { api }), { ...CALL, tools: [] })
    expect(Object.keys(provider.requests[0]?.body ?? {})).not.toContain('tools')
  })
})

test('a request to the Responses API forbids storage, and items are sent back completely, in order', async () => {
  const provider = await startProvider('three rounds of tools')
  await runTurn(modelAt(provider.url))
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
  const call = (id: string, call_id: string, query: string): object => ({
    id,
    call_id,
    type: 'function_call',
    name: 'search_items',
    status: 'completed',
    arguments: `{"query":"${query}","limit":5}`,
  })
  expect(((third?.['input'] ?? []) as unknown[]).slice(3)).toEqual([
    { id: 'rs_0', type: 'reasoning', summary: [], encrypted_content: 'SEALED-1' },
    call('fc_1', 'call_a', 'chips'),
    { type: 'function_call_output', call_id: 'call_a', output: 'result 0' },
    { id: 'rs_0', type: 'reasoning', summary: [], encrypted_content: 'SEALED-2' },
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Let me see. ', annotations: [] }],
    },
    call('fc_2', 'call_b', 'robots'),
    { type: 'function_call_output', call_id: 'call_b', output: 'result 0' },
  ])
})

test('the reasoning of a model is not requested again after the provider rejected it', async () => {
  const provider = await startProvider({
    response: {
      status: 400,
      type: 'application/json',
      body: '{"error":{"message":"SECRET","type":"invalid_request_error","param":"include","code":null}}',
    },
  })
  const model = modelAt(provider.url)
  expect(outcome(await collectEvents(model)).end).toMatchObject({ code: 'http_400', dispatched: false })
  provider.behave('answer')
  expect(outcome(await collectEvents(model)).text).toBe(WHOLE)
  expect(provider.requests.map(({ body }) => 'include' in body)).toEqual([true, false, false])
})

test('a request for a chat completion requires usage, and calls and results are sent back in pairs', async () => {
  const provider = await startProvider('three rounds of tools')
  await runTurn(modelAt(provider.url, { api: 'chat' }))
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
