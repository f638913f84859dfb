import { describe, expect, test } from 'vitest'
import {
  judge,
  parseCatalogue,
  parseEndpoints,
  REJECTION_REASONS,
} from '../../../src/domain/models/catalogue.ts'
import type { CatalogueModel } from '../../../src/domain/models/catalogue.ts'
import { siftCatalogue } from '../../../src/domain/models/recommend.ts'
import { catalogueModel, catalogueRow, RUN_AT } from '../../support/free-models.ts'

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
  const row = catalogueRow('a/b:free', { benchmarks: { x: [1] }, links: null, brand_new: { deep: true } })
  const more = parseCatalogue({ data: [row], total_count: 1, links: { next: null } })
  expect(more).toEqual(only(catalogueRow('a/b:free')))
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

  test('is one that the service calls a router or an alias', () => {
    const architecture = { modality: 'text->text', tokenizer: 'Router' }
    expect(
      standing(
        catalogueRow('a/auto:free', { architecture }),
        catalogueRow('a/latest:free', { alias_target: { slug: 'a/b', name: 'B' } }),
        catalogueRow('a/plain:free', { alias_target: null }),
      ),
    ).toEqual(['a/auto:free', 'a/latest:free'])
  })

  test('is a second name of a free model, and not its paid row or a model with another slug', () => {
    const slugs = {
      'a/b-latest:free': 'a/b-2026',
      'a/b:free': 'a/b-2026',
      'a/b': 'a/b-2026',
      'a/aaa:free': 'c/d',
      'c/d:free': 'c/d',
      'a/abc:free': 'c/d',
      'e/f:free': null,
      'e/g:free': 7,
      'e/h:free': 7,
    }
    const rows = Object.entries(slugs).map(([id, canonical_slug]) => catalogueRow(id, { canonical_slug }))
    expect(standing(...rows)).toEqual(['a/b:free', 'a/aaa:free', 'a/abc:free'])
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
  const named = (name: string): string | undefined =>
    only(catalogueRow('a/b:free', { name, description: name })).models[0]?.name
  expect(named('😀'.repeat(250))).toBe(`${'😀'.repeat(199)}…`)
  expect(named('cut \ud83d \u0007 here')).toBe('cut \ufffd   here')
})

test.each([null, [], {}, { data: {} }, { error: { message: 'x' } }, '<html>'])(
  '%j is no catalogue',
  (body) => {
    expect(() => parseCatalogue(body)).toThrow(expect.objectContaining({ code: 'catalogue_unreadable' }))
  },
)

const JUDGED: [string, Partial<CatalogueModel>, string][] = [
  ['maker/model:free', {}, 'eligible'],
  ['openrouter/free', {}, 'router'],
  ['openrouter/auto', { prices: { prompt: -1, completion: -1 } }, 'router'],
  ['~maker/model-latest', { prices: { prompt: 1, completion: 1 } }, 'router'],
  ['maker/model-router:free', {}, 'router'],
  ['openrouter/auto:free', {}, 'router'],
  ['openrouter/auto', {}, 'router'],
  ['openrouter/auto-beta', {}, 'router'],
  ['openrouter/free:free', {}, 'router'],
  ['openrouter/pareto-code:free', {}, 'router'],
  ['openrouter/owl-alpha:free', {}, 'router'],
  ['~maker/model-latest:free', {}, 'router'],
  ['maker/model-latest:free', { standsForOthers: true }, 'router'],
  ['maker/automatic:free', {}, 'eligible'],
  ['maker/model', { prices: { prompt: 0.1, completion: 0.1 } }, 'not_free'],
  ['maker/model', {}, 'zero_price_without_suffix'],
  ['openrouter/owl-alpha', {}, 'zero_price_without_suffix'],
  ['maker/model:free', { prices: { prompt: 0 } }, 'price_unknown'],
  ['maker/model:free', { prices: {} }, 'price_unknown'],
  ['maker/model:free', { prices: { prompt: 0, completion: 0, request: null } }, 'price_unknown'],
  ['maker/model:free', { prices: { prompt: 0, completion: 1e-12 } }, 'price_not_zero'],
  [
    'maker/model:free',
    { prices: { prompt: 0, completion: 0, 'overrides.0.prompt': 1e-6 } },
    'price_not_zero',
  ],
  ['maker/model:free', { prices: { prompt: -1, completion: -1 } }, 'price_not_zero'],
  ['maker/model:free', { inputModalities: ['image', 'text', 'video'] }, 'eligible'],
  ['maker/model:free', { inputModalities: ['audio'] }, 'no_text_input'],
  ['maker/music:free', { outputModalities: ['text', 'audio'] }, 'not_only_text_output'],
  ['maker/model:free', { outputModalities: [] }, 'not_only_text_output'],
  ['maker/llama-guard-4-12b:free', {}, 'guard_model'],
  ['maker/gpt-oss-safeguard-20b:free', {}, 'guard_model'],
  ['maker/content-safety:free', {}, 'guard_model'],
  ['maker/shieldgemma-9b:free', {}, 'guard_model'],
  ['maker/x:free', { name: 'Maker: X Moderation' }, 'guard_model'],
  ['maker/x:free', { description: 'A compact guardrail model, fine-tuned.' }, 'guard_model'],
  ['maker/x:free', { description: 'Strong, with safety alignment and moderation in mind.' }, 'eligible'],
  ['maker/text-embedding-3:free', {}, 'embedding_model'],
  ['maker/reranker-v2:free', {}, 'embedding_model'],
  ['maker/fast-tts:free', {}, 'speech_model'],
  ['maker/gpt-audio-mini:free', {}, 'speech_model'],
  ['maker/flash-image:free', {}, 'image_model'],
  ['maker/imagine-7b:free', {}, 'eligible'],
  ['maker/model:free', { contextLength: null }, 'context_unknown'],
  ['maker/model:free', { contextLength: 8_191 }, 'context_too_short'],
  ['maker/model:free', { contextLength: 8_192 }, 'eligible'],
  ['maker/model:free', { expirationDay: '2026-08-21' }, 'expiring'],
  ['maker/model:free', { expirationDay: '2026-08-25' }, 'expiring'],
  ['maker/model:free', { expirationDay: '2026-08-26' }, 'eligible'],
  ['maker/model:free', { expirationDay: '2098-12-31' }, 'eligible'],
  ['maker/model:free', { expirationUnreadable: true }, 'expiry_unreadable'],
]

