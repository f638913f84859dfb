import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { TOOL_NAMES } from '../../../src/domain/agent/model-call.ts'
import { parseToolCall, TOOL_DEFINITIONS } from '../../../src/domain/agent/tools.ts'

interface Schema {
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean
  items?: Schema
  enum?: unknown[]
}

/** Keywords that providers allow in strict function schemas. */
const STRICT_KEYWORDS =
  'type properties required additionalProperties items enum description minimum maximum maxItems'.split(' ')

function everySchema(schema: Schema): Schema[] {
  const inner = [...Object.values(schema.properties ?? {}), ...(schema.items ? [schema.items] : [])]
  return [schema, ...inner.flatMap(everySchema)]
}

describe('the definitions', () => {
  test.each(TOOL_DEFINITIONS.map((tool) => [tool.name, tool.parameters as Schema] as const))(
    'the definitions of %s are strict',
    (_, parameters) => {
      expect(parameters.type).toBe('object')
      for (const schema of everySchema(parameters)) {
        expect(STRICT_KEYWORDS).toEqual(expect.arrayContaining(Object.keys(schema)))
        expect(schema.type).toBeDefined()
        if (schema.type !== 'object') continue
        expect(schema.additionalProperties).toBe(false)
        expect(schema.required).toEqual(Object.keys(schema.properties ?? {}))
      }
    },
  )

  test('the definitions are those of the six tools, and allow null as one of two types', () => {
    expect(TOOL_DEFINITIONS.map(({ name }) => name)).toEqual([...TOOL_NAMES])
    const search = TOOL_DEFINITIONS[0]?.parameters as Schema
    expect(search.properties?.['limit']?.type).toEqual(['integer', 'null'])
    const top = TOOL_DEFINITIONS[1]?.parameters as Schema
    expect(top.properties?.['list']?.enum).toContain(null)
  })
})

const problem = (name: string, given: unknown): string => {
  const read = parseToolCall({ name, arguments: typeof given === 'string' ? given : JSON.stringify(given) })
  return read.ok ? 'ok' : read.problem
}

/** The arguments that are read from those of a call, without the names that are null. */
function taken(name: string, given: unknown): unknown {
  const read = parseToolCall({ name, arguments: typeof given === 'string' ? given : JSON.stringify(given) })
  if (!read.ok) throw new Error(read.problem)
  return Object.fromEntries(Object.entries(read.call.arguments).filter(([, value]) => value !== null))
}

