import { describe, expect, test } from 'vitest'
import { CompletionMessage } from '../../src/adapters/completion-message.ts'

type Delta = Record<string, unknown>

function callsOf(deltas: readonly Delta[]): string[][] {
  const message = new CompletionMessage()
  for (const delta of deltas) message.add({ choices: [{ index: 0, delta }] })
  return message.calls.map((call) => [call.name, call.arguments])
}

/** A part of a tool call at index 0 by default. */
const part = (name?: string, text?: string, more: Delta = { index: 0 }): Delta => ({
  tool_calls: [{ type: 'function', function: { name, arguments: text }, ...more }],
})
const legacy = (called: Delta): Delta => ({ function_call: called })

const NAME = 'search_items'
const TEXT = '{"query":"rust"}'
const OTHER_TEXT = '{"query":"go"}'
const CALL = [[NAME, TEXT]]
const [HALF, REST] = ['{"query":', '"rust"}']

describe('one tool call', () => {
  test.each<[string, Delta[]]>([
    [
      'the name arrives in parts with an id',
      [part('search_', undefined, { id: 'a' }), part('items', TEXT, { id: 'a' })],
    ],
    ['the name grows', [part('search_'), part(NAME), part(undefined, TEXT)]],
    ['the name is repeated in each part', [part(NAME, HALF), part(NAME, REST), part(NAME, '')]],
    [
      'only the first part has an index',
      [part(NAME, HALF, { index: 0, id: 'a' }), part(undefined, REST, {})],
    ],
    [
      'only the first part has no index',
      [part(NAME, HALF, { id: 'a' }), part(undefined, REST, { index: 0 })],
    ],
    ['an empty call follows', [part(NAME, TEXT), part('', '', { index: 1 })]],
    [
      'an empty object comes first, the arguments in parts',
      [part(NAME, '{}'), part(undefined, HALF), part(undefined, REST)],
    ],
    [
      'each part has the name and another id',
      [
        part(NAME, '', { index: 0, id: 'a' }),
        part(NAME, HALF, { index: 0, id: 'b' }),
        part(NAME, REST, { index: 0, id: 'c' }),
      ],
    ],
    [
      'each part has the name and another id, and no index',
      [part(NAME, HALF, { id: 'a' }), part(NAME, REST, { id: 'b' })],
    ],
    [
      'each part has the id and another index',
      [
        part(NAME, '', { index: 0, id: 'a' }),
        part(undefined, HALF, { index: 1, id: 'a' }),
        part(undefined, REST, { index: 2, id: 'a' }),
      ],
    ],
    ['null comes first', [part(NAME, 'null'), part(undefined, TEXT)]],
    ['an empty object comes last', [part(NAME, TEXT), part(undefined, '{}')]],
    ['the arguments grow', ['{"qu', '{"query":"r', TEXT].map((text) => part(NAME, text))],
    ['the whole call is repeated', [TEXT, TEXT].map((text) => part(NAME, text, { index: 0, id: 'a' }))],
    [
      'the arguments are called parameters',
      [{ tool_calls: [{ index: 0, function: { name: NAME, parameters: { query: 'rust' } } }] }],
    ],
    ['there is no function', [{ tool_calls: [{ name: NAME, arguments: TEXT }] }]],
    ['it is a legacy one', [legacy({ name: NAME, arguments: TEXT })]],
    ['it has its legacy form too', [{ ...part(NAME, TEXT), ...legacy({ name: NAME, arguments: TEXT }) }]],
  ])('is read if %s', (_how, deltas) => {
    expect(callsOf(deltas)).toEqual(CALL)
  })
})

describe('several tool calls', () => {
  const BOTH = [
    [NAME, TEXT],
    [NAME, OTHER_TEXT],
  ]
  test.each<[string, Delta[], string[][]]>([
    ['one index and no ids', [TEXT, OTHER_TEXT].map((text) => part(NAME, text)), BOTH],
    ['one index, no ids and no second name', [part(NAME, TEXT), part(undefined, OTHER_TEXT)], BOTH],
    [
      'the id in each part',
      [
        part(NAME, HALF, { id: 'a' }),
        part(NAME, OTHER_TEXT, { id: 'b' }),
        part(undefined, REST, { id: 'a' }),
      ],
      BOTH,
    ],
    [
      'the id in each part and one index',
      [
        part(NAME, HALF, { index: 0, id: 'a' }),
        part(NAME, OTHER_TEXT, { index: 0, id: 'b' }),
        part(undefined, REST, { index: 0, id: 'a' }),
      ],
      BOTH,
    ],
    [
      'ids and indexes, the first without arguments',
      [
        part(NAME, '', { index: 0, id: 'a' }),
        part(NAME, OTHER_TEXT, { index: 1, id: 'b' }),
        part(undefined, TEXT, { index: 0, id: 'a' }),
      ],
      BOTH,
    ],
  ])('are told apart with %s', (_how, deltas, expected) => {
    expect(callsOf(deltas)).toEqual(expected)
  })
})

test('the calls of a whole message that ends a stream are read', () => {
  const message = new CompletionMessage()
  message.add({ choices: [{ index: 0, delta: { content: 'Hi' } }] })
  const calls = part(NAME, TEXT)
  for (let time = 0; time < 2; time += 1)
    message.add({ choices: [{ index: 0, message: { content: 'Hi', ...calls } }] })
  expect(message.calls.map((call) => [call.name, call.arguments])).toEqual(CALL)
})
