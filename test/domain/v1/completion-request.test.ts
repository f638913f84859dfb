import { expect, test } from 'vitest'
import {
  complexityOf,
  parseCompletionRequest,
  selectModels,
} from '../../../src/domain/v1/completion-request.ts'
import type { CompletionNeeds } from '../../../src/domain/v1/completion-request.ts'
import { candidate, catalogueModel, sampleRun } from '../models/free-models.ts'

test.each([
  ['a text full of brackets', JSON.stringify({ content: '[{,:'.repeat(200_000) })],
  ['a quote and a backslash in a text', JSON.stringify({ content: `\\"${'['.repeat(200)}` })],
  ['128 levels', `${'['.repeat(128)}${']'.repeat(128)}`],
  ['100,000 values', `[${'1,'.repeat(99_998)}1]`],
  ['text that is not JSON', '"'],
])('%s is simple enough to parse', (_name, text) => {
  expect(complexityOf(text)).toBeNull()
})

const LEVELS = 'the body has more than 128 levels'
const VALUES = 'the body has more than 100000 values'

test.each([
  ['129 levels', '{"a":'.repeat(129), LEVELS],
  ['a level after a text that ends with a backslash', `["\\\\",${'['.repeat(128)}`, LEVELS],
  ['a level after an empty list', `[[],${'['.repeat(128)}`, LEVELS],
  ['a million empty lists', `[${'[],'.repeat(1_000_000)}1]`, VALUES],
  ['a million members', `{${'"a":1,'.repeat(1_000_000)}`, VALUES],
])('%s is too complex to parse', (_name, text, problem) => {
  expect(complexityOf(text)).toBe(problem)
})

const MESSAGES = [{ role: 'user', content: 'Hi' }]

/** The body that is passed on for a request, which is for `auto` unless it names another model; or its problem. */
function passedOn(fields: object): unknown {
  const request = parseCompletionRequest({ model: 'auto', messages: MESSAGES, ...fields })
  return 'problem' in request ? request.problem : (JSON.parse(request.bodyFor(['maker/a:free'])) as unknown)
}

/** What every body has. */
const ALWAYS = {
  models: ['maker/a:free'],
  messages: MESSAGES,
  stream: false,
  provider: { max_price: { prompt: 0, completion: 0, request: 0, image: 0 } },
}

test('only allowed fields of a request are passed on, at a price of zero', () => {
  const smuggled = JSON.parse(`{
    "route": "fallback", "models": ["openai/gpt-5"], "plugins": [{ "id": "web" }], "preset": "mine",
    "modalities": ["image"], "provider": { "max_price": { "prompt": 9 }, "order": ["P"] },
    "transforms": ["middle-out"], "web_search_options": {}, "usage": { "include": true },
    "__proto__": { "models": ["openai/gpt-5"] }
  }`) as object
  expect(Object.keys(smuggled)).toContain('__proto__')
  expect(passedOn({ ...smuggled, temperature: 0, stream: true })).toEqual({
    ...ALWAYS,
    temperature: 0,
    stream: true,
  })
  // Null counts as not given.
  expect(passedOn({ stream: null, tools: null, max_tokens: null })).toEqual({ ...ALWAYS, max_tokens: null })
})

test('only allowed members of nested objects are passed on', () => {
  const more = { file: {}, image_url: {}, cache_control: {}, web_search: {}, plugins: [1], models: ['m'] }
  /** Allowed values, with more members in each object where `extra` has some. */
  const fieldsWith = (extra: object): object => ({
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'a', ...extra }], ...extra },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'thoughts',
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'f', arguments: '{}', ...extra }, ...extra },
        ],
      },
    ],
    // A schema may have any members.
    tools: [
      {
        type: 'function',
        function: { name: 'f', parameters: { models: 1 }, strict: true, ...extra },
        ...extra,
      },
    ],
    tool_choice: { type: 'function', function: { name: 'f' }, ...extra },
    response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { route: 1 } }, ...extra },
    reasoning: { effort: 'low', ...extra },
    stream_options: { include_usage: true, ...extra },
  })
  expect(passedOn(fieldsWith(more))).toEqual({ ...ALWAYS, ...fieldsWith({}) })
})

test.each([
  ['a server tool', { tools: [{ type: 'openrouter:web_search' }] }, /^`tools` is not/],
  [
    'the choice of a server tool',
    { tool_choice: { type: 'openrouter:web_search' } },
    /^`tool_choice` is not/,
  ],
  [
    'a file',
    { messages: [{ role: 'user', content: [{ type: 'file', file: {} }] }] },
    /files and audio are not/,
  ],
  ['no messages', { messages: undefined }, /^`messages` is not/],
  ['a message that is none', { messages: [null] }, /^`messages\[0\]` has no `role`/],
  ['a message without a role', { messages: [{ content: 'a' }] }, /^`messages\[0\]` has no `role`/],
  ['no model', { model: '' }, /^`model` is not/],
  ['a number as its model', { model: 1 }, /^`model` is not/],
  ['a text as its stream', { stream: 'true' }, /^`stream` is neither/],
])('a request with %s is invalid', (_what, fields, problem) => {
  expect(passedOn(fields)).toMatch(problem)
})

test('a model without tools in the catalogue does not get a request with tools, although it called one in its test', () => {
  const id = 'maker/plain:free'
  const model = catalogueModel(id, { supportedParameters: [] })
  const { models } = sampleRun({ candidates: [candidate(id, { model })] })
  expect(selectModels(models, id, { tools: true, json: 'none', context: 0 })).toEqual({
    rejected: { [id]: 'no tools in the catalogue' },
  })
})

test('a body that is no object is invalid', () => {
  expect(parseCompletionRequest([])).toEqual({ problem: 'the body is not a JSON object' })
})

test.each([
  [{}, 'none', 13],
  [{ response_format: { type: 'text' }, max_tokens: -1, max_completion_tokens: 0.5 }, 'none', 14],
  [{ response_format: { type: 'json_object' }, max_tokens: 100 }, 'object', 113],
  [{ response_format: { type: 'json_schema' }, max_tokens: 7, max_completion_tokens: 8 }, 'schema', 21],
])('the request %j needs JSON of the kind %s and so many tokens: %i', (fields, json, context) => {
  const request = parseCompletionRequest({ model: 'maker/a:free', messages: MESSAGES, ...fields })
  expect('needs' in request && request.needs).toEqual({ tools: false, json, context })
})

test.each<[Partial<CompletionNeeds>, string[], string | null]>([
  [{ context: 131_072 }, [], null],
  [{ context: 131_073 }, [], 'a context of 131072 tokens, but about 131073 are needed'],
  [{ json: 'object' }, ['response_format'], null],
  [{ json: 'object' }, ['structured_outputs'], null],
  [{ json: 'object' }, [], 'no JSON response format'],
  [{ json: 'schema' }, ['structured_outputs'], null],
  [{ json: 'schema' }, ['response_format'], 'no structured outputs'],
])('a request that needs %j gets a model with %j or the reason: %s', (needs, supportedParameters, reason) => {
  const id = 'maker/plain:free'
  const { models } = sampleRun({
    candidates: [candidate(id, { model: catalogueModel(id, { supportedParameters }) })],
  })
  const selected = selectModels(models, id, { tools: false, json: 'none', context: 0, ...needs })
  expect(selected).toEqual(reason === null ? { models } : { rejected: { [id]: reason } })
})
