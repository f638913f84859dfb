import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { requestBody } from '../../../src/adapters/provider/model-request.ts'
import type { ModelCall } from '../../../src/domain/agent/model-call.ts'
import { localSource } from '../../support/local-source.ts'
import { CALL, collectEvents, modelAt, outcome, runTurn } from '../../support/model-turns.ts'

const fixture = (name: string): string =>
  readFileSync(new URL(`../../fixtures/engines/${name}.sse`, import.meta.url), 'utf8')

/** A mark in a stream: a pause of so many milliseconds. */
const pause = (ms: number): string => `<<SPLIT:${ms}>>`

/** Serves a stream, byte for byte but for its pauses. */
async function serveStream(stream: string, ending: 'end' | 'hold' = 'end'): Promise<string> {
  const { url } = await localSource(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const [index, part] of stream.split(/<<SPLIT:(\d+)>>/).entries())
      if (index % 2 === 0) response.write(part)
      else await sleep(Number(part))
    if (ending === 'end') response.end()
  })
  return url
}

async function answerOf(stream: string): ReturnType<typeof resultOf> {
  return resultOf(await serveStream(stream))
}

async function resultOf(url: string, changes = {}): Promise<ReturnType<typeof outcome>> {
  return outcome(await collectEvents(modelAt(url, changes)))
}

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const DONE = 'data: [DONE]\n\n'

describe('a stream of an engine', () => {
  test.each([
    ['finishall-usage', 'One two three.'],
    ['finishreasoning-usage', 'The answer.'],
    ['emptydata', 'One two.'],
    ['contentarray', 'The answer.'],
    ['nodone', 'One two.'],
    ['usageall', 'One two.'],
  ])('the stream %s is read whole', async (name, text) => {
    expect(await answerOf(fixture(name))).toMatchObject({ text, end: { kind: 'end', calls: [] } })
  })

  test('a pause after a finish reason does not end the stream, however short the idle limit', async () => {
    const stream = `${chunk({ content: 'One ' }, 'stop')}${pause(300)}${chunk({ content: 'two.' }, 'stop')}${DONE}`
    const result = await resultOf(await serveStream(stream), { idleMs: 100 })
    expect(result).toMatchObject({ text: 'One two.', end: { kind: 'end' } })
  })

  test('silence after a finish reason ends the stream as complete', async () => {
    const stream = chunk({ content: 'One.' }, 'stop')
    const result = await resultOf(await serveStream(stream, 'hold'), { afterReasonMs: 100 })
    expect(result).toMatchObject({ text: 'One.', end: { kind: 'end' } })
  })

  test('a stream reports thoughts and tool calls as received, and no text for them', async () => {
    const call = { index: 0, function: { name: 'tool', arguments: '{"a":1}' } }
    const deltas = [
      { reasoning_content: 'I think. ' },
      { content: '<think>Or not.</think>' },
      { content: 'Hi' },
      { tool_calls: [call] },
      { content: [{ type: 'thinking', thinking: 'At last.' }] },
    ]
    const stream = deltas.map((delta) => chunk(delta)).join('') + chunk({}, 'tool_calls') + DONE
    const events = await collectEvents(modelAt(await serveStream(stream)))
    expect(outcome(events).text).toBe('Hi')
    const received = events.flatMap((event) => (event.kind === 'text' ? [event.received ?? event.text] : []))
    expect(received.join('')).toBe(
      'I think. <think>Or not.</think>Hitool{"a":1}[{"type":"thinking","thinking":"At last."}]',
    )
  })

  test.each([
    ['half an event', 'data: {"choices":[{"del', 'truncated'],
    ['a cut by the token limit', chunk({ content: 'x' }, 'length'), 'incomplete'],
    ['an error', 'data: {"error":{"code":500}}\n\n', 'failed'],
  ])('%s after a finish reason fails the stream', async (_what, rest, code) => {
    const { end } = await answerOf(chunk({ content: 'One ' }, 'stop') + rest)
    expect(end).toMatchObject({ kind: 'failed', code })
  })
})

const called = (name: string, text: string, more: object = {}): object => ({
  type: 'function',
  function: { name, arguments: text },
  ...more,
})
const rest = (text: string, more: object = {}): object => ({ function: { arguments: text }, ...more })
const calls = (...parts: object[]): string =>
  parts.map((part) => chunk({ tool_calls: [part] })).join('') + chunk({}, 'tool_calls') + DONE

const FIRST = ['find_similar_items', '{"key":"hn-901","limit":null}']
const SECOND = ['find_similar_items', '{"key":"hn-902","limit":null}']
const OTHER = ['read_article', '{"key":"hn-902","offset":null}']

