import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  healthPayload,
  recommendationPayload,
  statusPayload,
  topModelsPayload,
  NO_FILTER,
} from '../../../src/domain/models/shortlist.ts'
import type { Served } from '../../../src/domain/models/shortlist.ts'
import { nextRankingVersion } from '../../../src/domain/models/recommend.ts'
import { seedRun } from '../../../src/domain/models/seed.ts'
import { proveRun, sealRun } from '../../../src/domain/models/stored-run.ts'
import { publishedText, wellFormed } from '../../../src/domain/models/schema.ts'
import {
  candidate,
  catalogueModel,
  evaluation,
  RUN_AT,
  sampleCandidates,
  sampleRun,
  task,
} from '../../support/free-models.ts'

const HOUR_MS = 3_600_000
const ALL = { limit: null, filter: NO_FILTER }
const stored = (run = sampleRun()): Served => ({ run, seed: false, storeAnswers: true })
const seed = (storeAnswers = true): Served => ({ run: seedRun(), seed: true, storeAnswers })

const ENVELOPE =
  'updatedAt source rankingVersion probeMode refreshMode liteEvalMode liteEvalSuite rankingConfidence rankingConfidenceReason evalCoverage baseUrl createKeyUrl fallback'
const OWN = 'notes seed stale ageHours nextUpdateAt'
const MODEL =
  'rank id name score metadataScore healthScore latencyScore liteEvalScore contextLength maxCompletionTokens supportsTools supportsToolChoice supportsStructuredOutputs supportsResponseFormat supportsReasoning supportsIncludeReasoning supportsSeed supportsStop latencyMs healthStatus evalSuite evalSummary reason instabilityPenalty previousRank toolUse rateLimitKind checkedAt'
const COVERAGE =
  'evaluated completedToday attemptedToday totalRanked candidatePool unevaluatedCanStillWin unevaluatedThreatCount topUnevaluatedThreat maxUnevaluatedPossibleScore'
const SUMMARY = 'suite status passed total updatedAt tasks'

describe('the payloads', () => {
  test('have their fields in the order in which readers find them, stored and seed alike', () => {
    for (const served of [stored(), stored(proveRun(sealRun(sampleRun()))), seed()]) {
      const top = topModelsPayload(served, ALL, RUN_AT)
      const recommendation = recommendationPayload(served, RUN_AT)
      expect(Object.keys(top).join(' ')).toBe(`${ENVELOPE} count models ${OWN}`)
      expect(Object.keys(recommendation).join(' ')).toBe(`${ENVELOPE} primary alternatives ${OWN}`)
      expect(Object.keys(top.evalCoverage).join(' ')).toBe(COVERAGE)
      for (const model of [...top.models, recommendation.primary, ...recommendation.alternatives]) {
        expect(Object.keys(model).join(' ')).toBe(MODEL)
        const cached = model.evalSummary.status === 'cached_recent'
        expect(Object.keys(model.evalSummary).join(' ')).toBe(
          `${SUMMARY}${cached ? ' cachedFromUpdatedAt cacheAgeDays cacheMultiplier' : ''}`,
        )
      }
    }
    const health = 'ok lastUpdatedAt ageHours maxFreshHours usingSeedFallback hasKvBinding'
    expect(Object.keys(healthPayload(stored(), RUN_AT)).join(' ')).toBe(health)
    expect(Object.keys(statusPayload(stored(), RUN_AT)).join(' ')).toBe(
      `${health} service primary rankingVersion rankingConfidence`,
    )
  })

  test('agree: the primary is the first model, the alternatives are the rest and never repeat it', () => {
    const top = topModelsPayload(stored(), ALL, RUN_AT)
    const { primary, alternatives } = recommendationPayload(stored(), RUN_AT)
    expect([primary, ...alternatives]).toEqual(top.models)
    expect(top.count).toBe(4)
    expect(statusPayload(stored(), RUN_AT)).toMatchObject({
      service: 'free-llm',
      primary: 'maker/good:free',
      rankingVersion: '2026-08-22.v1',
    })
  })

  test.each([
    [0, { ageHours: 0, stale: false }, { ok: true, ageHours: 0 }],
    [HOUR_MS - 1, { ageHours: 0, stale: false }, { ok: true, ageHours: 0.99 }],
    [90 * 60_000, { ageHours: 1, stale: false }, { ok: true, ageHours: 1.5 }],
    [36 * HOUR_MS, { ageHours: 36, stale: false }, { ok: true, ageHours: 36 }],
    [36 * HOUR_MS + 1, { ageHours: 36, stale: true }, { ok: false, ageHours: 36 }],
    [-5 * HOUR_MS, { ageHours: 0, stale: false }, { ok: true, ageHours: 0 }],
  ])('%i ms after the update tell their age', (ageMs, inBody, inHealth) => {
    const now = RUN_AT + ageMs
    const body = topModelsPayload(stored(), ALL, now)
    expect(body).toMatchObject({ ...inBody, seed: false, nextUpdateAt: '2026-08-23T03:17:01.124Z' })
    expect(body.notes.some((note) => note.includes('hours old'))).toBe(inBody.stale)
    expect(recommendationPayload(stored(), now)).toMatchObject(inBody)
    expect(healthPayload(stored(), now)).toEqual({
      ...inHealth,
      lastUpdatedAt: '2026-08-22T03:17:01.124Z',
      maxFreshHours: 36,
      usingSeedFallback: false,
      hasKvBinding: true,
    })
  })

  test('change at most once an hour', () => {
    const at = (ms: number): string => JSON.stringify(topModelsPayload(stored(), ALL, RUN_AT + ms))
    expect(at(10)).toBe(at(HOUR_MS - 1))
    expect(at(HOUR_MS)).not.toBe(at(HOUR_MS - 1))
  })
})

