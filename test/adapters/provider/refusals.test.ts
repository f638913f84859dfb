import { describe, expect, test } from 'vitest'
import { TOOL_DEFINITIONS } from '../../../src/domain/agent/tools.ts'
import { localSource } from '../../support/local-source.ts'
import { CALL, collectEvents, modelAt, outcome } from '../../support/model-turns.ts'

type Fields = Record<string, unknown>

const STREAM =
  'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

/** An engine that declines requests while they have what it refuses. */
async function engine(
  isRefused: (body: Fields) => boolean,
  { status = 400, error }: { status?: number; error: unknown },
): Promise<{ url: string; requests: Fields[] }> {
  const requests: Fields[] = []
  const { url } = await localSource(({ body: text }, response) => {
    const body = JSON.parse(text) as Fields
    requests.push(body)
    const declines = isRefused(body)
    response.writeHead(declines ? status : 200, {
      'content-type': declines && status >= 400 ? 'application/json' : 'text/event-stream',
    })
    response.end(declines ? (typeof error === 'string' ? error : JSON.stringify(error)) : STREAM)
  })
  return { url, requests }
}

const has =
  (field: string) =>
  (body: Fields): boolean =>
    field in body
const rolesOf = (body: Fields): unknown[] => (body['messages'] as Fields[]).map(({ role }) => role)
const hasSystem = (body: Fields): boolean => rolesOf(body).includes('system')
const hasInSchema =
  (text: string) =>
  (body: Fields): boolean =>
    JSON.stringify(body['tools'] ?? []).includes(text)

const ASK = { ...CALL, tools: TOOL_DEFINITIONS }

/** Asks an engine that refuses a part; returns its last request. */
async function survive(
  isRefused: (body: Fields) => boolean,
  response: { status?: number; error: unknown },
): Promise<{ text: string; end: string; requests: Fields[]; last: Fields }> {
  const { url, requests } = await engine(isRefused, response)
  const { text, end } = outcome(await collectEvents(modelAt(url), ASK))
  return { text, end: end.kind === 'failed' ? end.code : end.kind, requests, last: requests.at(-1) ?? {} }
}

const LOST = {
  system: 'System role not supported',
  stored: 'property "store" is unsupported',
}
const extra = (...loc: (string | number)[]): object => ({
  detail: [{ type: 'extra_forbidden', loc, msg: 'Extra inputs are not permitted', input: { max_tokens: 1 } }],
})

describe('a refused field is left out, and the tools stay', () => {
  test.each<[string, string, unknown, number?]>([
    ['store', 'a text', LOST.stored],
    ['store', 'a text in error', { error: LOST.stored }],
    ['store', 'a message in error', { error: { message: LOST.stored, code: 400 } }],
    ['store', 'a detail', { detail: LOST.stored }, 422],
    ['store', 'a message', { object: 'error', message: LOST.stored }],
    ['store', 'an error in a list', [{ error: { code: 400, message: `Unknown name ${LOST.stored}` } }]],
    ['store', 'the error of a provider', { error: { metadata: { raw: `{"message":"bad:\\nstore"}` } } }],
    ['store', 'a place', extra('body', 'store'), 422],
    ['stream_options', 'a deeper place', extra('body', 'stream_options', 'include_usage'), 422],
    ['store', 'a member', { store: ['Unknown field.'] }],
    ['store', 'a list of names', { error: { message: "does not support parameters: ['store', 'n']" } }],
    ['store', 'an argument', { error: { message: 'Unrecognized request argument supplied: store' } }],
    ['store', 'a property', { error: { message: "property 'store' is unsupported" } }],
    [
      'stream_options',
      'an error of Python that repeats the request',
      "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'input': {'store': False, 'tools': []}}]",
    ],
    [
      'stream_options',
      'a sentence with its value',
      "not permitted, field: 'stream_options', value: {'store': 1}",
    ],
    ['stream_options', 'a member of the field', 'include_usage is not supported'],
    ['stream_options', 'a path', { error: 'stream_options.include_usage: unknown' }],
    ['stream_options', 'another spelling', 'Unknown field "streamOptions"'],
    ['max_tokens', 'a replacement', "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'."],
  ])('%s named by %s', async (field, _how, error, status = 400) => {
    const { text, requests, last } = await survive(has(field), { status, error })
    expect([text, requests.length]).toEqual(['Hi', 2])
    const without = new Set(Object.keys(requests[0] ?? {}).filter((name) => name !== field))
    expect(new Set(Object.keys(last))).toEqual(
      field === 'max_tokens' ? without.add('max_completion_tokens') : without,
    )
  })

  test('a field may be refused within the stream', async () => {
    const error = `data: ${JSON.stringify({ error: { message: LOST.stored, code: 400 } })}\n\n`
    expect(await survive(has('store'), { status: 200, error })).toMatchObject({ text: 'Hi' })
  })

  test('a field is sent again if the request was refused without it too', async () => {
    let refuses = true
    const { url, requests } = await engine(() => refuses, { error: LOST.stored })
    const model = modelAt(url)
    await collectEvents(model, ASK)
    refuses = false
    await collectEvents(model, ASK)
    expect(requests.map(has('store'))).toEqual([true, false, true])
  })

  test('fields that one error names together are left out one after the other', async () => {
    const both = (body: Fields): boolean => has('store')(body) || has('stream_options')(body)
    const error = { error: { message: "does not support parameters: ['store', 'stream_options']" } }
    const { text, requests } = await survive(both, { error })
    expect([text, requests.length]).toEqual(['Hi', 3])
  })

  test.each(['temperature', 'model', 'messages', 'hype'])(
    'an error about %s, which cannot be left out, ends the turn',
    async (name) => {
      const error = `Unsupported value: '${name}' does not support 0.2 with this model`
      const { end, requests } = await survive(() => true, { error })
      expect([end, requests.length]).toEqual(['http_400', 1])
    },
  )
})