describe('tool calls of an engine', () => {
  test.each<[string, string, string[][]]>([
    ['whole, in parts', fixture('tools-ok.0'), [FIRST, SECOND]],
    ['after the first reason', fixture('tools-finish-first.0'), [FIRST, SECOND]],
    ['without indexes and ids', fixture('tools-noindex-noid.0'), [FIRST, OTHER]],
    ['with one index and an empty id', fixture('tools-sameindex-emptyid.0'), [FIRST, SECOND]],
    ['without arguments', calls(called(FIRST[0] ?? '', '')), [[FIRST[0] ?? '', '']]],
    [
      'in the text',
      chunk({ content: `<tool_call>{"name":"${FIRST[0]}","arguments":${FIRST[1]}}` }) +
        chunk({ content: '</tool_call>' }, 'stop') +
        DONE,
      [FIRST],
    ],
  ])('the calls are told apart %s', async (_how, stream, expected) => {
    const { end: result } = await answerOf(stream)
    if (result.kind === 'failed') throw new Error(result.code)
    expect(result.calls.map((call) => [call.name, call.arguments])).toEqual(expected)
    expect(new Set(result.calls.map(({ callId }) => callId)).size).toBe(expected.length)
  })
})

type Fields = Record<string, unknown>
/** Returns the error of a request that an engine refuses, or null. */
type Rule = (body: Fields) => string | null

const messagesOf = (body: Fields): Fields[] => body['messages'] as Fields[]
const refuses =
  (field: string, text = `${field}: extra inputs are not permitted`): Rule =>
  (body) =>
    field in body ? text : null
const refusesInMessages =
  (field: string): Rule =>
  (body) =>
    messagesOf(body).some((message) => field in message) ? `property '${field}' is unsupported` : null
const roundsOf = (body: Fields): Fields[] => messagesOf(body).filter((message) => 'tool_calls' in message)

const RULES: readonly Rule[] = [
  refuses('max_tokens', 'Unsupported parameter: max_tokens; use max_completion_tokens'),
  refuses('stream_options'),
  refuses('store'),
  (body) =>
    roundsOf(body).every((message) => message['reasoning_content'] === 'I should look.')
      ? null
      : 'the reasoning must be passed back',
]

/** An engine that asks for a tool first, and refuses requests by rules. */
async function strictEngine(
  rules: readonly Rule[],
): Promise<{ url: string; requests: Fields[]; errors: (string | null)[] }> {
  const requests: Fields[] = []
  const errors: (string | null)[] = []
  const { url } = await localSource(({ body: text }, response) => {
    const body = JSON.parse(text) as Fields
    const error = rules.map((rule) => rule(body)).find((message) => message !== null) ?? null
    requests.push(body)
    errors.push(error)
    response.writeHead(error === null ? 200 : 400, {
      'content-type': error === null ? 'text/event-stream' : 'application/json',
    })
    const answer = chunk({ content: 'Hi' }, 'stop') + DONE
    const stream = roundsOf(body).length > 0 || !('tools' in body) ? answer : fixture('engine-reason.0')
    response.end(error === null ? stream : JSON.stringify({ error: { message: error } }))
  })
  return { url, requests, errors }
}

const CONVERSATION: ModelCall['input'] = [
  { role: 'user', content: 'data' },
  { role: 'user', content: 'preferences' },
  { role: 'assistant', content: 'Hello.' },
  { role: 'assistant', content: 'Well?' },
  { role: 'user', content: 'What is new?' },
]