describe('the seed', () => {
  test('holds several models by published facts alone, none of it measured, and says so', () => {
    const { models, notes, ...rest } = topModelsPayload(seed(), ALL, RUN_AT)
    expect(models.length).toBeGreaterThanOrEqual(3)
    for (const model of models) {
      expect(model).toMatchObject({
        healthStatus: 'not_probed',
        liteEvalScore: 0,
        latencyMs: null,
        checkedAt: null,
        toolUse: 'unknown',
        evalSummary: { status: 'not_evaluated' },
      })
      expect(model.score).toBe(model.metadataScore + 100 + 25)
      expect(model.supportsTools).toBe(true)
    }
    expect(rest).toMatchObject({
      source: 'seed',
      rankingConfidence: 'low',
      liteEvalMode: 'off',
      seed: true,
      nextUpdateAt: null,
      fallback: { id: 'openrouter/free' },
    })
    expect(notes[0]).toContain('built-in seed')
    expect(proveRun(sealRun(seedRun()))).toEqual(seedRun())
  })

  test.each([true, false])('leaves health without age, the store answering or not (%s)', (storeAnswers) => {
    expect(healthPayload(seed(storeAnswers), RUN_AT)).toEqual({
      ok: false,
      lastUpdatedAt: null,
      ageHours: null,
      maxFreshHours: 36,
      usingSeedFallback: true,
      hasKvBinding: storeAnswers,
    })
  })
})

describe('a stored run', () => {
  test('keeps every rejection and why each model is where it is', () => {
    const { rejections, explanations, models } = proveRun(sealRun(sampleRun()))
    expect(rejections).toEqual([{ id: 'maker/guard:free', reason: 'guard_model' }])
    expect(Object.keys(explanations)).toEqual(models.map(({ id }) => id))
    for (const { id, score } of models)
      expect(explanations[id]?.reduce((sum, { points }) => sum + points, 0)).toBe(score)
  })

  test('is JSON that anyone can read, sealed by the digest of its run', () => {
    const parsed = JSON.parse(new TextDecoder().decode(sealRun(sampleRun()))) as {
      run: { models: unknown[] }
    }
    expect(Object.keys(parsed)).toEqual(['sha256', 'run'])
    expect(parsed.run.models).toHaveLength(4)
  })

  const bytes = sealRun(sampleRun())

  test('is refused with any bit changed and at any shorter length', () => {
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(7), (at, bit) => {
        const changed = Uint8Array.from(bytes)
        changed[at] = (changed[at] ?? 0) ^ (1 << bit)
        expect(() => proveRun(changed)).toThrow(expect.objectContaining({ code: 'storage_damaged' }))
        expect(() => proveRun(bytes.slice(0, at))).toThrow(
          expect.objectContaining({ code: 'storage_damaged' }),
        )
      }),
      { numRuns: 300 },
    )
  })

  test.each([
    ['no object', '[]'],
    ['another document', '{"updatedAt":"2026-08-22T03:17:01.124Z"}'],
    ['nothing', ''],
  ])('is refused when it is %s, seal or none', (_what, text) => {
    expect(() => proveRun(new TextEncoder().encode(text))).toThrow('dash evaluate-models')
  })

  test('is not made of a ranking that does not hold together', () => {
    const run = sampleRun()
    const [first, second, ...others] = run.models
    if (!first || !second) throw new Error('the sample has four models')
    for (const models of [
      [second, first, ...others],
      [first, first, ...others],
      [{ ...first, score: first.score + 1 }, second, ...others],
      [{ ...first, rank: 2 }, second, ...others],
      [{ ...first, liteEvalScore: first.liteEvalScore - 1, score: first.score - 1 }, second, ...others],
    ])
      expect(() => sealRun({ ...run, models })).toThrow('does not hold together')
    expect(() => sealRun({ ...run, models: [] })).toThrow()
  })

  test('holds well-formed Unicode whatever models and services wrote', () => {
    const odd = fc.string({ unit: 'binary', maxLength: 12 }).map((text) => `${text}\ud83d`)
    fc.assert(
      fc.property(odd, odd, odd, (name, received, field) => {
        const made = task('babylonian_clock_lite', 0, { received, [field]: [{ [field]: received }] })
        const run = sampleRun({
          candidates: [
            candidate('a/b:free', {
              model: catalogueModel('a/b:free', { name: `x${name}` }),
              evaluation: { updatedAt: RUN_AT, tasks: [made] },
            }),
          ],
          notes: [name],
        })
        const sealed = proveRun(sealRun(run))
        const texts = JSON.stringify([recommendationPayload(stored(sealed), RUN_AT), sealed])
        expect(texts).not.toMatch(/\\ud[89a-f]/i)
        expect(texts.isWellFormed()).toBe(true)
      }),
    )
  })
})