test.each([
  'max_tokens is too large: 1000. This model supports at most 512 completion tokens',
  'max_tokens must be less than or equal to 8',
  "This model's maximum context length is 4096 tokens (4000 in the messages, 1000 in max_tokens)",
  'The system is overloaded, message could not be processed',
])('an error about a value or a fault takes nothing from requests: %s', async (message) => {
  const { end, requests } = await survive(() => true, { error: { error: { message } } })
  expect([end, requests.length]).toEqual(['http_400', 1])
})

describe('a refused system message', () => {
  test.each<[string, number?]>([
    [LOST.system],
    [LOST.system, 422],
    [`Error rendering prompt with jinja template: "${LOST.system}"`, 500],
    ['Developer instruction is not enabled for models/gemma-3-27b-it'],
    ["This model doesn't support system messages. Try again without a system message."],
    ["Unsupported value: 'messages[0].role' does not support 'system' with this model."],
    ["messages.0.role: Input should be 'user' or 'assistant'"],
    ['Conversation roles must alternate user/assistant/user/assistant/...'],
    ['Only user and assistant roles are supported!'],
    ['A conversation must start with a user message.'],
    ['Invalid role: system'],
  ])('becomes the beginning of the first message of the user: %s', async (error, status = 400) => {
    const { text, requests, last } = await survive(hasSystem, {
      status,
      error: { error: { message: error } },
    })
    expect([text, requests.length]).toEqual(['Hi', 2])
    expect(rolesOf(last)).toEqual(['user', 'assistant', 'user'])
    expect(last['messages']).toMatchObject([{ content: `${CALL.instructions}\n\nHi` }, {}, {}])
    expect(Object.keys(last)).toEqual(Object.keys(requests[0] ?? {}))
  })

  test('may be refused within the stream', async () => {
    const error = `data: ${JSON.stringify({ error: { message: LOST.system, code: 400 } })}\n\n`
    expect(await survive(hasSystem, { status: 200, error })).toMatchObject({ text: 'Hi' })
  })
})

test.each<[string, number?]>([
  ["Unsupported value: 'stream' does not support true with this model."],
  ['Cannot use tools with stream', 500],
  ["This model doesn't support tool use in streaming mode."],
])('a refused stream becomes a whole completion, and the tools stay: %s', async (message, status = 400) => {
  const requests: Fields[] = []
  const { url } = await localSource(({ body }, response) => {
    const request = JSON.parse(body) as Fields
    requests.push(request)
    response.writeHead('stream' in request ? status : 200, { 'content-type': 'application/json' })
    const completion = { choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }] }
    response.end(JSON.stringify('stream' in request ? { error: { message } } : completion))
  })
  expect(outcome(await collectEvents(modelAt(url), ASK)).text).toBe('Hi')
  expect(requests).toHaveLength(2)
  expect(requests[1]).toHaveProperty('tools')
  expect(requests[1]).not.toHaveProperty('stream_options')
})

