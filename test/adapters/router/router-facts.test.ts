import { expect, test } from 'vitest'
import { parseCatalogue, parseEndpoints, parseKeyRequests } from '../../../src/adapters/router/router.ts'
import type { Catalogue } from '../../../src/domain/models/catalogue.ts'
import { catalogueModel, catalogueRow } from '../../domain/models/free-models.ts'

const NONE: Catalogue = { models: [], badRows: 0 }
const read = (body: unknown): Catalogue => parseCatalogue(JSON.stringify(body)) ?? NONE
const only = (row: unknown): Catalogue => read({ data: [row] })

test('a row of the catalogue is read with all its facts', () => {
  const { models, badRows } = only(
    catalogueRow('maker/model:free', { expiration_date: '2026-09-30', reasoning: { mandatory: true } }),
  )
  expect(badRows).toBe(0)
  const createdAt = 1_780_000_000_000
  const facts = { createdAt, expirationDay: '2026-09-30', description: 'A model made for the tests.' }
  expect(models).toEqual([catalogueModel('maker/model:free', facts)])
})

test.each([
  ['no id', catalogueRow('a/b', { id: undefined })],
  ['prices that are a list', catalogueRow('a/c', { pricing: 'free' })],
  ['an id that was listed before', catalogueRow('good/one:free', { name: 'another' })],
])('a row with %s is counted, and affects no other', (_what, row) => {
  const { models, badRows } = read({
    data: [catalogueRow('good/one:free'), row, catalogueRow('good/two:free')],
  })
  expect(models.map(({ id }) => id)).toEqual(['good/one:free', 'good/two:free'])
  expect(models[0]?.name).toBe('Name of good/one:free')
  expect(badRows).toBe(1)
})

test.each([
  [262_144, 131_072, 131_072],
  [131_072, 262_144, 131_072],
  [131_072, null, 131_072],
])('of the contexts of a model (%j) and its provider (%j) the smaller counts', (model, provider, context) => {
  const row = { context_length: model, top_provider: { context_length: provider } }
  expect(only(catalogueRow('a/b:free', row)).models[0]?.contextLength).toBe(context)
})

test.each([
  ['name', 7, 'name', 'a/b:free'],
  ['created', -1, 'createdAt', null],
  ['context_length', '131072', 'contextLength', 131_072],
  ['top_provider', null, 'maxCompletionTokens', null],
  ['supported_parameters', 'tools', 'supportedParameters', []],
  ['architecture', null, 'outputModalities', []],
  ['description', null, 'description', ''],
  ['expiration_date', 'soon', 'expirationUnreadable', true],
  ['expiration_date', '2026-09-30T00:00:00Z', 'expirationDay', '2026-09-30'],
])('an invalid %s (%j) loses only that fact', (field, value, fact, expected) => {
  const { models } = only(catalogueRow('a/b:free', { [field]: value }))
  expect(models[0]).toMatchObject({ id: 'a/b:free', [fact]: expected })
})

const includedIds = (...rows: Record<string, unknown>[]): string[] =>
  read({ data: rows })
    .models.filter(({ isRouterOrAlias }) => isRouterOrAlias)
    .map(({ id }) => id)
const slug = (id: string, canonical_slug: unknown) => catalogueRow(id, { canonical_slug })

test('a router and an alias are marked as standing for others', () => {
  expect(
    includedIds(
      catalogueRow('a/auto:free', { architecture: { modality: 'text->text', tokenizer: 'Router' } }),
      catalogueRow('a/latest:free', { alias_target: { slug: 'a/b', name: 'B' } }),
      catalogueRow('a/plain:free', { alias_target: null }),
    ),
  ).toEqual(['a/auto:free', 'a/latest:free'])
})

test('a second name of a free model is marked, and not its paid row or a model with another slug', () => {
  expect(
    includedIds(
      slug('a/b-latest:free', 'a/b-2026'),
      slug('a/b:free', 'a/b-2026'),
      slug('a/b', 'a/b-2026'),
      slug('a/aaa:free', 'c/d'),
      slug('c/d:free', 'c/d'),
      slug('a/abc:free', 'c/d'),
      slug('e/f:free', null),
      slug('e/g:free', 7),
      slug('e/h:free', 7),
    ),
  ).toEqual(['a/b:free', 'a/aaa:free', 'a/abc:free'])
})

test('every price counts, including those of steps, and a value that is not a number is not zero', () => {
  const pricing = {
    prompt: '0',
    completion: '0.0000',
    image: 0,
    request: 'free',
    web_search: null,
    overrides: [{ min_prompt_tokens: 128_000, prompt: '0.000001', completion: '1e-6' }],
  }
  expect(only(catalogueRow('a/b:free', { pricing })).models[0]?.prices).toEqual({
    prompt: 0,
    completion: 0,
    image: 0,
    request: null,
    'overrides.0.prompt': 0.000001,
    'overrides.0.completion': 0.000001,
  })
})

test('names and descriptions become well-formed text without control characters, cut at code points', () => {
  const name = '😀'.repeat(250)
  const rows = [
    JSON.stringify(catalogueRow('a/b:free', { name })),
    JSON.stringify(catalogueRow('a/c:free', { name: 'x' })).replace(
      '"x"',
      String.raw`"cut \ud83d \u0007 here"`,
    ),
  ]
  const { models } = parseCatalogue(`{"data":[${rows.join(',')}]}`) ?? NONE
  expect(models[0]?.name).toBe(`${'😀'.repeat(199)}…`)
  expect(models[1]?.name).toBe('cut \ufffd   here')
})

test.each([
  [
    'usable if one of them is, with the latency of the fastest',
    [
      { status: 0, latency_last_30m: { p50: 2400.6, p90: 9000 } },
      { status: -5, latency_last_30m: { p50: 10 } },
      { status: 0, latency_last_30m: { p50: 640.4 } },
    ],
    { usable: true, latencyMs: 640 },
  ],
  ['not usable if there are none', [], { usable: false, latencyMs: null }],
  [
    'without a latency if none is reported, whatever their fields hold',
    [{ status: 'up', latency_last_30m: 'fast' }, 5],
    { usable: true, latencyMs: null },
  ],
])('the endpoints of a model are %s', (_how, endpoints, expected) => {
  expect(parseEndpoints(JSON.stringify({ data: { id: 'a/b', endpoints } }))).toEqual(expected)
})

test('the requests of a key are read from the response', () => {
  const body = JSON.stringify({ data: { free_model_daily_requests: { limit: 50, used: 52, remaining: 0 } } })
  expect(parseKeyRequests(body)).toEqual({ limit: 50, used: 52 })
})

test('nothing is read from a response without JSON', () => {
  expect([parseCatalogue('null'), parseEndpoints(''), parseKeyRequests('')]).toEqual([null, null, null])
})
