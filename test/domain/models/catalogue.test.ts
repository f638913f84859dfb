import { expect, test } from 'vitest'
import { filterCatalogue, REJECTION_REASONS, rejectionOf } from '../../../src/domain/models/catalogue.ts'
import type { CatalogueModel } from '../../../src/domain/models/catalogue.ts'
import { catalogueModel, RUN_AT } from './free-models.ts'

const JUDGED: [string, Partial<CatalogueModel>, string][] = [
  ['maker/model:free', {}, 'eligible'],
  ['openrouter/free', {}, 'router'],
  ['openrouter/auto', { prices: { prompt: -1, completion: -1 } }, 'router'],
  ['~maker/model-latest', { prices: { prompt: 1, completion: 1 } }, 'router'],
  ['maker/model-router:free', {}, 'router'],
  ['openrouter/auto', {}, 'router'],
  ['openrouter/owl-alpha:free', {}, 'router'],
  ['~maker/model-latest:free', {}, 'router'],
  ['maker/model-latest:free', { isRouterOrAlias: true }, 'router'],
  ['maker/automatic:free', {}, 'eligible'],
  ['maker/model', { prices: { prompt: 0.1, completion: 0.1 } }, 'not_free'],
  ['maker/model', {}, 'zero_price_without_suffix'],
  ['openrouter/owl-alpha', {}, 'zero_price_without_suffix'],
  ['maker/model:free', { prices: { prompt: 0 } }, 'price_unknown'],
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
  ['maker/model:free', { expirationDay: '2026-08-25' }, 'expiring'],
  ['maker/model:free', { expirationDay: '2026-08-26' }, 'eligible'],
  ['maker/model:free', { expirationUnreadable: true }, 'expiry_unreadable'],
]

test.each(JUDGED)('the model %s with %j is %s', (id, changes, expected) => {
  expect(rejectionOf(catalogueModel(id, changes), RUN_AT) ?? 'eligible').toBe(expected)
})

test('every rejection reason occurs', () => {
  expect(new Set(JUDGED.map(([, , reason]) => reason))).toEqual(
    new Set(['eligible', ...Object.keys(REJECTION_REASONS)]),
  )
})

test('a catalogue is divided without loss, each rejection with its reason', () => {
  const models = [
    catalogueModel('maker/good:free'),
    catalogueModel('maker/glitch'),
    catalogueModel('maker/paid', { prices: { prompt: 0.1, completion: 0.1 } }),
    catalogueModel('openrouter/free'),
  ]
  const { eligible, rejections } = filterCatalogue(models, RUN_AT)
  expect(eligible.map(({ id }) => id)).toEqual(['maker/good:free'])
  expect(rejections).toEqual([
    { id: 'maker/glitch', reason: 'zero_price_without_suffix' },
    { id: 'maker/paid', reason: 'not_free' },
    { id: 'openrouter/free', reason: 'router' },
  ])
})