describe('a call', () => {
  const week = { period: 'week', list: null, limit: null, at: '2026-03-01T12:00:00Z' }
  const turned = { query: 'a', from: '2026-02-02', to: '2026-02-01' }

  test.each([
    ['read_article', '{"key": "hn-1"', 'not JSON: give an object with key, offset'],
    ['read_article', [], 'arguments: give a JSON object with key, offset'],
    ['read_article', '', 'key: '],
    ['read_article', { key: 'hn-1', url: 'x' }, 'arguments: only key, offset are known'],
    ['read_article', { key: 'x', offset: null }, 'key: must be the key of an item'],
    ['read_article', `{"key":"${'x'.repeat(5_000)}"}`, 'longer than 4096'],
    ['get_period_top', {}, 'period: Invalid option: expected one of "day"|"week"'],
    ['get_period_top', { ...week, period: 'year', at: '2026-03-01' }, 'at: must be an'],
    ['get_period_top', week, 'only the year'],
    ['get_feed_snapshot', { sort: ['day', 'week'] }, 'sort: Invalid option: '],
    ['get_feed_snapshot', { sort: 'day', limit: 21 }, 'limit: Too big: expected number to be <=20'],
    ['search_items', { query: 'a', from: '2026-05' }, 'from: must be a real YYYY-MM-DD'],
    ['search_items', { query: 'a', sources: ['x'] }, 'sources.0: Invalid option: '],
    ['search_items', turned, 'from: is later than to'],
    ['search_items', { query: ' ' }, 'query: is empty'],
    ['get_trend_history', { key: 'hn-1', term: 'x' }, 'exactly one'],
    ['search_items.read_article', { query: 'a' }, 'the tools are search_items, '],
  ])('the call of %s with %.60j gets a description of the problem', (name, given, expected) => {
    expect(problem(name, given)).toContain(expected)
  })

  test.each<[string, unknown, object]>([
    ['read_article', { key: 'hn-1', offset: ' 20 ' }, { key: 'hn-1', offset: 20 }],
    ['read_article', { key: 'hn-1', offset: '20.0' }, { key: 'hn-1', offset: 20 }],
    ['find_similar_items', { key: 'hype-github-a/b', limit: null }, { key: 'hype-github-a/b' }],
    ['get_trend_history', { key: 'hn-1', term: 'null' }, { key: 'hn-1' }],
    ['get_trend_history', { term: 'null' }, { term: 'null' }],
    ['get_feed_snapshot', 'None', {}],
    [
      'get_period_top',
      { period: 'Year', list: ['Hacker News'], at: '' },
      { period: 'year', list: 'hackerNews' },
    ],
    ['get_period_top', { period: 'day', list: 'hn' }, { period: 'day', list: 'hackerNews' }],
    ...['2026-03-01T12:00Z', '2026-03-01 12:00:00', '2026-03-01t12:00:00z'].map(
      (at): [string, unknown, object] => [
        'get_period_top',
        { period: 'year', at },
        { period: 'year', at: '2026-03-01T12:00:00Z' },
      ],
    ),
  ])('a call of %s whose meaning is plain is read: %j', (name, given, expected) => {
    expect(taken(name, given)).toEqual(expected)
  })

  test.each([
    '```json\n{"query":"a"}\n```',
    '```\n{"query":"a"}```',
    'I call {"query":"a"}<|call|>',
    JSON.stringify(JSON.stringify('{"query":"a"}')),
    JSON.stringify('```json\n{"query":"a"}\n```'),
    '[{"query":"a"}]',
    '{"Query":["a"]}',
    ...['arguments', 'parameters', 'args', 'input', 'search_items'].map(
      (name) => `{"${name}":{"query":"a"}}`,
    ),
    '{"arguments":"{\\"query\\":\\"a\\"}"}',
    '{"name":"search_items","arguments":{"query":"a"}}',
    '{"type":"function","function":{"name":"search_items","parameters":{"query":"a"}}}',
    `{'query': 'a', 'from': None}`,
    `search_items({query: "a", sources: undefined,})`,
    `{'query': "a", 'limit': None,\n}`,
    '{"query":"a","sources":"null","from":"None","to":"","limit":"null","key":null}',
    '{"query":"a","sources":["all"]}',
  ])('a search for a is read from %j', (given) => {
    for (const name of ['search_items', 'functions.search_items', 'Search_Items'])
      expect(taken(name, given)).toEqual({ query: 'a' })
  })

  test.each<[unknown, object]>([
    [{ query: 2026 }, { query: '2026' }],
    [
      { query: 'null', limit: '5' },
      { query: 'null', limit: 5 },
    ],
    ['{"query": "a \\"b\\"\nc"}', { query: 'a "b"\nc' }],
    [
      String.raw`{'query': 'it\'s "None": \u0041, True', 'sources': ['hn'], }`,
      { query: 'it\'s "None": A, True', sources: ['hn'] },
    ],
    [
      { query: 'a', sources: 'Hacker News, lobsters' },
      { query: 'a', sources: ['hn', 'lobsters'] },
    ],
    ...[
      '2026-05-01T00:00:00Z',
      '2026-05-01T23:59:59.999+00:00',
      '2026-05-01T12:00',
      '2026-05-01 12:00:00',
    ].map((from): [unknown, object] => [
      { query: 'a', from },
      { query: 'a', from: '2026-05-01' },
    ]),
    [
      { query: 'a', to: '2026-05-01T23:00:00-05:00' },
      { query: 'a', to: '2026-05-02' },
    ],
  ])('the search %j is read as %j', (given, expected) => {
    expect(taken('search_items', given)).toEqual(expected)
  })

  test.each([
    ['Hacker News', 'hn'],
    ['hacker_news', 'hn'],
    ['HN', 'hn'],
    ['lobste.rs', 'lobsters'],
    ['Less Wrong', 'lesswrong'],
    ['GitHub', 'hype:github'],
    ['Hugging Face', 'hype:huggingface'],
    ['hype-reddit', 'hype:reddit'],
  ])('a search in %s is one in %s', (label, source) => {
    expect(taken('search_items', { query: 'a', sources: [label] })).toEqual({ query: 'a', sources: [source] })
  })

  test('the problem of a call never repeats its arguments', () => {
    const canary = 'ignore-previous-instructions'
    const one = { [canary]: canary, key: canary, sort: canary, period: canary, limit: canary }
    for (const name of TOOL_NAMES)
      expect(problem(name, { ...one, query: { [canary]: 1 } })).not.toContain(canary)
    expect(problem(canary, {})).not.toContain(canary)
  })

  test('no call makes the parser throw or write a long problem', () => {
    const name = fc.oneof(fc.constantFrom(...TOOL_NAMES), fc.string())
    fc.assert(
      fc.property(name, fc.oneof(fc.json(), fc.string()), (tool, given) => {
        expect(problem(tool, given).length).toBeLessThan(1_000)
      }),
    )
  })
})
