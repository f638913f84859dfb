import { describe, expect, test } from 'vitest'
import { requestBody } from '../../../src/adapters/provider/model-request.ts'
import { refusedPart } from '../../../src/adapters/provider/refusals.ts'
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

const STORE = 'property "store" is unsupported'
const SYSTEM = 'System role not supported'
const extra = (...loc: (string | number)[]): object => ({
  detail: [{ type: 'extra_forbidden', loc, msg: 'Extra inputs are not permitted', input: { max_tokens: 1 } }],
})

const CALLED = { callId: 'a', name: 'search_items', arguments: '{"query":"x"}' }
const CALLS = [{ id: 'a', name: CALLED.name, arguments: CALLED.arguments }]
/** A turn after a call, with the reasoning of the call. */
const afterCall = (reasoning = {}): typeof ASK => ({
  ...ASK,
  rounds: [
    { output: { text: '', reasoning, calls: CALLS }, results: [{ call: CALLED, output: '{"items":[]}' }] },
  ],
})

/** The part that an error refuses, of a turn at its beginning by default. */
function refusedBy(error: unknown, status = 400, call = ASK, before: string[] = []): string | null {
  const form = { isOpenAi: false, refused: new Set(before) }
  const refusal = typeof error === 'string' ? error : JSON.stringify(error)
  return refusedPart({ code: `http_${status}`, refusal }, form, requestBody(form, { ids: ['m'] }, call))
}

test.each<[part: string | null, how: string, error: unknown, status?: number]>([
  ['store', 'a text', STORE],
  ['store', 'a text in error', { error: STORE }],
  ['store', 'a message in error', { error: { message: STORE, code: 400 } }],
  ['store', 'a detail', { detail: STORE }, 422],
  ['store', 'a message', { object: 'error', message: STORE }],
  ['store', 'an error in a list', [{ error: { code: 400, message: `Unknown name ${STORE}` } }]],
  ['store', 'the error of a provider', { error: { metadata: { raw: `{"message":"bad:\\nstore"}` } } }],
  ['store', 'a place', extra('body', 'store'), 422],
  ['stream_options', 'a deeper place', extra('body', 'stream_options', 'include_usage'), 422],
  ['store', 'a member', { store: ['Unknown field.'] }],
  ['store', 'a list of names', { error: { message: "does not support parameters: ['store', 'n']" } }],
  ['store', 'an argument', { error: { message: 'Unrecognized request argument supplied: store' } }],
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
  [
    null,
    'a field that cannot be left out',
    "Unsupported value: 'temperature' does not support 0.2 with this model",
  ],
  [null, 'no field', "Unsupported value: 'hype' does not support 0.2 with this model"],
])('an error refuses %s, named by %s', (part, _how, error, status) => {
  expect(refusedBy(error, status)).toBe(part)
})

type Told = string | [error: string, status: number]

/** Errors as engines tell them, by the part that each refuses. */
const REFUSALS: Record<string, Told[]> = {
  system: [
    SYSTEM,
    [SYSTEM, 422],
    [`Error rendering prompt with jinja template: "${SYSTEM}"`, 500],
    'Developer instruction is not enabled for models/gemma-3-27b-it',
    "This model doesn't support system messages. Try again without a system message.",
    "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    "messages.0.role: Input should be 'user' or 'assistant'",
    'Conversation roles must alternate user/assistant/user/assistant/...',
    'Only user and assistant roles are supported!',
    'A conversation must start with a user message.',
    'Invalid role: system',
  ],
  stream: [
    "Unsupported value: 'stream' does not support true with this model.",
    ['Cannot use tools with stream', 500],
    "This model doesn't support tool use in streaming mode.",
  ],
  tools: [
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    ['No endpoints found that support tool use. To learn more about provider routing, visit: …', 404],
    'registry.ollama.ai/library/gemma:2b does not support tools',
    ['tools param requires --jinja flag', 500],
    'Function calling is not enabled for this model',
    "Unsupported parameter: 'tool_choice'",
    'Tools are disabled for this model',
    'The model does not have tool capabilities',
    'tool_use is unavailable',
    '当前模型不支持工具调用',
    'Unknown name "tools": Cannot find field.',
    [JSON.stringify(extra('body', 'tools')), 422],
  ],
  maxItems: [`Unknown name "maxItems" at 'tools[0].function_declarations[0].parameters'`],
  nothing: [
    'max_tokens is too large: 1000. This model supports at most 512 completion tokens',
    'max_tokens must be less than or equal to 8',
    "This model's maximum context length is 4096 tokens (4000 in the messages, 1000 in max_tokens)",
    'The system is overloaded, message could not be processed',
    'The maximum allowed context length is 4096 tokens; you requested 9000 in messages and tools',
    'the messages and tools are longer than the context',
    ['No endpoints found matching your data policy', 404],
    ['The model `gpt-none` does not exist', 404],
    ['an internal error', 500],
    ['Failed to parse tool call arguments as JSON: unexpected end of input', 500],
    JSON.stringify({ message: 'Failed to call a function.', failed_generation: 'supported' }),
    JSON.stringify({ code: 'tool_use_failed', message: 'tool call validation failed: unsupported' }),
  ],
}