describe('a strict engine', () => {
  test('a turn survives all rules together, and each refused field costs one request of the process', async () => {
    const engine = await strictEngine(RULES)
    const model = modelAt(engine.url)
    expect((await runTurn(model, 5, CONVERSATION)).last.text).toBe('Hi')
    expect(engine.errors.filter((error) => error !== null)).toHaveLength(3)
    expect((await runTurn(model, 5, CONVERSATION)).last.text).toBe('Hi')
    expect(engine.errors.slice(-2)).toEqual([null, null])
    expect(engine.requests.at(-1)).toMatchObject({ max_completion_tokens: 1_000, stream: true })
  })

  test('a refused field is remembered although the reader leaves with the last event', async () => {
    const engine = await strictEngine(RULES)
    const model = modelAt(engine.url)
    for (let turn = 0; turn < 2; turn += 1)
      for await (const event of model.ask(CALL, new AbortController().signal)) if (event.kind === 'end') break
    expect(engine.errors.filter((error) => error !== null)).toHaveLength(3)
  })

  test('what an engine adds to a call, and its reasoning in parts, go back with the call', async () => {
    const extra = { google: { thought_signature: 'abc' } }
    const detail = (fields: object): string =>
      chunk({ reasoning_details: [{ type: 'reasoning.text', index: 0, ...fields }] })
    const sealed = { type: 'reasoning.encrypted', data: 'xyz', index: 1 }
    const first = [
      detail({ text: 'I should ' }),
      detail({ text: 'look.' }),
      detail({ signature: 's' }),
      chunk({ reasoning_details: [sealed] }),
      calls(
        called('search_items', '{"query":', { index: 0, id: 'a', extra_content: extra }),
        rest('"a"}', { index: 0 }),
      ),
    ].join('')
    const requests: Fields[] = []
    const { url } = await localSource(({ body }, response) => {
      requests.push(JSON.parse(body) as Fields)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(requests.length === 1 ? first : chunk({ content: 'Hi' }, 'stop') + DONE)
    })
    expect((await runTurn(modelAt(url))).last.text).toBe('Hi')
    expect(roundsOf(requests[1] ?? {})).toMatchObject([
      {
        tool_calls: [{ id: 'a', extra_content: extra }],
        reasoning_details: [
          { type: 'reasoning.text', index: 0, text: 'I should look.', signature: 's' },
          sealed,
        ],
      },
    ])
  })

  test('reasoning that the engine refuses is left out', async () => {
    const { url } = await strictEngine([refusesInMessages('reasoning_content')])
    expect((await runTurn(modelAt(url))).last.text).toBe('Hi')
  })

  test('a token limit stays if both of its names are refused', async () => {
    const { url, requests } = await strictEngine([refuses('max_tokens'), refuses('max_completion_tokens')])
    expect((await runTurn(modelAt(url))).last.end).toMatchObject({ kind: 'failed', code: 'http_400' })
    expect(requests.map((body) => body['max_tokens'] ?? body['max_completion_tokens'])).toEqual([
      1_000, 1_000,
    ])
  })

  test('adjacent messages of a role are joined by an empty line', () => {
    const form = { isOpenAi: false, refused: new Set<string>() }
    const { messages } = requestBody(form, { ids: ['m'] }, { ...CALL, input: CONVERSATION })
    expect(messages.map(({ role, content }) => [role, content])).toEqual([
      ['system', CALL.instructions],
      ['user', 'data\n\npreferences'],
      ['assistant', 'Hello.\n\nWell?'],
      ['user', 'What is new?'],
    ])
  })

  test('only OpenAI itself gets strict tools and max_completion_tokens', () => {
    const form = { isOpenAi: true, refused: new Set<string>() }
    expect(requestBody(form, { ids: ['m'] }, CALL)).toMatchObject({
      max_completion_tokens: 1_000,
      tools: [{ function: { strict: true } }],
      store: false,
    })
  })
})

test('an engine that requires tools whatever it gets fails the turn', async () => {
  const first = calls(called('search_items', '{}', { id: 'a' }))
  const { url } = await localSource(({ body }, response) => {
    const isFirst = roundsOf(JSON.parse(body) as Fields).length === 0
    response.writeHead(isFirst ? 200 : 400, { 'content-type': isFirst ? 'text/event-stream' : 'text/plain' })
    response.end(isFirst ? first : 'tools must be defined')
  })
  expect((await runTurn(modelAt(url))).last.end).toMatchObject({ kind: 'failed', code: 'http_400' })
})

describe('the thoughts of a model', () => {
  test.each([
    ['think1', 'The answer is 4.'],
    ['think3', 'Answer.'],
  ])('thoughts in tags are not shown: %s', async (name, text) => {
    expect(await answerOf(fixture(name))).toMatchObject({ text, end: { kind: 'end' } })
  })

  test.each(['<think>never closed', '<think>only thoughts</think>\n'])(
    'an answer of thoughts alone is empty: %j',
    async (content) => {
      const { text, end } = await answerOf(chunk({ content }, 'stop') + DONE)
      expect([text, end]).toMatchObject(['', { kind: 'failed', code: 'empty' }])
    },
  )

  const UNOPENED = ['I guess', '.\n</th', 'ink>\n\n', 'Answer.'].map((content) => chunk({ content }))

  test('a model that omits the opening tag fails one turn, and its text is held from then on', async () => {
    const model = modelAt(await serveStream(UNOPENED.join('') + chunk({}, 'stop') + DONE))
    const first = outcome(await collectEvents(model))
    expect([first.text, first.end]).toMatchObject(['I guess.\n', { kind: 'failed', code: 'invalid_stream' }])
    const second = outcome(await collectEvents(model))
    expect([second.text, second.end.kind]).toEqual(['Answer.', 'end'])
  })

  test('thoughts that a known model does not end before a tool call are not shown', async () => {
    const callChunk = chunk({ tool_calls: [called(...(FIRST as [string, string]))] }, 'tool_calls')
    let stream = UNOPENED.join('') + chunk({}, 'stop') + DONE
    const { url } = await localSource((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(stream)
    })
    const model = modelAt(url)
    await collectEvents(model)
    stream = chunk({ content: 'I should look.' }) + callChunk + DONE
    const { text, end } = outcome(await collectEvents(model))
    expect([text, end]).toMatchObject(['', { kind: 'end', calls: [{ name: FIRST[0] }] }])
  })
})