describe('refused tools', () => {
  test.each<[string, number?]>([
    ['"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'],
    ['No endpoints found that support tool use. To learn more about provider routing, visit: …', 404],
    ['registry.ollama.ai/library/gemma:2b does not support tools'],
    ['tools param requires --jinja flag', 500],
    ['Function calling is not enabled for this model'],
    ["Unsupported parameter: 'tool_choice'"],
    ['Tools are disabled for this model'],
    ['The model does not have tool capabilities'],
    ['tool_use is unavailable'],
    ['当前模型不支持工具调用'],
    ['Unknown name "tools": Cannot find field.'],
    [JSON.stringify(extra('body', 'tools')), 422],
  ])('are left out: %s', async (error, status = 400) => {
    const { text, requests, last } = await survive(has('tools'), { status, error: { error } })
    expect([text, requests.length]).toEqual(['Hi', 2])
    expect(last).not.toHaveProperty('tools')
  })

  test.each<[string, number?]>([
    ['The maximum allowed context length is 4096 tokens; you requested 9000 in messages and tools'],
    ['the messages and tools are longer than the context'],
    ['No endpoints found matching your data policy', 404],
    ['The model `gpt-none` does not exist', 404],
    ['an internal error', 500],
  ])('are not suspected of other errors: %s', async (error, status = 400) => {
    const { end, requests } = await survive(() => true, { status, error: { error: { message: error } } })
    expect([end, requests.length]).toEqual([`http_${status}`, 1])
  })

  test.each<[string, unknown, number]>([
    ['Failed to parse tool call arguments as JSON: unexpected end of input', null, 500],
    ['Failed to call a function.', '<function=search_items>{"query": "supported"}</function>', 400],
    ['tool call validation failed: parameters did not match schema', 'unsupported', 400],
  ])('are not suspected when the model wrote a wrong call: %s', async (message, written, status) => {
    const error = { error: { message, code: 'tool_use_failed', failed_generation: written } }
    const { end, requests } = await survive(() => true, { status, error })
    expect([end, requests.length]).toEqual([`http_${status}`, 1])
  })

  test('are sent again after a fault that named them', async () => {
    const { url, requests } = await engine(has('tools'), { status: 500, error: 'tools are not supported' })
    const model = modelAt(url)
    await collectEvents(model, ASK)
    await collectEvents(model, ASK)
    expect(requests.map((body) => 'tools' in body)).toEqual([true, false, true, false])
  })

  test('are remembered as refused, for the models of the request', async () => {
    const { url, requests } = await engine(has('tools'), { error: 'tools are not supported' })
    const model = modelAt(url)
    await collectEvents(model, ASK)
    await collectEvents(model, ASK)
    expect(requests.map((body) => 'tools' in body)).toEqual([true, false, false])
  })
})

describe('tools that an engine requires after calls', () => {
  const called = { text: '', reasoning: {}, calls: [{ id: 'a', name: 'search_items', arguments: '{}' }] }
  const call = { callId: 'a', name: 'search_items', arguments: '{}' }
  const LAST = { ...CALL, tools: [], rounds: [{ output: called, results: [{ call, output: 'r' }] }] }
  const lacksTools = (body: Fields): boolean => !('tools' in body)

  test.each([
    'Requests which include `tool_use` or `tool_result` blocks must define tools',
    'litellm.UnsupportedParamsError: Anthropic expects the `tools=` param to be passed in.',
    'The toolConfig field must be defined when using toolUse and toolResult content blocks.',
  ])('are those that were called, none of which may be called again: %s', async (message) => {
    const { url, requests } = await engine(lacksTools, { error: { error: { message } } })
    const model = modelAt(url)
    for (let turn = 0; turn < 2; turn += 1) expect(outcome(await collectEvents(model, LAST)).text).toBe('Hi')
    expect(requests.map(({ tool_choice: choice }) => choice)).toEqual([undefined, 'none', 'none'])
    expect(requests.at(-1)?.['tools']).toMatchObject([{ function: { name: 'search_items' } }])
    expect(outcome(await collectEvents(model, { ...CALL, tools: [] })).end.kind).toBe('failed')
  })

  test.each([
    ['tool_choice', 'tool_choice: none is not supported', 'Hi'],
    ['tools', 'tools are not supported', ''],
  ])('are sent as far as the engine accepts %s', async (field, message, text) => {
    const refuses = (body: Fields): boolean => lacksTools(body) || has(field)(body)
    const { url, requests } = await engine(refuses, { error: `tools must be defined; ${message}` })
    expect(outcome(await collectEvents(modelAt(url), LAST)).text).toBe(text)
    expect(requests.length).toBe(3)
  })
})

test.each([
  "Invalid 'messages[2].content': string too short. Expected a string with minimum length 1.",
  'String should have at least 1 character',
  'Message content cannot be an empty string',
  'Empty content is not allowed',
  'Each message must have at least one content element',
  'content field is a required field',
  'messages: the length of content must be greater than 0',
  "GenerateContentRequest.contents[2].parts[0].data: required oneof field 'data' must have one initialized field",
])('words replace empty content that is refused: %s', async (message) => {
  const contents = (body: Fields): unknown[] => (body['messages'] as Fields[]).map(({ content }) => content)
  const { url, requests } = await engine((body) => contents(body).includes(''), {
    error: { error: { message } },
  })
  const called = { text: '', reasoning: {}, calls: [{ id: 'a', name: 'search_items', arguments: '{}' }] }
  const call = { callId: 'a', name: 'search_items', arguments: '{}' }
  const round = { output: called, results: [{ call, output: 'r' }] }
  expect(outcome(await collectEvents(modelAt(url), { ...ASK, rounds: [round] })).text).toBe('Hi')
  expect(requests).toHaveLength(2)
})

