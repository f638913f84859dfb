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
    [
      'search_items',
      { query: 'rust', sources: ['hn', 'hype:github'], from: '2026-01-01', to: null, limit: 5 },
    ],
    ['get_period_top', { period: 'year', list: 'hackerNews', limit: 50, at: '2026-03-01T12:00:00Z' }],
    ['get_feed_snapshot', { sort: 'trending', limit: null }],
    ['read_article', { key: 'hn-1', offset: null }],
    ['find_similar_items', { key: 'hype-github-a/b', limit: null }],
    ['get_trend_history', { key: null, term: 'llm', from: null, to: null }],
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
    ['an unknown tool', 'drop_tables', {}, 'unknown tool'],
    ['a name of objects', '__proto__', {}, 'unknown tool'],
    ['no JSON', 'read_article', '{"key": "hn-1"', 'not JSON'],
    ['a list', 'read_article', [], 'arguments: give a JSON object with key, offset'],
    ['a missing key', 'read_article', { offset: null }, 'key: '],
    ['a missing choice', 'get_feed_snapshot', {}, 'sort: Invalid option: expected one of "trending"|"day"'],
    ['a name too many', 'read_article', { key: 'hn-1', url: 'x' }, 'arguments: only key, offset are known'],
    ['a source that is none', 'search_items', { query: 'a', sources: ['x'] }, 'sources.0: Invalid option: '],
    ['a key that is none', 'read_article', { key: 'x', offset: null }, 'key: must be the key of an item'],
    ['words for a number', 'get_feed_snapshot', { sort: 'day', limit: 'five' }, 'limit: '],
    ['a fraction', 'get_feed_snapshot', { sort: 'day', limit: '5.5' }, 'limit: '],
    [
      'a limit too high',
      'get_feed_snapshot',
      { sort: 'day', limit: 21 },
      'limit: Too big: expected number to be <=20',
    ],
    ['a day that is none', 'search_items', { ...search, from: '2026-02-30' }, 'from: must be a real'],
    ['days the wrong way round', 'search_items', turned, 'from: is later than to'],
    ['an empty query', 'search_items', { ...search, query: ' ' }, 'query: is empty'],
    ['a history of the week', 'get_period_top', week, 'only the year'],
    ['both of two', 'get_trend_history', { ...history, key: 'hn-1', term: 'x' }, 'exactly one'],
    ['none of two', 'get_trend_history', history, 'exactly one'],
    ['endless arguments', 'read_article', `{"key":"${'x'.repeat(5_000)}"}`, 'longer than 4096'],
  ])('a call with %s gets a description of the problem', (_, name, given, expected) => {
    expect(problem(name, given)).toContain(expected)
  })

  test.each<[string, string, unknown, object]>([
    ['left out', 'search_items', { query: 'a' }, search],
    ['left out, all of them but one', 'get_trend_history', { term: 'x' }, { ...history, term: 'x' }],
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
    ['a list as text', 'search_items', { query: 'a', sources: '["hn"]' }, { ...search, sources: ['hn'] }],
    ['capitals', 'get_feed_snapshot', { sort: 'Day ' }, { sort: 'day', limit: null }],
    ['encoded twice', 'get_feed_snapshot', JSON.stringify('{"sort":"day"}'), { sort: 'day', limit: null }],
  ])('arguments whose meaning is plain are taken: %s', (_how, name, given, expected) => {
    const text = typeof given === 'string' ? given : JSON.stringify(given)
    expect(parseToolCall({ name, arguments: text })).toEqual({
      ok: true,
      call: { name, arguments: expected },
    })
  })

  test.each(['', ' ', 'null', '"null"', '{}', '""'])('the arguments %j count as none', (given) => {
    expect(problem('get_feed_snapshot', given)).toContain('sort: Invalid option')
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
