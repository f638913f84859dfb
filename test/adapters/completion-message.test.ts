import { expect, test } from 'vitest'
import { CompletionMessage } from '../../src/adapters/completion-message.ts'

type Delta = Record<string, unknown>

function callsOf(deltas: readonly Delta[]): string[][] {
  const message = new CompletionMessage()
  for (const delta of deltas) message.add({ choices: [{ index: 0, delta }] })
  return message.calls.map((call) => [call.name, call.arguments])
}

/** A part of a tool call at index 0 by default. */
const part = (name?: string, text?: string, index: number | null = 0, id?: string): Delta => {
  const call = { type: 'function', function: { name, arguments: text }, ...(id === undefined ? {} : { id }) }
  return { tool_calls: [index === null ? call : { ...call, index }] }
}
/** A later part without the name. */
const rest = (text: string, index?: number | null, id?: string): Delta => part(undefined, text, index, id)
const legacy = (called: Delta): Delta => ({ function_call: called })

const NAME = 'search_items'
const TEXT = '{"query":"rust"}'
const OTHER_TEXT = '{"query":"go"}'
const CALL = [[NAME, TEXT]]
const [HALF, REST] = ['{"query":', '"rust"}']

test.each<[string, Delta[]]>([
  [
    'the name arrives in parts with an id',
    [part('search_', undefined, null, 'a'), part('items', TEXT, null, 'a')],
  ],
  ['the name grows', [part('search_'), part(NAME), rest(TEXT)]],
  ['the name is repeated in each part', [part(NAME, HALF), part(NAME, REST), part(NAME, '')]],
  ['only the first part has an index', [part(NAME, HALF, 0, 'a'), rest(REST, null)]],
  ['only the first part has an index, and each has the name', [part(NAME, HALF, 0), part(NAME, REST, null)]],
  ['only the first part has no index', [part(NAME, HALF, null, 'a'), rest(REST, 0)]],
  ['the name comes last', [rest(HALF, 0), part(NAME, REST)]],
  ['an empty call follows', [part(NAME, TEXT), part('', '', 1)]],
  ['an empty object comes first, the arguments in parts', [part(NAME, '{}'), rest(HALF), rest(REST)]],
  [
    'each part has the name and another id',
    [part(NAME, '', 0, 'a'), part(NAME, HALF, 0, 'b'), part(NAME, REST, 0, 'c')],
  ],
  [
    'each part has the name and another id, and no index',
    [part(NAME, HALF, null, 'a'), part(NAME, REST, null, 'b')],
  ],
  [
    'each part has the id and another index',
    [part(NAME, '', 0, 'a'), rest(HALF, 1, 'a'), rest(REST, 2, 'a')],
  ],
  ['null comes first', [part(NAME, 'null'), rest(TEXT)]],
  ['an empty object comes last', [part(NAME, TEXT), rest('{}')]],
  ['the arguments grow', ['{"qu', '{"query":"r', TEXT].map((text) => part(NAME, text))],
  ['the whole call is repeated', [TEXT, TEXT].map((text) => part(NAME, text, 0, 'a'))],
  [
    'the arguments are called parameters',
    [{ tool_calls: [{ index: 0, function: { name: NAME, parameters: { query: 'rust' } } }] }],
  ],
  ['there is no function', [{ tool_calls: [{ name: NAME, arguments: TEXT }] }]],
  ['it is a legacy one', [legacy({ name: NAME, arguments: TEXT })]],
  ['it has its legacy form too', [{ ...part(NAME, TEXT), ...legacy({ name: NAME, arguments: TEXT }) }]],
])('one tool call is read if %s', (_how, deltas) => {
  expect(callsOf(deltas)).toEqual(CALL)
})

test.each<[string, Delta[]]>([
  ['one index and no ids', [TEXT, OTHER_TEXT].map((text) => part(NAME, text))],
  ['one index, no ids and no second name', [part(NAME, TEXT), rest(OTHER_TEXT)]],
  [
    'the id in each part',
    [part(NAME, HALF, null, 'a'), part(NAME, OTHER_TEXT, null, 'b'), rest(REST, null, 'a')],
  ],
  [
    'the id in each part and one index',
    [part(NAME, HALF, 0, 'a'), part(NAME, OTHER_TEXT, 0, 'b'), rest(REST, 0, 'a')],
  ],
  [
    'ids and indexes, the first without arguments',
    [part(NAME, '', 0, 'a'), part(NAME, OTHER_TEXT, 1, 'b'), rest(TEXT, 0, 'a')],
  ],
  ['indexes alone', [part(NAME, '', 0), part(NAME, '', 1), rest(OTHER_TEXT, 1), rest(TEXT, 0)]],
])('several tool calls are told apart with %s', (_how, deltas) => {
  expect(callsOf(deltas)).toEqual([TEXT, OTHER_TEXT].map((text) => [NAME, text]))
})

test.each<[string, Delta[], string[][]]>([
  [
    'no ids',
    [part('a', '{}', 0), part('b', TEXT, 0)],
    [
      ['a', '{}'],
      ['b', TEXT],
    ],
  ],
  [
    'ids',
    [part('a', '', 0, '1'), part('b', HALF, 0, '2'), rest(REST, 0, '2')],
    [
      ['a', ''],
      ['b', TEXT],
    ],
  ],
  [
    'ids and one name',
    [part('a', '', 0, '1'), part('a', TEXT, 0, '2')],
    [
      ['a', ''],
      ['a', TEXT],
    ],
  ],
])('calls at one index are told apart with %s', (_how, deltas, calls) => {
  expect(callsOf(deltas)).toEqual(calls)
})

test('an id may come after the name', () => {
  const message = new CompletionMessage()
  for (const delta of [part(NAME, HALF), rest(REST, 0, 'a')]) message.add({ choices: [{ delta }] })
  expect(message.calls).toMatchObject([{ id: 'a', arguments: TEXT }])
})

test('a whole message adds nothing to the deltas that it repeats or contradicts', () => {
  const message = new CompletionMessage()
  const delta = { content: 'Hi' }
  for (const each of [delta, part(NAME, TEXT, 0), part(NAME, OTHER_TEXT, 1)])
    message.add({ choices: [{ delta: each }] })
  const calls = [TEXT, OTHER_TEXT].map((text) => ({ function: { name: NAME, arguments: text } }))
  const added = message.add({ choices: [{ message: { content: 'Hello', tool_calls: calls } }] })
  expect(added).toEqual({ content: '', refusal: '', hidden: '' })
  expect(message.calls).toHaveLength(2)
})

test('the calls of a whole message that ends a stream are read', () => {
  const message = new CompletionMessage()
  message.add({ choices: [{ index: 0, delta: { content: 'Hi' } }] })
  const calls = part(NAME, TEXT)
  for (let time = 0; time < 2; time += 1)
    message.add({ choices: [{ index: 0, message: { content: 'Hi', ...calls } }] })
  expect(message.calls.map((call) => [call.name, call.arguments])).toEqual(CALL)
})

test('a refusal among the parts of a content is a refusal', () => {
  const delta = {
    content: [
      { type: 'text', text: 'No. ' },
      { type: 'refusal', refusal: 'I cannot.' },
    ],
  }
  const added = new CompletionMessage().add({ choices: [{ index: 0, delta }] })
  expect(added).toMatchObject({ content: 'No. ', refusal: 'I cannot.' })
})
