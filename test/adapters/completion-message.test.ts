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
      'the name arrives in parts',
      [part({ name: 'search_' }), part({ name: 'items' }), part({ arguments: TEXT })],
    ],
    [
      'the name arrives in parts with an id',
      [part({ name: 'search_' }, { id: 'a' }), part({ name: 'items', arguments: TEXT }, { id: 'a' })],
    ],
    [
      'the name arrives in parts, the last with arguments',
      [
        part({ name: 'sea', arguments: '' }),
        part({ name: 'rch_items', arguments: HALF }),
        part({ arguments: REST }),
      ],
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
      'name and id are repeated in each part',
      ['', HALF, REST, ''].map((text) => part({ name: NAME, arguments: text }, { index: 0, id: 'a' })),
    ],
    [
      'each part has another id',
      [
        part({ name: NAME, arguments: HALF }, { index: 0, id: 'a' }),
        part({ arguments: REST }, { index: 0, id: 'b' }),
      ],
    ],
    [
      'only the first part has an index',
      [part({ name: NAME, arguments: HALF }, { index: 0, id: 'a' }), part({ arguments: REST }, {})],
    ],
    ['an empty object comes first', [part({ name: NAME, arguments: '{}' }), part({ arguments: TEXT })]],
    [
      'an empty object comes first, the arguments in parts',
      [part({ name: NAME, arguments: '{}' }), part({ arguments: HALF }), part({ arguments: REST })],
    ],
    [
      'an empty object comes first, the name is repeated',
      ['{}', TEXT].map((text) => part({ name: NAME, arguments: text }, { index: 0, id: 'a' })),
    ],
    [
      'an empty object as an object comes first',
      [part({ name: NAME, arguments: {} }), part({ arguments: TEXT })],
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
    ['the arguments are an object', [part({ name: NAME, arguments: { query: 'rust' } })]],
    ['the arguments are called parameters', [part({ name: NAME, parameters: { query: 'rust' } })]],
    ['there is no function', [{ tool_calls: [{ name: NAME, arguments: TEXT }] }]],
    ['there is no list', [{ tool_calls: { index: 0, function: { name: NAME, arguments: TEXT } } }]],
    ['it is a legacy one', [legacy({ name: NAME, arguments: TEXT })]],
    [
      'it is a legacy one in parts',
      [legacy({ name: NAME, arguments: '' }), legacy({ arguments: HALF }), legacy({ arguments: REST })],
    ],
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
      'one index and an empty start each',
      [TEXT, OTHER_TEXT].flatMap((text) => [part({ name: NAME, arguments: '' }), part({ arguments: text })]),
      BOTH,
    ],
    [
      'neither indexes nor ids',
      [TEXT, OTHER_TEXT].flatMap((text) => [
        part({ name: NAME, arguments: '' }, {}),
        part({ arguments: text }, {}),
      ]),
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
      'one id for all',
      [TEXT, OTHER_TEXT].map((text) => part({ name: NAME, arguments: text }, { index: 0, id: 'a' })),
      BOTH,
    ],
    [
      'names in parts',
      [
        part({ name: 'search_' }),
        part({ name: 'items' }),
        part({ arguments: TEXT }),
        ...['read_', 'article'].map((name) => part({ name }, { index: 1 })),
        part({ arguments: '{"key":"hn-1"}' }, { index: 1 }),
      ],
      [
        [NAME, TEXT],
        ['read_article', '{"key":"hn-1"}'],
      ],
    ],
    [
      'other ids and the same arguments',
      ['a', 'b'].map((id) => part({ name: NAME, arguments: TEXT }, { id })),
      [...CALL, ...CALL],
    ],
  ])('are told apart with %s', (_how, deltas, expected) => {
    expect(callsOf(deltas)).toEqual(expected)
  })
})