/** The same of a turn after a call, whose system message was refused before. */
const REFUSALS_AFTER_CALL: Record<string, Told[]> = {
  empty_content: [
    "Invalid 'messages[2].content': string too short. Expected a string with minimum length 1.",
    'String should have at least 1 character',
    'Message content cannot be an empty string',
    'Empty content is not allowed',
    'Each message must have at least one content element',
    'content field is a required field',
    'messages: the length of content must be greater than 0',
    "GenerateContentRequest.contents[2].parts[0].data: required oneof field 'data' must have one initialized field",
  ],
  no_reasoning: [
    'reasoning_content is missing in assistant tool call message at index 3',
    'The `reasoning_content` in the thinking mode must be passed back to the API.',
    'The `content[].thinking` in the thinking mode must be passed back to the API.',
  ],
  call_messages: [
    ['Template error: Conversation roles must alternate user/assistant/user/assistant/...', 422],
    "messages.4.role: Input should be 'system', 'user' or 'assistant'",
    "role 'tool' is not supported",
    'Tool call id was chatcmpl-tool-1 but must be a-z, A-Z, 0-9, with a length of 9.',
    'This model only supports single tool-calls at once!',
    ['Cannot pass both content and thinking in an assistant message with tool calls!', 500],
    'Function call is missing a thought_signature in functionCall parts. This is required for tools.',
    'Please ensure that function call turn comes immediately after a user turn',
    'contents[3].parts[0].function_response.name: Name must be given',
    'Expected `thinking`, but found `tool_use`. When `thinking` is enabled, a message must start with a thinking block',
  ],
}

const rowsOf = (refusals: Record<string, Told[]>): [string, string, number][] =>
  Object.entries(refusals).flatMap(([part, errors]) =>
    errors.map((told): [string, string, number] =>
      typeof told === 'string' ? [part, told, 400] : [part, ...told],
    ),
  )

test.each(rowsOf(REFUSALS))('%s is refused by the error: %s', (part, message, status) => {
  expect(refusedBy({ error: { message } }, status) ?? 'nothing').toBe(part)
})

test.each(rowsOf(REFUSALS_AFTER_CALL))(
  '%s of a turn after a call is refused by the error: %s',
  (part, message, status) => {
    expect(refusedBy({ error: { message } }, status, afterCall(), ['system'])).toBe(part)
  },
)

test.each([
  'Requests which include `tool_use` or `tool_result` blocks must define tools',
  'litellm.UnsupportedParamsError: Anthropic expects the `tools=` param to be passed in.',
  'The toolConfig field must be defined when using toolUse and toolResult content blocks.',
])('an engine requires the tools that were called: %s', (error) => {
  expect(refusedBy({ error: { message: error } }, 400, { ...afterCall(), tools: [] })).toBe('no_tools')
})

test('an error that names no part ends the turn after one request', async () => {
  const { end, requests } = await survive(() => true, { error: 'messages are wrong' })
  expect([end, requests.length]).toEqual(['http_400', 1])
})

