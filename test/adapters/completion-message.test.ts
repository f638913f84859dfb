import { describe, expect, test } from 'vitest'
import { CompletionMessage } from '../../src/adapters/completion-message.ts'

type Delta = Record<string, unknown>

function callsOf(deltas: readonly Delta[]): string[][] {
  const message = new CompletionMessage()
  for (const delta of deltas) message.add({ choices: [{ index: 0, delta }] })
  return message.calls.map((call) => [call.name, call.arguments])
}

/** A part of a tool call at index 0. */
const part = (called: Delta, more: Delta = { index: 0 }): Delta => ({
  tool_calls: [{ type: 'function', function: called, ...more }],
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
      [part({ name: 'search_' }, { id: 'a' }), part({ name: 'items', arguments: TEXT }, { id: 'a' })],
    ],
    ['the name grows', [part({ name: 'search_' }), part({ name: NAME }), part({ arguments: TEXT })]],
    [
      'the name is repeated in each part',
      [
        part({ name: NAME, arguments: HALF }),
        part({ name: NAME, arguments: REST }),
        part({ name: NAME, arguments: '' }),
      ],
    ],
    [
      'only the first part has an index',
      [part({ name: NAME, arguments: HALF }, { index: 0, id: 'a' }), part({ arguments: REST }, {})],
    ],
    [
      'only the first part has no index',
      [part({ name: NAME, arguments: HALF }, { id: 'a' }), part({ arguments: REST }, { index: 0 })],
    ],
    [
      'an empty call follows',
      [part({ name: NAME, arguments: TEXT }), part({ name: '', arguments: '' }, { index: 1 })],
    ],
    [
      'an empty object comes first, the arguments in parts',
      [part({ name: NAME, arguments: '{}' }), part({ arguments: HALF }), part({ arguments: REST })],
    ],
    [
      'each part has the name and another id',
      [
        part({ name: NAME, arguments: '' }, { index: 0, id: 'a' }),
        part({ name: NAME, arguments: HALF }, { index: 0, id: 'b' }),
        part({ name: NAME, arguments: REST }, { index: 0, id: 'c' }),
      ],
    ],
    [
      'each part has the name and another id, and no index',
      [
        part({ name: NAME, arguments: HALF }, { id: 'a' }),
        part({ name: NAME, arguments: REST }, { id: 'b' }),
      ],
    ],
    [
      'each part has the id and another index',
      [
        part({ name: NAME, arguments: '' }, { index: 0, id: 'a' }),
        part({ arguments: HALF }, { index: 1, id: 'a' }),
        part({ arguments: REST }, { index: 2, id: 'a' }),
      ],
    ],
    ['null comes first', [part({ name: NAME, arguments: 'null' }), part({ arguments: TEXT })]],
    ['an empty object comes last', [part({ name: NAME, arguments: TEXT }), part({ arguments: '{}' })]],
    [
      'the arguments grow',
      ['{"qu', '{"query":"r', TEXT].map((text) => part({ name: NAME, arguments: text })),
    ],
    [
      'the whole call is repeated',
      [TEXT, TEXT].map((text) => part({ name: NAME, arguments: text }, { index: 0, id: 'a' })),
    ],
    ['the arguments are called parameters', [part({ name: NAME, parameters: { query: 'rust' } })]],
    ['there is no function', [{ tool_calls: [{ name: NAME, arguments: TEXT }] }]],
    ['it is a legacy one', [legacy({ name: NAME, arguments: TEXT })]],
    [
      'it has its legacy form too',
      [{ ...part({ name: NAME, arguments: TEXT }), ...legacy({ name: NAME, arguments: TEXT }) }],
    ],
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
    ['one index and no ids', [TEXT, OTHER_TEXT].map((text) => part({ name: NAME, arguments: text })), BOTH],
    [
      'one index, no ids and no second name',
      [part({ name: NAME, arguments: TEXT }), part({ arguments: OTHER_TEXT })],
      BOTH,
    ],
    [
      'the id in each part',
      [
        part({ name: NAME, arguments: HALF }, { id: 'a' }),
        part({ name: NAME, arguments: OTHER_TEXT }, { id: 'b' }),
        part({ arguments: REST }, { id: 'a' }),
      ],
      BOTH,
    ],
    [
      'the id in each part and one index',
      [
        part({ name: NAME, arguments: HALF }, { index: 0, id: 'a' }),
        part({ name: NAME, arguments: OTHER_TEXT }, { index: 0, id: 'b' }),
        part({ arguments: REST }, { index: 0, id: 'a' }),
      ],
      BOTH,
    ],
    [
      'ids and indexes, the first without arguments',
      [
        part({ name: NAME, arguments: '' }, { index: 0, id: 'a' }),
        part({ name: NAME, arguments: OTHER_TEXT }, { index: 1, id: 'b' }),
        part({ arguments: TEXT }, { index: 0, id: 'a' }),
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
  const calls = part({ name: NAME, arguments: TEXT })
  for (let time = 0; time < 2; time += 1)
    message.add({ choices: [{ index: 0, message: { content: 'Hi', ...calls } }] })
  expect(message.calls.map((call) => [call.name, call.arguments])).toEqual(CALL)
})
