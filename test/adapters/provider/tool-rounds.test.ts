import { describe, expect, test } from 'vitest'
import { CompletionParser } from '../../../src/adapters/provider/chat-completions.ts'
import { requestBody } from '../../../src/adapters/provider/model-request.ts'
import type { ToolRound } from '../../../src/domain/agent/model-call.ts'
import { CALL, collectEvents, modelAt, outcome, runTurn } from '../../support/model-turns.ts'
import { startProvider } from '../../support/synthetic-provider.ts'

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

  test('calls that were not run get a result too: a provider rejects a call without one', async () => {
    const provider = await startProvider('30 parallel calls')
    const model = modelAt(provider.url)
    const { end } = outcome(await collectEvents(model))
    if (end.kind !== 'end') throw new Error('it failed')
    const [first] = end.calls
    if (!first) throw new Error('there is no call')
    const round: ToolRound = { output: end.output, results: [{ call: first, output: 'result' }] }
    expect(outcome(await collectEvents(model, { ...CALL, rounds: [round] })).text).toBe(WHOLE)
    expect(provider.breaches).toEqual([])
    expect(JSON.stringify(provider.requests[1]?.body).match(/not_run/g)?.length).toBe(29)
  })

  test('tools are not mentioned if there are none', async () => {
    const provider = await startProvider()
    await collectEvents(modelAt(provider.url), { ...CALL, tools: [] })
    expect(Object.keys(provider.requests[0]?.body ?? {})).not.toContain('tools')
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
  const call = (id: string, query: string): unknown => ({
    id,
    type: 'function',
    function: { name: 'search_items', arguments: `{"query":"${query}","limit":5}` },
  })
  expect(((third?.['messages'] ?? []) as unknown[]).slice(4)).toEqual([
    {
      role: 'assistant',
      content: '',
      reasoning_content: 'SEALED-1',
      tool_calls: [call('call_a', 'chips')],
    },
    { role: 'tool', tool_call_id: 'call_a', content: 'result 0' },
    {
      role: 'assistant',
      content: 'Let me see. ',
      reasoning_content: 'SEALED-2',
      tool_calls: [call('call_b', 'robots')],
    },
    { role: 'tool', tool_call_id: 'call_b', content: 'result 0' },
  ])
})

test.each([
  ['functions.search_items', '```json\n{"query":"a"}\n```', 'search_items', '{"query":"a"}'],
  ['search_items', JSON.stringify('{"query":"a"}'), 'search_items', '{"query":"a"}'],
  ['a tool!', 'query = a', 'unknown', '{}'],
])('a call of %s with %j is sent back as %s with %j', (name, text, sentName, sentText) => {
  const parser = new CompletionParser({ ids: ['m'] }, CALL, new Set())
  const call = { index: 0, id: 'a', function: { name, arguments: text } }
  parser.parse({ choices: [{ delta: { tool_calls: [call] }, finish_reason: 'tool_calls' }] })
  const { end } = parser.endOfStream()
  if (end?.kind !== 'end') throw new Error('the round failed')
  const form = { isOpenAi: false, refused: new Set<string>() }
  const rounds = [{ output: end.output, results: [] }]
  const { messages } = requestBody(form, { ids: ['m'] }, { ...CALL, rounds })
  expect(messages.at(-2)).toMatchObject({
    tool_calls: [{ function: { name: sentName, arguments: sentText } }],
  })
})
