import { describe, expect, test } from 'vitest'
import { localSource } from '../../support/local-source.ts'
import { afterCall, ASK, CALL, chunk, collectEvents, DONE, modelAt, outcome } from './model-turns.ts'

type Fields = Record<string, unknown>
/** Returns the error of a request that an engine refuses, or null. */
type Rule = (body: Fields) => unknown

const STREAM = chunk({ content: 'Hi' }, 'stop') + DONE

/** An engine that declines requests by a rule. */
async function engine(
  rule: Rule,
  { status = 400, accepted = STREAM } = {},
): Promise<{ url: string; requests: Fields[] }> {
  const requests: Fields[] = []
  const { url } = await localSource(({ body: text }, response) => {
    const body = JSON.parse(text) as Fields
    requests.push(body)
    const error = rule(body)
    const isStream = (error === null || status < 400) && accepted === STREAM
    response.writeHead(error === null ? 200 : status, {
      'content-type': isStream ? 'text/event-stream' : 'application/json',
    })
    response.end(error === null ? accepted : typeof error === 'string' ? error : JSON.stringify(error))
  })
  return { url, requests }
}

const refuses =
  (isRefused: (body: Fields) => boolean, error: unknown): Rule =>
  (body) =>
    isRefused(body) ? error : null
const has =
  (field: string) =>
  (body: Fields): boolean =>
    field in body
const messagesOf = (body: Fields | undefined): Fields[] => body?.['messages'] as Fields[]
const rolesOf = (body: Fields): unknown[] => messagesOf(body).map(({ role }) => role)
const hasSystem = (body: Fields): boolean => rolesOf(body).includes('system')

/** Asks an engine; returns the answer and the requests. */
async function ask(
  rule: Rule,
  call = ASK,
  how: Parameters<typeof engine>[1] = {},
): Promise<{ text: string; end: string; requests: Fields[]; last: Fields }> {
  const { url, requests } = await engine(rule, how)
  const { text, end } = outcome(await collectEvents(modelAt(url), call))
  return { text, end: end.kind === 'failed' ? end.code : end.kind, requests, last: requests.at(-1) ?? {} }
}

const STORE = 'property "store" is unsupported'
const SYSTEM = 'System role not supported'

describe('a refused field', () => {
  test('a refused field is left out, and nothing else', async () => {
    const { text, requests, last } = await ask(refuses(has('stream_options'), 'stream_options: unknown'))
    expect([text, requests.length]).toEqual(['Hi', 2])
    const { stream_options: _left, ...rest } = requests[0] ?? {}
    expect(last).toEqual(rest)
  })

  test.each([
    ['store', STORE, has('store')],
    ['the system message', SYSTEM, hasSystem],
  ])('%s may be refused within the stream', async (_part, message, isRefused) => {
    const error = `data: ${JSON.stringify({ error: { message, code: 400 } })}\n\n`
    expect(await ask(refuses(isRefused, error), ASK, { status: 200 })).toMatchObject({ text: 'Hi' })
  })

  test('a field is sent again if the request was refused without it too', async () => {
    let isRefusing = true
    const { url, requests } = await engine(refuses(() => isRefusing, STORE))
    const model = modelAt(url)
    await collectEvents(model, ASK)
    isRefusing = false
    await collectEvents(model, ASK)
    expect(requests.map(has('store'))).toEqual([true, false, true])
  })

  test('fields that one error names together are left out one after the other', async () => {
    const isRefused = (body: Fields): boolean => has('store')(body) || has('stream_options')(body)
    const error = "does not support parameters: ['store', 'stream_options']"
    const { text, requests } = await ask(refuses(isRefused, error))
    expect([text, requests.length]).toEqual(['Hi', 3])
  })

  test('each refused field costs one request of the process, although the reader leaves with the last event', async () => {
    const limit = refuses(has('max_tokens'), 'Unsupported parameter: max_tokens; use max_completion_tokens')
    const { url, requests } = await engine((body) => limit(body) ?? refuses(has('store'), STORE)(body))
    const model = modelAt(url)
    for (let turn = 0; turn < 2; turn += 1)
      for await (const event of model.ask(CALL, new AbortController().signal)) if (event.kind === 'end') break
    expect(requests).toHaveLength(4)
    expect(requests.at(-1)).toMatchObject({ max_completion_tokens: 1_000, stream: true })
  })

  test('a token limit stays if both of its names are refused', async () => {
    const rule: Rule = (body) =>
      `${has('max_tokens')(body) ? 'max_tokens' : 'max_completion_tokens'}: unknown`
    const { end, requests } = await ask(rule)
    expect(end).toBe('http_400')
    expect(requests.map((body) => body['max_tokens'] ?? body['max_completion_tokens'])).toEqual([
      1_000, 1_000,
    ])
  })
})

