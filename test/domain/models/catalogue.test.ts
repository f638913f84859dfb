import { describe, expect, test } from 'vitest'
import { parseCatalogue } from '../../../src/domain/models/catalogue.ts'
import { catalogueRow } from '../../support/free-models.ts'

const only = (row: unknown) => parseCatalogue({ data: [row] })

test('a row is read with its facts in our words', () => {
  const { models, badRows } = only(
    catalogueRow('maker/model:free', { expiration_date: '2026-09-30', reasoning: { mandatory: true } }),
  )
  expect(badRows).toBe(0)
  expect(models).toEqual([
    {
      id: 'maker/model:free',
      name: 'Name of maker/model:free',
      createdAt: 1_780_000_000_000,
      contextLength: 131_072,
      maxCompletionTokens: 32_768,
      prices: { prompt: 0, completion: 0 },
      inputModalities: ['text'],
      outputModalities: ['text'],
      supportedParameters: ['tools', 'tool_choice', 'reasoning', 'seed'],
      expirationDay: '2026-09-30',
      expirationUnreadable: false,
      description: 'A model made for the tests.',
      standsForOthers: false,
    },
  ])
})

test('fields beside the list, new ones in a row and a page of links change nothing', () => {
  const plain = only(catalogueRow('a/b:free'))
  const more = parseCatalogue({
    data: [catalogueRow('a/b:free', { benchmarks: { x: [1] }, links: null, brand_new: { deep: true } })],
    total_count: 1,
    links: { next: null },
  })
  expect(more).toEqual(plain)
})

test.each([
  ['no object', 7, 'row 2'],
  ['null', null, 'row 2'],
  ['no id', catalogueRow('a/b', { id: undefined }), 'row 2'],
  ['an id that a shell would not take', catalogueRow('a/b; rm -rf'), 'a/b; rm -rf'],
  ['an id with a line break', catalogueRow('a/b\nc'), 'a/b c'],
  ['prices that are a list', catalogueRow('a/c', { pricing: 'free' }), 'a/c'],
  ['an id that was listed before', catalogueRow('good/one:free'), 'good/one:free'],
])('a row with %s is counted and named, and costs no other', (_what, row, name) => {
  const { models, badRows, problems } = parseCatalogue({
    data: [catalogueRow('good/one:free'), row, catalogueRow('good/two:free')],
  })
  expect(models.map(({ id }) => id)).toEqual(['good/one:free', 'good/two:free'])
  expect([badRows, problems[0]?.row]).toEqual([1, name])
  expect(problems[0]?.reason).not.toBe('')
})

test.each([
  ['name', 7, 'name', 'a/b:free'],
  ['name', '   ', 'name', 'a/b:free'],
  ['created', '1780000000', 'createdAt', null],
  ['created', -1, 'createdAt', null],
  ['created', 1e15, 'createdAt', null],
  ['context_length', '131072', 'contextLength', 131_072],
  ['context_length', null, 'contextLength', 131_072],
  ['top_provider', null, 'maxCompletionTokens', null],
  ['top_provider', { max_completion_tokens: 1.5 }, 'maxCompletionTokens', null],
  ['supported_parameters', 'tools', 'supportedParameters', []],
  ['architecture', { modality: 'text+image->text' }, 'inputModalities', ['text', 'image']],
  ['architecture', null, 'outputModalities', []],
  ['description', null, 'description', ''],
  ['expiration_date', 'soon', 'expirationUnreadable', true],
  ['expiration_date', '2026-02-30', 'expirationUnreadable', true],
  ['expiration_date', '2026-09-30T00:00:00Z', 'expirationDay', '2026-09-30'],
])('a drifted %s (%j) costs that fact alone', (field, value, fact, expected) => {
  const { models } = only(catalogueRow('a/b:free', { [field]: value }))
  expect(models[0]).toMatchObject({ id: 'a/b:free', [fact]: expected })
})

describe('a row that stands for others', () => {
  const standing = (...rows: Record<string, unknown>[]): string[] =>
    parseCatalogue({ data: rows })
      .models.filter(({ standsForOthers }) => standsForOthers)
      .map(({ id }) => id)
  const slug = (id: string, canonical_slug: unknown) => catalogueRow(id, { canonical_slug })

  test('is one that the service calls a router or an alias', () => {
    expect(
      standing(
        catalogueRow('a/auto:free', { architecture: { modality: 'text->text', tokenizer: 'Router' } }),
        catalogueRow('a/latest:free', { alias_target: { slug: 'a/b', name: 'B' } }),
        catalogueRow('a/plain:free', { alias_target: null }),
      ),
    ).toEqual(['a/auto:free', 'a/latest:free'])
  })

  test('is a second name of a free model, and not its paid row or a model with another slug', () => {
    expect(
      standing(
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
})

test('every price counts, those of steps too, and what is no number is not taken for zero', () => {
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

test('names and descriptions become well-formed text without control characters, cut by code point', () => {
  const name = '😀'.repeat(250)
  const { models } = parseCatalogue(
    JSON.parse(
      `{"data":[${JSON.stringify(catalogueRow('a/b:free', { name }))},${JSON.stringify(
        catalogueRow('a/c:free', { name: 'x' }),
      ).replace('"x"', String.raw`"cut \ud83d \u0007 here"`)}]}`,
    ),
  )
  expect(models[0]?.name).toBe(`${'😀'.repeat(199)}…`)
  expect(models[1]?.name).toBe('cut \ufffd   here')
})

describe('a catalogue that is none', () => {
  test.each([null, [], {}, { data: {} }, { error: { message: 'x' } }, '<html>'])('%j is refused', (body) => {
    expect(() => parseCatalogue(body)).toThrow(expect.objectContaining({ code: 'catalogue_unreadable' }))
  })
})