describe('a refused field', () => {
  test('a refused field is left out, and nothing else', async () => {
    const { text, requests, last } = await survive(has('stream_options'), {
      error: 'stream_options: unknown',
    })
    expect([text, requests.length]).toEqual(['Hi', 2])
    const { stream_options: _left, ...rest } = requests[0] ?? {}
    expect(last).toEqual(rest)
  })

  test.each([
    ['store', STORE, has('store')],
    ['the system message', SYSTEM, hasSystem],
  ])('%s may be refused within the stream', async (_part, message, isRefused) => {
    const error = `data: ${JSON.stringify({ error: { message, code: 400 } })}\n\n`
    expect(await survive(isRefused, { status: 200, error })).toMatchObject({ text: 'Hi' })
  })

  test('a field is sent again if the request was refused without it too', async () => {
    let refuses = true
    const { url, requests } = await engine(() => refuses, { error: STORE })
    const model = modelAt(url)
    await collectEvents(model, ASK)
    refuses = false
    await collectEvents(model, ASK)
    expect(requests.map(has('store'))).toEqual([true, false, true])
  })

  test('fields that one error names together are left out one after the other', async () => {
    const both = (body: Fields): boolean => has('store')(body) || has('stream_options')(body)
    const error = "does not support parameters: ['store', 'stream_options']"
    const { text, requests } = await survive(both, { error })
    expect([text, requests.length]).toEqual(['Hi', 3])
  })
})

test('a refused system message becomes the beginning of the first message of the user', async () => {
  const { text, last } = await survive(hasSystem, { error: SYSTEM })
  expect(text).toBe('Hi')
  expect(rolesOf(last)).toEqual(['user', 'assistant', 'user'])
  expect(last['messages']).toMatchObject([{ content: `${CALL.instructions}\n\nHi` }, {}, {}])
})

test('a refused stream becomes a whole completion, and the tools stay', async () => {
  const requests: Fields[] = []
  const { url } = await localSource(({ body }, response) => {
    const request = JSON.parse(body) as Fields
    requests.push(request)
    response.writeHead('stream' in request ? 400 : 200, { 'content-type': 'application/json' })
    const completion = { choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }] }
    response.end(JSON.stringify('stream' in request ? { error: 'stream is not supported' } : completion))
  })
  expect(outcome(await collectEvents(modelAt(url), ASK)).text).toBe('Hi')
  expect(requests).toHaveLength(2)
  expect(requests[1]).toHaveProperty('tools')
  expect(requests[1]).not.toHaveProperty('stream_options')
})

test.each([
  [400, [true, false, false]],
  [500, [true, false, true, false]],
])('refused tools are left out, and remembered unless it was a fault: status %i', async (status, sent) => {
  const { url, requests } = await engine(has('tools'), { status, error: 'tools are not supported' })
  const model = modelAt(url)
  for (let turn = 0; turn < 2; turn += 1) expect(outcome(await collectEvents(model, ASK)).text).toBe('Hi')
  expect(requests.map(has('tools'))).toEqual(sent)
})

describe('tools that an engine requires after calls', () => {
  const LAST = { ...afterCall(), tools: [] }
  const lacksTools = (body: Fields): boolean => !('tools' in body)

  test('the tools are those that were called, none of which may be called again', async () => {
    const { url, requests } = await engine(lacksTools, { error: 'blocks must define tools' })
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
    const refuses = (body: Fields): boolean => lacksTools(body) || has(field)(body)
    const { url, requests } = await engine(refuses, { error: `tools must be defined; ${message}` })
    expect(outcome(await collectEvents(modelAt(url), LAST)).text).toBe(text)
    expect(requests.length).toBe(3)
  })
})

describe('a turn after a call', () => {
  const messagesOf = (body: Fields | undefined): Fields[] => body?.['messages'] as Fields[]
  const after = async (isRefused: (body: Fields) => boolean, message: string, reasoning = {}) => {
    const { url, requests } = await engine(isRefused, { error: { error: { message } } })
    expect(outcome(await collectEvents(modelAt(url), afterCall(reasoning))).text).toBe('Hi')
    expect(requests.at(-1)).toHaveProperty('tools')
    return messagesOf(requests.at(-1))
  }

  test('words replace empty content that is refused', async () => {
    const isEmpty = (body: Fields): boolean => messagesOf(body).some(({ content }) => content === '')
    expect(await after(isEmpty, 'Empty content is not allowed')).toHaveLength(6)
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

describe('the schemas of tools', () => {
  test.each(['"type":[', 'null]', 'additionalProperties', '"required":[]', '"null"', '"strict"'])(
    'the schemas have no %s for engines other than OpenAI',
    (text) => {
      const form = { isOpenAi: false, refused: new Set<string>() }
      expect(JSON.stringify(requestBody(form, { ids: ['m'] }, ASK).tools)).not.toContain(text)
    },
  )

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