describe('calls with their results', () => {
  const call = { callId: 'a', name: 'search_items', arguments: '{"query":"x"}' }
  const calls = [{ id: 'a', name: call.name, arguments: call.arguments }]
  const turn = (reasoning: object): typeof ASK => ({
    ...ASK,
    rounds: [{ output: { text: '', reasoning, calls }, results: [{ call, output: '{"items":[]}' }] }],
  })
  const messagesOf = (body: Fields | undefined): Fields[] => body?.['messages'] as Fields[]

  test.each([
    [
      'thinking is enabled but reasoning_content is missing in assistant tool call message at index 3',
      {},
      'Tools:',
    ],
    [
      'The `reasoning_content` in the thinking mode must be passed back to the API.',
      { reasoning: 'hm' },
      'hm',
    ],
  ])('have the reasoning that an engine requires: %s', async (message, reasoning, sent) => {
    const lacks = (body: Fields): boolean =>
      messagesOf(body).some((each) => 'tool_calls' in each && !each['reasoning_content'])
    const { url, requests } = await engine(lacks, { error: { error: { message } } })
    expect(outcome(await collectEvents(modelAt(url), turn(reasoning))).text).toBe('Hi')
    expect(requests).toHaveLength(2)
    expect(messagesOf(requests[1]).at(-2)).toMatchObject({
      reasoning_content: sent,
      tool_calls: [{ id: 'a' }],
    })
    expect(requests[1]).toHaveProperty('tools')
  })

  test.each<[string, number?]>([
    [
      'Template error: syntax error: Conversation roles must alternate user/assistant/user/assistant/...',
      422,
    ],
    ["messages.4.role: Input should be 'system', 'user' or 'assistant'"],
    ["role 'tool' is not supported"],
    ['Tool call id was chatcmpl-tool-1 but must be a-z, A-Z, 0-9, with a length of 9.'],
    ['This model only supports single tool-calls at once!'],
    ['Cannot pass both content and thinking in an assistant message with tool calls!', 500],
    ['Function call is missing a thought_signature in functionCall parts. This is required for tools.'],
    ['Please ensure that function call turn comes immediately after a user turn'],
    [
      'Expected `thinking`, but found `tool_use`. When `thinking` is enabled, a message must start with a thinking block',
    ],
  ])('become text for an engine that refuses such messages: %s', async (message, status = 400) => {
    const refuses = (body: Fields): boolean => rolesOf(body).includes('tool')
    const { url, requests } = await engine(refuses, { status, error: { error: { message } } })
    expect(outcome(await collectEvents(modelAt(url), turn({}))).text).toBe('Hi')
    expect(messagesOf(requests.at(-1)).slice(-2)).toEqual([
      { role: 'assistant', content: 'search_items({"query":"x"})' },
      { role: 'user', content: 'search_items: {"items":[]}' },
    ])
    expect(requests.at(-1)).toHaveProperty('tools')
  })
})

describe('the schemas of tools', () => {
  test.each<[string, (body: Fields) => boolean]>([
    ['lists of types', hasInSchema('"type":[')],
    ['null as a value', hasInSchema('null]')],
    ['closed objects', hasInSchema('additionalProperties')],
    ['empty lists of required names', hasInSchema('"required":[]')],
    ['a type null', hasInSchema('"null"')],
    ['strict functions', hasInSchema('"strict"')],
  ])('have no %s for engines other than OpenAI', async (_what, isRefused) => {
    const { text, requests } = await survive(isRefused, { error: 'invalid schema' })
    expect([text, requests.length]).toEqual(['Hi', 1])
  })

  test('arguments that may be null are optional', async () => {
    const { last } = await survive(() => false, { error: '' })
    expect(last['tools']).toMatchObject([
      {
        function: {
          parameters: {
            type: 'object',
            required: ['query'],
            properties: {
              sources: { type: 'array', maxItems: 8, items: { type: 'string' } },
              limit: { type: 'integer', minimum: 1, maximum: 20 },
            },
          },
        },
      },
      ...TOOL_DEFINITIONS.slice(1).map(({ name }) => ({ function: { name } })),
    ])
  })

  test.each(['maxItems', 'minimum', 'maximum'])(
    'a refused %s is left out of the schemas, and the tools stay',
    async (member) => {
      const error = `Unknown name "${member}" at 'tools[0].function_declarations[0].parameters'`
      const { text, requests, last } = await survive(hasInSchema(`"${member}"`), { error: [{ error }] })
      expect([text, requests.length]).toEqual(['Hi', 2])
      expect(last['tools']).toHaveLength(6)
    },
  )
})
