import { expect, test } from 'vitest'
import { requestBody } from '../../../src/adapters/provider/model-request.ts'
import { refusedPart } from '../../../src/adapters/provider/refusals.ts'
import { afterCall, ASK } from './model-turns.ts'

const STORE = 'property "store" is unsupported'
const SYSTEM = 'System role not supported'
const extra = (...loc: (string | number)[]): object => ({
  detail: [{ type: 'extra_forbidden', loc, msg: 'Extra inputs are not permitted', input: { max_tokens: 1 } }],
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
  ['max_tokens', 'the other name', { error: { message: "Missing parameter: 'max_completion_tokens'." } }],
  ['max_tokens', 'a sentence', 'max_tokens is not a valid parameter for this model'],
  ['max_tokens', 'a prohibition', "'max_tokens' must not be set for this model"],
  ['max_tokens', 'both names', "Use 'max_completion_tokens' instead of 'max_tokens'."],
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
    ['messages[0]: unknown variant `system`, expected `user` or `assistant`', 422],
    '该模型不支持 system 角色',
    'After the system message(s), user or tool message(s) should alternate with assistant message(s).',
  ],
  stream: [
    "Unsupported value: 'stream' does not support true with this model.",
    ['Cannot use tools with stream', 500],
    "This model doesn't support tool use in streaming mode.",
    'stream must be false',
    '该模型不支持流式输出',
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
    '该模型暂不支持函数调用',
    'The model is unable to use functions',
    'This model has no tool calling',
    'tool use is turned off',
    'Unknown name "tools": Cannot find field.',
    'Error rendering prompt with jinja template: "Cannot call something that is not a function"',
    ['Tool error: no tool template', 422],
    ['Value is not callable: null at row 1, column 72:\n{%- if builtin %}', 500],
    [JSON.stringify(extra('body', 'tools')), 422],
  ],
  maxItems: [`Unknown name "maxItems" at 'tools[0].function_declarations[0].parameters'`],
  nothing: [
    'messages must have non-empty content',
    'max_tokens is too large: 1000. This model supports at most 512 completion tokens',
    'max_tokens must be less than or equal to 8',
    "This model's maximum context length is 4096 tokens (4000 in the messages, 1000 in max_tokens)",
    'The system is overloaded, message could not be processed',
    'The maximum allowed context length is 4096 tokens; you requested 9000 in messages and tools',
    'the messages and tools are longer than the context',
    "Invalid argument: this model's maximum prompt length is 131072 but the request contains 140000 tokens",
    ['No endpoints found matching your data policy', 404],
    ['The model `gpt-none` does not exist', 404],
    ['an internal error', 500],
    ['Failed to parse tool call arguments as JSON: unexpected end of input', 500],
    JSON.stringify({ message: 'Failed to call a function.', failed_generation: 'supported' }),
    'tools must be defined',
    'This model is retired; use an alternate model',
    'the prompt has too many consecutive identical tokens',
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
    'messages: text content blocks must contain non-whitespace text',
    'body/messages/4/content must NOT have fewer than 1 characters',
    '"messages[4].content" is not allowed to be empty',
    'message 4 has no content',
    "Content shouldn't be empty",
    'content length must be greater than zero',
    '消息内容为空',
    'messages: the length of content must be greater than 0',
    "GenerateContentRequest.contents[2].parts[0].data: required oneof field 'data' must have one initialized field",
  ],
  no_reasoning: [
    'reasoning_content is missing in assistant tool call message at index 3',
    'The `reasoning_content` in the thinking mode must be passed back to the API.',
    'The `content[].thinking` in the thinking mode must be passed back to the API.',
    'assistant messages with tool calls must include reasoning_content',
    'messages[4] needs reasoning_content',
    'reasoning_content cannot be empty',
    'Please pass back the reasoning_content',
    '缺少 reasoning_content 字段',
  ],
  nothing: ['Your last message was flagged by a filter', 'Your prompt has content that the policy forbids'],
  call_messages: [
    ['Template error: Conversation roles must alternate user/assistant/user/assistant/...', 422],
    "messages.4.role: Input should be 'system', 'user' or 'assistant'",
    JSON.stringify({
      detail: [{ type: 'missing', loc: ['body', 'messages', 4, 'name'], msg: 'Field required' }],
    }),
    "role 'tool' is not supported",
    'messages[5]: unknown variant `tool`, expected one of `system`, `user`, `assistant`',
    "messages[5]: tool messages require a 'name'",
    'The last message must be from the user',
    'consecutive user messages are not allowed',
    'User or tool message(s) should alternate with assistant message(s).',
    'Tool call id was chatcmpl-tool-1 but must be a-z, A-Z, 0-9, with a length of 9.',
    'This model only supports single tool-calls at once!',
    'Error rendering prompt with jinja template: "Unknown filter: items"',
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
  '%s after a call is refused by the error: %s',
  (part, message, status) => {
    expect(refusedBy({ error: { message } }, status, afterCall(), ['system']) ?? 'nothing').toBe(part)
  },
)

test('an answer that met the output limit does not refuse the limit under its name', () => {
  const form = { isOpenAi: true, refused: new Set<string>() }
  const refusal = 'Could not finish the message because max_tokens or model output limit was reached.'
  const body = requestBody(form, { ids: ['m'] }, ASK)
  expect(body).toHaveProperty('max_completion_tokens')
  expect(refusedPart({ code: 'http_400', refusal }, form, body)).toBeNull()
})

test.each([
  'Requests which include `tool_use` or `tool_result` blocks must define tools',
  'litellm.UnsupportedParamsError: Anthropic expects the `tools=` param to be passed in.',
  'The toolConfig field must be defined when using toolUse and toolResult content blocks.',
])('an engine requires the tools that were called: %s', (error) => {
  expect(refusedBy({ error: { message: error } }, 400, { ...afterCall(), tools: [] })).toBe('no_tools')
  expect(refusedBy({ error: { message: error } }, 500, { ...afterCall(), tools: [] })).toBeNull()
})
