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
  test('the definitions are those of the six tools, in order', () => {
    expect(TOOL_DEFINITIONS.map(({ name }) => name)).toEqual([...TOOL_NAMES])
  })

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

  test('the definitions allow null as one of two types', () => {
    const [search] = TOOL_DEFINITIONS
    expect(search?.parameters).toMatchObject({
      properties: {
        query: { type: 'string' },
        from: { type: ['string', 'null'] },
        limit: { type: ['integer', 'null'], minimum: 1, maximum: 20 },
      },
    })
    const top = TOOL_DEFINITIONS[1]?.parameters as Schema
    expect(top.properties?.['list']?.enum).toContain(null)
  })
})

const problem = (name: string, given: unknown): string => {
  const read = parseToolCall({ name, arguments: typeof given === 'string' ? given : JSON.stringify(given) })
  return read.ok ? 'ok' : read.problem
}

describe('a call', () => {
  test.each([
    ['get_period_top', { period: 'year', list: 'hackerNews', limit: 50, at: '2026-03-01T12:00:00Z' }],
    ['find_similar_items', { key: 'hype-github-a/b', limit: null }],
  ])('a call of %s is parsed', (name, given) => {
    expect(parseToolCall({ name, arguments: JSON.stringify(given) })).toEqual({
      ok: true,
      call: { name, arguments: given },
    })
  })

  const search = { query: 'a', sources: null, from: null, to: null, limit: null }
  const history = { key: null, term: null, from: null, to: null }
  const week = { period: 'week', list: null, limit: null, at: '2026-03-01T12:00:00Z' }
  const turned = { ...search, from: '2026-02-02', to: '2026-02-01' }

  test.each([
    ['no JSON', 'read_article', '{"key": "hn-1"', 'not JSON: give an object with key, offset'],
    ['a list', 'read_article', [], 'arguments: give a JSON object with key, offset'],
    ['a missing choice', 'get_period_top', {}, 'period: Invalid option: expected one of "day"|"week"'],
    [
      'an unknown choice',
      'get_feed_snapshot',
      { sort: 'newest' },
      'sort: Invalid option: expected one of "tr',
    ],
    ['two of one choice', 'get_feed_snapshot', { sort: ['day', 'week'] }, 'sort: Invalid option: '],
    ['a month for a day', 'search_items', { query: 'a', from: '2026-05' }, 'from: must be a real YYYY-MM-DD'],
    [
      'a day for an instant',
      'get_period_top',
      { ...week, period: 'year', at: '2026-03-01' },
      'at: must be an',
    ],
    ['a name too many', 'read_article', { key: 'hn-1', url: 'x' }, 'arguments: only key, offset are known'],
    ['a source that is none', 'search_items', { query: 'a', sources: ['x'] }, 'sources.0: Invalid option: '],
    ['a key that is none', 'read_article', { key: 'x', offset: null }, 'key: must be the key of an item'],
    [
      'a limit too high',
      'get_feed_snapshot',
      { sort: 'day', limit: 21 },
      'limit: Too big: expected number to be <=20',
    ],
    ['days the wrong way round', 'search_items', turned, 'from: is later than to'],
    ['an empty query', 'search_items', { ...search, query: ' ' }, 'query: is empty'],
    ['a history of the week', 'get_period_top', week, 'only the year'],
    ['both of two', 'get_trend_history', { ...history, key: 'hn-1', term: 'x' }, 'exactly one'],
    ['endless arguments', 'read_article', `{"key":"${'x'.repeat(5_000)}"}`, 'longer than 4096'],
  ])('a call with %s gets a description of the problem', (_, name, given, expected) => {
    expect(problem(name, given)).toContain(expected)
  })

  test.each<[string, string, unknown, object]>([
    [
      'null as a text',
      'search_items',
      { query: 'a', sources: 'null', from: 'None', to: '', limit: 'null' },
      search,
    ],
    [
      'null as a text for one of two',
      'get_trend_history',
      { key: 'hn-1', term: 'null' },
      { ...history, key: 'hn-1' },
    ],
    ['numbers as text', 'read_article', { key: 'hn-1', offset: ' 20 ' }, { key: 'hn-1', offset: 20 }],
    [
      'a whole number with a point',
      'read_article',
      { key: 'hn-1', offset: '20.0' },
      { key: 'hn-1', offset: 20 },
    ],
    ['a number as words', 'search_items', { query: 2026 }, { ...search, query: '2026' }],
    [
      'one source without a list',
      'search_items',
      { query: 'a', sources: 'hn, lobsters' },
      { ...search, sources: ['hn', 'lobsters'] },
    ],
    ...[
      '```json\n{"query":"a"}\n```',
      '```\n{"query":"a"}```',
      'I call {"query":"a"}<|call|>',
      JSON.stringify(JSON.stringify('{"query":"a"}')),
      JSON.stringify('```json\n{"query":"a"}\n```'),
      '[{"query":"a"}]',
      ...['arguments', 'parameters', 'args', 'input', 'search_items'].map(
        (name) => `{"${name}":{"query":"a"}}`,
      ),
      '{"arguments":"{\\"query\\":\\"a\\"}"}',
      '{"name":"search_items","arguments":{"query":"a"}}',
      '{"type":"function","function":{"name":"search_items","parameters":{"query":"a"}}}',
      `{'query': 'a', 'from': None}`,
      `search_items({query: "a", sources: undefined,})`,
      `{'query': "a", 'limit': None,\n}`,
    ].map((text): [string, string, unknown, object] => [text, 'search_items', text, search]),
    [
      'texts of Python',
      'search_items',
      String.raw`{'query': 'it\'s "None": \u0041, True', 'sources': ['hn'], }`,
      { ...search, query: 'it\'s "None": A, True', sources: ['hn'] },
    ],
    ['a text with a line end', 'search_items', '{"query": "a \\"b\\"\nc"}', { ...search, query: 'a "b"\nc' }],
    ...(
      [
        ['Hacker News', 'hn'],
        ['hacker_news', 'hn'],
        ['HN', 'hn'],
        ['lobste.rs', 'lobsters'],
        ['Less Wrong', 'lesswrong'],
        ['GitHub', 'hype:github'],
        ['Hugging Face', 'hype:huggingface'],
        ['hype-reddit', 'hype:reddit'],
      ] as const
    ).map(([label, source]): [string, string, unknown, object] => [
      label,
      'search_items',
      { query: 'a', sources: [label] },
      { ...search, sources: [source] },
    ]),
    [
      'one label',
      'search_items',
      { query: 'a', sources: 'Hacker News, Lobsters' },
      { ...search, sources: ['hn', 'lobsters'] },
    ],
    ['all sources', 'search_items', { query: 'a', sources: ['all'] }, search],
    ['an unknown name without a value', 'search_items', { query: 'a', key: null }, search],
    ['a name in capitals', 'search_items', { Query: 'a' }, search],
    ['a list for one text', 'search_items', { query: ['a'] }, search],
    ...[
      '2026-05-01T00:00:00Z',
      '2026-05-01T23:59:59.999+00:00',
      '2026-05-01T12:00',
      '2026-05-01 12:00:00',
    ].map((from): [string, string, unknown, object] => [
      from,
      'search_items',
      { query: 'a', from },
      { ...search, from: '2026-05-01' },
    ]),
    [
      'an instant of another zone',
      'search_items',
      { query: 'a', to: '2026-05-01T23:00:00-05:00' },
      { ...search, to: '2026-05-02' },
    ],
    [
      'the label of a list',
      'get_period_top',
      { period: 'Year', list: ['Hacker News'], limit: '5', at: '' },
      { period: 'year', list: 'hackerNews', limit: 5, at: null },
    ],
    [
      'the id of a source for its list',
      'get_period_top',
      { period: 'day', list: 'hn' },
      { period: 'day', list: 'hackerNews', limit: null, at: null },
    ],
    ...['2026-03-01T12:00Z', '2026-03-01 12:00:00', '2026-03-01t12:00:00z'].map(
      (at): [string, string, unknown, object] => [
        at,
        'get_period_top',
        { period: 'year', at },
        { period: 'year', list: null, limit: null, at: '2026-03-01T12:00:00Z' },
      ],
    ),
  ])('arguments whose meaning is plain are taken: %s', (_how, name, given, expected) => {
    const text = typeof given === 'string' ? given : JSON.stringify(given)
    expect(parseToolCall({ name, arguments: text })).toEqual({
      ok: true,
      call: { name, arguments: expected },
    })
  })

  test.each([''])('the arguments %j count as none', (given) => {
    expect(problem('read_article', given)).toContain('key: ')
  })

  test.each(['functions.search_items', 'Search_Items'])('the name %j is the name of a tool', (name) => {
    expect(parseToolCall({ name, arguments: '{"query":"a"}' })).toEqual({
      ok: true,
      call: { name: 'search_items', arguments: search },
    })
  })

  test('the name "search_items.read_article" names no tool', () => {
    expect(problem('search_items.read_article', { query: 'a' })).toContain('the tools are search_items, ')
  })

  test('the word null is a word where a text is required', () => {
    const call = { query: 'null', sources: null, from: null, to: null, limit: null }
    expect(
      parseToolCall({ name: 'search_items', arguments: JSON.stringify({ query: 'null', limit: '' }) }),
    ).toEqual({
      ok: true,
      call: { name: 'search_items', arguments: call },
    })
    expect(problem('get_trend_history', { term: 'null' })).toBe('ok')
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