test.each(JUDGED)('%s with %j is %s', (id, changes, expected) => {
  const judgement = judge(catalogueModel(id, changes), RUN_AT)
  expect(judgement.eligible ? 'eligible' : judgement.reason).toBe(expected)
})

test('every reason is given for something', () => {
  expect(new Set(JUDGED.map(([, , reason]) => reason))).toEqual(
    new Set(['eligible', ...Object.keys(REJECTION_REASONS)]),
  )
})

test('a catalogue is divided without a loss, each rejection with its reason', () => {
  const { models } = parseCatalogue({
    data: [
      catalogueRow('maker/good:free'),
      catalogueRow('maker/glitch'),
      catalogueRow('maker/paid', { pricing: { prompt: '0.1', completion: '0.1' } }),
      catalogueRow('openrouter/free'),
    ],
  })
  const { eligible, rejections, unsuffixed } = siftCatalogue(models, RUN_AT)
  expect(eligible.map(({ id }) => id)).toEqual(['maker/good:free'])
  expect(rejections).toEqual([
    { id: 'maker/glitch', reason: 'zero_price_without_suffix' },
    { id: 'maker/paid', reason: 'not_free' },
    { id: 'openrouter/free', reason: 'router' },
  ])
  expect(unsuffixed.map(({ id }) => id)).toEqual(['maker/glitch'])
})

const told = (endpoints: unknown): string => JSON.stringify({ data: { id: 'a/b', endpoints } })

describe("a model's endpoints", () => {
  test('are usable while one of them is, with the latency of the fastest', () => {
    const slow = { status: 0, latency_last_30m: { p50: 2400.6, p90: 9000 } }
    const fast = { status: 0, latency_last_30m: { p50: 640.4 } }
    const out = { status: -5, latency_last_30m: { p50: 10 } }
    expect(parseEndpoints(told([slow, out, fast]))).toEqual({ usable: true, latencyMs: 640 })
  })

  test.each([
    [[], false],
    [[{ status: -2 }, { status: -10 }], false],
    [[{ status: 0, latency_last_30m: null }], true],
    [[{ status: 'up', latency_last_30m: 'fast' }, 5], true],
  ])('of %j have no latency, and are usable: %s', (endpoints, usable) => {
    expect(parseEndpoints(told(endpoints))).toEqual({ usable, latencyMs: null })
  })

  test.each(['', '<html>', '[]', '{"data":[]}', '{"data":{}}'])('are not told by %j', (body) => {
    expect(parseEndpoints(body)).toBeNull()
  })
})
