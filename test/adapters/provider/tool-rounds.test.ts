import { describe, expect, test } from 'vitest'
import { CompletionParser } from '../../../src/adapters/provider/chat-completions.ts'
import { requestBody } from '../../../src/adapters/provider/model-request.ts'
import type { ModelCall } from '../../../src/domain/agent/model-call.ts'
import { ASK, CALL, modelAt, runTurn } from './model-turns.ts'
import { startProvider } from '../../support/provider.ts'

const WHOLE = 'Hello Да 👩‍🚀 é'

describe('tools', () => {
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
      const { rounds, last } = await runTurn(modelAt(provider.url))
      expect(rounds[0]?.results.map(({ call }) => [call.name, call.arguments])).toEqual(calls)
      expect(last.text).toBe(WHOLE)
      expect(provider.breaches).toEqual([])
    },
  )

  test('each call has a unique id, even if the model repeats or omits ids', async () => {
    const provider = await startProvider('repeated call ids')
    const { rounds, last } = await runTurn(modelAt(provider.url))
    const ids = rounds.flatMap(({ results }) => results.map(({ call }) => call.callId))
    expect([ids[0], ids.length, new Set(ids).size]).toEqual(['call_r', 4, 4])
    expect(last.text).toBe(WHOLE)
    expect(provider.breaches).toEqual([])
  })
})

test('a request forbids storage and requires usage, and calls and results are sent back in pairs', async () => {
  const provider = await startProvider('three rounds of tools')
  await runTurn(modelAt(provider.url))
  const [first, , third] = provider.requests.map(({ body }) => body)
  const parameters = { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] }
  expect(first).toEqual({
    model: 'model-1',
    messages: [{ role: 'system', content: CALL.instructions }, ...CALL.input],
    tools: [
      { type: 'function', function: { name: 'search_items', description: 'Finds items.', parameters } },
    ],
    max_tokens: 1_000,
    stream: true,
    stream_options: { include_usage: true },
    store: false,
  })
  const called = (content: string, reasoning_content: string, id: string, query: string): unknown[] => {
    const call = { name: 'search_items', arguments: `{"query":"${query}","limit":5}` }
    const tool_calls = [{ id, type: 'function', function: call }]
    return [
      { role: 'assistant', content, reasoning_content, tool_calls },
      { role: 'tool', tool_call_id: id, content: 'result 0' },
    ]
  }
  expect(((third?.['messages'] ?? []) as unknown[]).slice(4)).toEqual([
    ...called('', 'SEALED-1', 'call_a', 'chips'),
    ...called('Let me see. ', 'SEALED-2', 'call_b', 'robots'),
  ])
})

/** The body of a request to an engine. */
const bodyOf = (call: ModelCall, isOpenAi = false): ReturnType<typeof requestBody> =>
  requestBody({ isOpenAi, refused: new Set() }, { ids: ['m'] }, call)

/** The message that gives the calls of these chunks back. */
function sentBack(...deltas: object[]): unknown {
  const parser = new CompletionParser({ ids: ['m'] }, CALL, new Set())
  for (const delta of deltas) parser.parse({ choices: [{ delta, finish_reason: 'tool_calls' }] })
  const { end } = parser.endOfStream()
  if (end?.kind !== 'end') throw new Error('the round failed')
  return bodyOf({ ...CALL, rounds: [{ output: end.output, results: [] }] }).messages[4]
}

test.each([
  ['functions.search_items', '```json\n{"query":"a"}\n```', 'search_items', '{"query":"a"}'],
  ['search_items', JSON.stringify('{"query":"a"}'), 'search_items', '{"query":"a"}'],
  ['a tool!', 'query = a', 'unknown', '{}'],
  ['my_tool', '{}', 'my_tool', '{}'],
])('a call of %s with %j is sent back as %s with %j', (name, text, sentName, sentText) => {
  const call = { index: 0, id: 'a', function: { name, arguments: text } }
  expect(sentBack({ tool_calls: [call] })).toMatchObject({
    tool_calls: [{ function: { name: sentName, arguments: sentText } }],
  })
})

test('the text before a call goes back with the thoughts in it, and without the marks of a call', () => {
  const call = { name: 'search_items', arguments: '{"query":"a"}' }
  const content = '<think>Hm.</think>I look. '
  expect(sentBack({ content, tool_calls: [{ function: call }] })).toMatchObject({ content })
  const marked = `${content}<tool_call>${JSON.stringify(call)}</tool_call>`
  expect(sentBack({ content: marked })).toMatchObject({
    content: 'I look. ',
    tool_calls: [{ function: call }],
  })
})

test('what an engine adds to a call, and its reasoning in parts, go back with the call', () => {
  const extra = { google: { thought_signature: 'abc' } }
  const sealed = { type: 'reasoning.encrypted', data: 'xyz', index: 1 }
  const details = [{ text: 'I should ' }, { text: 'look.' }, { signature: 's' }].map((fields) => ({
    reasoning_details: [{ type: 'reasoning.text', index: 0, ...fields }],
  }))
  const id = `call_1__thought__${'x'.repeat(2_000)}`
  const call = { index: 0, id, function: { name: 'search_items', arguments: '{"query":' } }
  const rest = { index: 0, function: { arguments: '"a"}' } }
  const fields = { thought_signature: 'def' }
  const first = { ...call, extra_content: extra, provider_specific_fields: null }
  const calls = [first, { ...rest, provider_specific_fields: fields }].map((part) => ({ tool_calls: [part] }))
  expect(sentBack(...details, { reasoning_details: [sealed] }, ...calls)).toMatchObject({
    tool_calls: [{ id, extra_content: extra, provider_specific_fields: fields }],
    reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'I should look.', signature: 's' }, sealed],
  })
})

describe('the body of a request', () => {
  test('adjacent messages of a role are joined by an empty line', () => {
    const said = [
      ['user', 'data'],
      ['user', 'preferences'],
      ['assistant', 'Hello.'],
      ['assistant', 'Well?'],
    ] as const
    const input = said.map(([role, content]) => ({ role, content }))
    expect(bodyOf({ ...CALL, input }).messages.map(({ role, content }) => [role, content])).toEqual([
      ['system', CALL.instructions],
      ['user', 'data\n\npreferences'],
      ['assistant', 'Hello.\n\nWell?'],
    ])
  })

  test('tools are not mentioned if there are none', () => {
    expect(bodyOf({ ...CALL, tools: [] })).not.toHaveProperty('tools')
  })

  test('only OpenAI itself gets strict tools and max_completion_tokens', () => {
    expect(bodyOf(CALL, true)).toMatchObject({
      max_completion_tokens: 1_000,
      tools: [{ function: { strict: true } }],
      store: false,
    })
  })

  test.each(['"type":[', 'null]', 'additionalProperties', '"required":[]', '"null"', '"strict"'])(
    'the schemas have no %s for engines other than OpenAI',
    (text) => expect(JSON.stringify(bodyOf(ASK).tools)).not.toContain(text),
  )

  test('arguments that may be null are optional', () => {
    const properties = {
      sources: { type: 'array', maxItems: 8, items: { type: 'string' } },
      limit: { type: 'integer', minimum: 1, maximum: 20 },
    }
    const { tools = [] } = bodyOf(ASK)
    expect(tools[0]).toMatchObject({
      function: { parameters: { type: 'object', required: ['query'], properties } },
    })
    expect(tools).toHaveLength(6)
  })
})