describe('the notes', () => {
  const before = sampleRun({ rankingVersion: '2026-08-21.v1' })

  test('say that nothing moved when nothing did', () => {
    const { notes } = sampleRun({ previous: before })
    expect(notes.slice(3)).toEqual(['The primary is the same as in 2026-08-21.v1.'])
  })

  test('tell the new primary, what moved and by which parts, who came and who left', () => {
    const [good, talker, cached, fresh] = sampleCandidates()
    if (!good || !talker || !cached || !fresh) throw new Error('the sample has four models')
    const run = sampleRun({
      rankingVersion: '2026-08-22.v1',
      previous: before,
      candidates: [
        { ...good, evaluation: evaluation(RUN_AT, [0, 0, 0], false), failuresIn72h: 1 },
        talker,
        cached,
        candidate('brand/new:free', {
          health: { status: 'failed', latencyMs: null, rateLimitKind: 'none', checkedAt: RUN_AT },
        }),
      ],
      unsuffixed: [catalogueModel('maker/glitch')],
      notes: ['The daily limit of the account was met.'],
    })
    expect(run.notes.slice(3)).toEqual([
      'The daily limit of the account was met.',
      'Priced at zero without the free suffix (a price glitch or a preview), so never a candidate: maker/glitch.',
      'The primary changed from maker/good (free) to maker/talker (free) since 2026-08-21.v1.',
      expect.stringMatching(
        /^maker\/good \(free\) fell from 1 to \d: lite eval -750, instability penalty \+25\.$/,
      ),
      'maker/talker (free) rose from 2 to 1: its score is the same, others moved.',
      expect.stringMatching(/^New in the ranking: brand\/new \(free\) \(rank \d\)\.$/),
      'No longer ranked: third/new (free) (was 4).',
    ])
  })

  test('keep the ranks that were', () => {
    const { models } = sampleRun({ previous: before })
    expect(models.map(({ previousRank }) => previousRank)).toEqual([1, 2, 3, 4])
    expect(before.models.map(({ previousRank }) => previousRank)).toEqual([null, null, null, null])
  })
})

test.each([
  [[], '2026-08-22.v1'],
  [['2026-08-21.v7'], '2026-08-22.v1'],
  [['2026-08-22.v1', '2026-08-22.v10', '2026-08-22.v2', 'stray'], '2026-08-22.v11'],
])('after the versions %j comes %s', (versions, next) => {
  expect(nextRankingVersion('2026-08-22', versions)).toBe(next)
})

describe('published text', () => {
  test('is cut by code point, never inside one', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 20 }), (text, most) => {
        const cut = publishedText(text, most)
        expect(cut.isWellFormed()).toBe(true)
        expect(Array.from(cut).length).toBeLessThanOrEqual(most)
        expect(cut).not.toMatch(/\p{Cc}/u)
      }),
    )
    expect(publishedText('😀😀😀', 2)).toBe('😀…')
    expect(publishedText('😀😀', 2)).toBe('😀😀')
  })

  test('is well-formed in the names of fields too', () => {
    expect(wellFormed({ 'a\ud800': ['\udc00', 1, null, true] })).toEqual({
      'a\ufffd': ['\ufffd', 1, null, true],
    })
  })
})
