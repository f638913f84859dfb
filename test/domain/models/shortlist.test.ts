import { describe, expect, test } from 'vitest'
import {
  recommendationPayload,
  topModelsPayload,
  isStale,
  parseShortlist,
  pickModel,
  NO_FILTER,
  parseShortlistQuery,
} from '../../../src/domain/models/shortlist.ts'
import type { Need } from '../../../src/domain/models/shortlist.ts'
import { RUN_AT, sampleRun } from '../../support/free-models.ts'

const served = { run: sampleRun(), seed: false, storeAnswers: true }
const ask = (query: string) =>
  topModelsPayload(served, parseShortlistQuery(new URLSearchParams(query)), RUN_AT)
const ids = (query: string): string[] => ask(query).models.map(({ id }) => id)

const ALL = ['maker/good:free', 'maker/talker:free', 'other/cached:free', 'third/new:free']

describe('a shortlist query', () => {
  test.each([
    ['', ALL],
    ['limit=1', ALL.slice(0, 1)],
    ['limit=4', ALL],
    ['limit=5', ALL],
    [`limit=${'9'.repeat(60)}`, ALL],
    ['needs=stop', ['maker/good:free', 'third/new:free']],
    ['needs=structured,responseFormat', ['maker/good:free']],
    ['needs=tools', ['maker/good:free', 'other/cached:free']],
    ['needs=toolChoice', ['maker/good:free', 'maker/talker:free', 'other/cached:free']],
    ['needs=tools,tools', ['maker/good:free', 'other/cached:free']],
    ['needs=seed&limit=2', ALL.slice(0, 2)],
    ['minContext=131072', ALL.slice(0, 3)],
    ['minContext=131073', ALL.slice(0, 1)],
    ['minContext=999999999999999999999', []],
    ['health=passed', ALL.slice(0, 2)],
    ['health=passed&needs=tools&minContext=1&limit=9', ['maker/good:free']],
    ['unknown=1&sort=x', ALL],
  ])('%j gives %j', (query, expected) => {
    expect(ids(query)).toEqual(expected)
    expect(ask(query).count).toBe(expected.length)
  })

  test('filters before it cuts, and keeps the ranks of the whole list', () => {
    const { models } = ask('needs=stop&limit=2')
    expect(models.map(({ rank, id }) => [rank, id])).toEqual([
      [1, 'maker/good:free'],
      [4, 'third/new:free'],
    ])
  })

  test.each(['0', '-1', '1.5', '01', '+1', ' 1', '1e3', '', 'all', '1&limit=1'])(
    'refuses limit=%s',
    (value) => {
      expect(() =>
        parseShortlistQuery(new URLSearchParams(`limit=${encodeURI(value).replace('+', '%2B')}`)),
      ).toThrow(expect.objectContaining({ code: 'invalid_limit' }))
    },
  )

  test.each([
    ...['needs=', 'needs=vision', 'needs=tools,', 'needs=tools,%20seed', 'needs=Tools'],
    ...['needs=constructor', 'needs=tools&needs=seed', 'minContext=', 'minContext=0'],
    ...['minContext=128k', 'minContext=1&minContext=1', 'health=imperfect', 'health='],
    'health=passed&health=passed',
  ])('refuses %s', (query) => {
    expect(() => parseShortlistQuery(new URLSearchParams(query))).toThrow(
      expect.objectContaining({ code: 'invalid_filter' }),
    )
  })

  test('refuses the limit first', () => {
    expect(() => parseShortlistQuery(new URLSearchParams('needs=x&limit=x'))).toThrow(
      expect.objectContaining({ code: 'invalid_limit' }),
    )
  })
})

describe('a shortlist that was read', () => {
  const body = (): unknown => JSON.parse(JSON.stringify(ask('')))

  test('gives its best model, and the recommendation just as the other endpoint does', () => {
    const shortlist = parseShortlist(body())
    const pick = shortlist && pickModel(shortlist, NO_FILTER)
    expect(pick?.primary.id).toBe('maker/good:free')
    expect(JSON.stringify(pick?.recommendation)).toBe(JSON.stringify(recommendationPayload(served, RUN_AT)))
  })

  test('gives the best model that meets the needs, or none', () => {
    const shortlist = parseShortlist(body())
    if (!shortlist) throw new Error('it is one')
    const pick = (...needs: Need[]): string | null =>
      pickModel(shortlist, { ...NO_FILTER, needs })?.primary.id ?? null
    expect(pick('stop')).toBe('maker/good:free')
    expect(pick('tools', 'structured')).toBe('maker/good:free')
    const others = { ...shortlist, models: shortlist.models.slice(1) }
    expect(pickModel(others, { ...NO_FILTER, needs: ['tools'] })?.primary.id).toBe('other/cached:free')
    expect(pickModel(others, { ...NO_FILTER, needs: ['structured'] })).toBeNull()
  })

  test('may come from a host that knows none of the newer fields', () => {
    const older = body() as Record<string, unknown> & { models: Record<string, unknown>[] }
    for (const name of ['seed', 'stale', 'ageHours', 'nextUpdateAt']) delete older[name]
    for (const model of older.models)
      for (const name of ['previousRank', 'toolUse', 'rateLimitKind', 'checkedAt']) delete model[name]
    const shortlist = parseShortlist(older)
    if (!shortlist) throw new Error('it is one')
    expect(shortlist.models).toHaveLength(4)
    const ages = [RUN_AT, RUN_AT + 36 * 3_600_000, RUN_AT + 36 * 3_600_000 + 1]
    expect(ages.map((now) => isStale(shortlist, now))).toEqual([false, false, true])
    expect(isStale({ ...shortlist, stale: true }, RUN_AT)).toBe(true)
  })

  test.each([
    ['null', null],
    ['a list', []],
    ['a page', '<html>'],
    ['a refusal', { error: 'not_found' }],
    ['no models', { ...(body() as object), models: undefined }],
    ['an id for a shell', { ...(body() as object), models: [{ ...ask('').models[0], id: '$(reboot)/x' }] }],
    ['a base that is no http URL', { ...(body() as object), baseUrl: 'javascript:alert(1)' }],
  ])('%s is none', (_what, value) => {
    expect(parseShortlist(value)).toBeNull()
  })
})