test('a refused system message becomes the beginning of the first message of the user', async () => {
  const { text, last } = await ask(refuses(hasSystem, SYSTEM))
  expect([text, rolesOf(last)]).toEqual(['Hi', ['user', 'assistant', 'user']])
  expect(messagesOf(last)[0]).toEqual({ role: 'user', content: `${CALL.instructions}\n\nHi` })
})

test('a refused stream becomes a whole completion, and the tools stay', async () => {
  const accepted = JSON.stringify({
    choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }],
  })
  const rule = refuses(has('stream'), { error: 'stream is not supported' })
  const { text, requests, last } = await ask(rule, ASK, { accepted })
  expect([text, requests.length]).toEqual(['Hi', 2])
  expect(last).toHaveProperty('tools')
  expect(last).not.toHaveProperty('stream_options')
})

test.each([
  [400, [true, false, false]],
  [500, [true, false, true, false]],
])('refused tools are left out, and remembered unless it was a fault: status %i', async (status, sent) => {
  const { url, requests } = await engine(refuses(has('tools'), 'tools are not supported'), { status })
  const model = modelAt(url)
  for (let turn = 0; turn < 2; turn += 1) expect(outcome(await collectEvents(model, ASK)).text).toBe('Hi')
  expect(requests.map(has('tools'))).toEqual(sent)
})

describe('tools that an engine requires after calls', () => {
  const LAST = { ...afterCall(), tools: [] }
  const lacksTools = (body: Fields): boolean => !('tools' in body)

  test('the tools are those that were called, none of which may be called again', async () => {
    const { url, requests } = await engine(refuses(lacksTools, 'blocks must define tools'))
    const model = modelAt(url)
    for (let turn = 0; turn < 2; turn += 1) expect(outcome(await collectEvents(model, LAST)).text).toBe('Hi')
    expect(requests.map(({ tool_choice: choice }) => choice)).toEqual([undefined, 'none', 'none'])
    expect(requests.at(-1)?.['tools']).toMatchObject([{ function: { name: 'search_items' } }])
    expect(outcome(await collectEvents(model, { ...CALL, tools: [] })).end.kind).toBe('failed')
  })

  test.each([
    ['tool_choice', 'tool_choice: none is not supported', 'Hi'],
    ['tools', 'tools are not supported', ''],
  ])('the tools are sent as far as the engine accepts %s', async (field, message, text) => {
    const isRefused = (body: Fields): boolean => lacksTools(body) || has(field)(body)
    const sent = await ask(refuses(isRefused, `tools must be defined; ${message}`), LAST)
    expect([sent.text, sent.requests.length]).toEqual([text, 3])
  })
})

describe('a turn after a call', () => {
  const after = async (isRefused: (body: Fields) => boolean, message: string, reasoning = {}) => {
    const { text, last } = await ask(refuses(isRefused, { error: { message } }), afterCall(reasoning))
    expect(text).toBe('Hi')
    expect(last).toHaveProperty('tools')
    return messagesOf(last)
  }

  test('words replace empty content that is refused', async () => {
    const isEmpty = (body: Fields): boolean => messagesOf(body).some(({ content }) => content === '')
    expect(await after(isEmpty, 'Empty content is not allowed')).toHaveLength(6)
  })

  test('reasoning that the engine refuses is left out', async () => {
    const hasReasoning = (body: Fields): boolean => messagesOf(body).some(has('reasoning_content'))
    const error = "property 'reasoning_content' is unsupported"
    expect(await after(hasReasoning, error, { reasoning_content: 'hm' })).toHaveLength(6)
  })

  test.each([
    [{}, 'Tools:'],
    [{ reasoning: 'hm' }, 'hm'],
  ])('a call with %j has the reasoning that an engine requires', async (reasoning, sent) => {
    const lacks = (body: Fields): boolean =>
      messagesOf(body).some((each) => 'tool_calls' in each && !each['reasoning_content'])
    const messages = await after(lacks, 'reasoning_content must be passed back', reasoning)
    expect(messages.at(-2)).toMatchObject({ reasoning_content: sent, tool_calls: [{ id: 'a' }] })
  })

  test('calls with their results become text for an engine that refuses such messages', async () => {
    const messages = await after((body) => rolesOf(body).includes('tool'), "role 'tool' is not supported")
    expect(messages.slice(-2)).toEqual([
      { role: 'assistant', content: 'search_items({"query":"x"})' },
      { role: 'user', content: 'search_items: {"items":[]}' },
    ])
  })
})

test.each(['maxItems', 'minimum', 'maximum'])(
  'a refused %s is left out of the schemas, and the tools stay',
  async (member) => {
    const error = `Unknown name "${member}" at 'tools[0].function_declarations[0].parameters'`
    const isRefused = (body: Fields): boolean => JSON.stringify(body['tools'] ?? []).includes(`"${member}"`)
    const { text, requests, last } = await ask(refuses(isRefused, [{ error }]))
    expect([text, requests.length]).toEqual(['Hi', 2])
    expect(last['tools']).toHaveLength(6)
  },
)
