import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { confidenceOf, coverageOf, rankCandidates } from '../../../src/domain/models/ranking.ts'
import type { Candidate, Ranked } from '../../../src/domain/models/ranking.ts'
import { DAY_MS } from '../../../src/domain/time.ts'
import { candidate, catalogueModel, evaluation, RUN_AT, sampleCandidates } from '../../support/free-models.ts'

const NONE = new Map<string, number>()
const rank = (candidates: readonly Candidate[]): Ranked[] => rankCandidates(candidates, NONE, RUN_AT)
const ids = (ranked: readonly Ranked[]): string[] => ranked.map(({ model }) => model.id)

const NEVER = { evaluation: null } as const
const NOT_PROBED = { status: 'not_probed', latencyMs: null, rateLimitKind: 'none', checkedAt: null } as const

const anyCandidate = fc.record({
  number: fc.integer({ min: 0, max: 50 }),
  contextLength: fc.integer({ min: 8_192, max: 300_000 }),
  tools: fc.boolean(),
  status: fc.constantFrom('passed', 'imperfect', 'not_probed', 'timeout', 'http_429' as const),
  latencyMs: fc.option(fc.integer({ min: 1, max: 9_000 })),
  ageHours: fc.option(fc.integer({ min: 0, max: 120 })),
  points: fc.tuple(fc.constantFrom(0, 220, 350), fc.constantFrom(0, 300), fc.constantFrom(0, 100)),
  failuresIn72h: fc.nat(8),
})

const anyField = fc
  .uniqueArray(anyCandidate, { minLength: 1, maxLength: 14, selector: ({ number }) => number })
  .map((all) =>
    all.map((one): Candidate => {
      const id = `maker/model-${one.number}:free`
      const supportedParameters = one.tools ? ['tools'] : []
      return {
        model: catalogueModel(id, { contextLength: one.contextLength, supportedParameters }),
        health: { status: one.status, latencyMs: one.latencyMs, rateLimitKind: 'none', checkedAt: RUN_AT },
        evaluation: one.ageHours === null ? null : evaluation(RUN_AT - one.ageHours * 3_600_000, one.points),
        toolUse: 'unknown',
        gone: false,
        failuresIn72h: one.failuresIn72h,
      }
    }),
  )

describe('a ranking', () => {
  test('a ranking follows the score alone, with contiguous ranks, for any order of the catalogue', () => {
    fc.assert(
      fc.property(anyField, fc.nat(), (field, turn) => {
        const models = rank(field).map(({ model }) => model)
        expect(models.map((model) => model.rank)).toEqual(field.map((_one, index) => index + 1))
        for (const [index, { score }] of models.entries())
          expect(score).toBeLessThanOrEqual(models[index - 1]?.score ?? score)
        const turned = [...field.slice(turn % field.length), ...field.slice(0, turn % field.length)]
        expect(ids(rank(turned))).toEqual(models.map(({ id }) => id))
      }),
    )
  })

  test('ties are decided by measurements, then by published facts, then by id in code-unit order', () => {
    // Passed and quick without points, against a perfect evaluation that makes up for failed health to the point.
    const measured = candidate('z/measured:free', {
      health: { status: 'failed', latencyMs: null, rateLimitKind: 'none', checkedAt: RUN_AT },
      evaluation: evaluation(RUN_AT, [350, 0, 100]),
    })
    const healthy = candidate('a/healthy:free', {
      evaluation: null,
      health: { ...NOT_PROBED, status: 'passed', latencyMs: 1 },
    })
    const [first, second] = rank([healthy, measured])
    expect([first?.model.score, first?.model.id]).toEqual([second?.model.score, 'z/measured:free'])
    expect(ids(rank([candidate('a/b:free'), candidate('Z/b:free'), candidate('a/B:free')]))).toEqual([
      'Z/b:free',
      'a/B:free',
      'a/b:free',
    ])
  })

  test('a published model carries all measurements', () => {
    const previous = new Map([['maker/good:free', 3]])
    const [good, ...others] = rankCandidates(sampleCandidates(), previous, RUN_AT).map(({ model }) => model)
    const [now, yesterday] = ['2026-08-22T03:17:01.124Z', '2026-08-21T03:17:01.124Z']
    expect(good).toMatchObject({
      id: 'maker/good:free',
      rank: 1,
      previousRank: 3,
      toolUse: 'proven',
      checkedAt: now,
      healthScore: 400,
      latencyScore: 75,
      liteEvalScore: 750,
      instabilityPenalty: 0,
      supportsStructuredOutputs: true,
      reason: 'Tools, structured outputs, reasoning; lite eval 3/3',
      evalSummary: { status: 'completed', passed: 3, total: 3, updatedAt: now },
    })
    expect(good?.evalSummary).not.toHaveProperty('cacheMultiplier')
    const cached = { cachedFromUpdatedAt: yesterday, cacheAgeDays: 1, cacheMultiplier: 0.9 }
    expect(others).toMatchObject([
      { previousRank: null, toolUse: 'disproven', supportsTools: true, liteEvalScore: 400 },
      {
        id: 'other/cached:free',
        healthScore: 100,
        latencyScore: 25,
        liteEvalScore: 468,
        instabilityPenalty: 50,
        rateLimitKind: 'model',
        evalSummary: { status: 'cached_recent', passed: 1, total: 3, ...cached },
      },
      {
        liteEvalScore: 0,
        toolUse: 'unknown',
        checkedAt: null,
        latencyMs: null,
        reason: '32k context; lite eval 0/3',
        evalSummary: { status: 'not_evaluated', passed: 0, total: 3, tasks: [], updatedAt: null },
      },
    ])
  })
})

/** As asked, at once, and without a fault. */
const perfect: Partial<Candidate> = {
  health: { status: 'passed', latencyMs: 1, rateLimitKind: 'none', checkedAt: RUN_AT },
  evaluation: evaluation(RUN_AT),
}

describe('coverage', () => {
  test('the coverage names a threat exactly when a perfect evaluation would make a model the primary', () => {
    fc.assert(
      fc.property(anyField, (field) => {
        const ranked = rank(field)
        const coverage = coverageOf(ranked, 0, RUN_AT)
        // The naive way: evaluate one model perfectly and rank everything again.
        const winners = ranked.slice(1).flatMap(({ model, evaluation: known }) => {
          if (known !== null) return []
          const perfected = field.map((one) => (one.model.id === model.id ? { ...one, ...perfect } : one))
          return rank(perfected)[0]?.model.id === model.id ? [model.id] : []
        })
        expect(coverage.unevaluatedThreatCount).toBe(winners.length)
        expect(coverage.unevaluatedCanStillWin).toBe(winners.length > 0)
        if (winners.length > 0) expect(winners).toContain(coverage.topUnevaluatedThreat)
        else expect(coverage.topUnevaluatedThreat).toBeNull()
        const unevaluated = ranked.filter((one) => one.evaluation === null)
        expect(coverage.evaluated).toBe(ranked.length - unevaluated.length)
        const possible = unevaluated.map(
          ({ model }) => model.metadataScore + 400 + 75 + 750 - model.instabilityPenalty,
        )
        expect(coverage.maxUnevaluatedPossibleScore ?? 0).toBe(Math.max(0, ...possible))
      }),
    )
  })

  const level = (field: readonly Candidate[]): string => {
    const ranked = rank(field)
    return confidenceOf(ranked, coverageOf(ranked, 0, RUN_AT), RUN_AT).rankingConfidence
  }
  const eight = Array.from({ length: 8 }, (_, index) => candidate(`m/m${index}:free`))

  test('a score of exactly 24 hours counts as fresh, but not as of today', () => {
    const field = eight.map((one) => ({ ...one, evaluation: evaluation(RUN_AT - DAY_MS) }))
    expect(level(field)).toBe('high')
    expect(coverageOf(rank(field), 8, RUN_AT)).toMatchObject({
      evaluated: 8,
      completedToday: 0,
      attemptedToday: 8,
    })
    expect(level(eight.map((one) => ({ ...one, evaluation: evaluation(RUN_AT - DAY_MS - 1) })))).toBe(
      'medium',
    )
  })

  test('four fresh scores of five give a high confidence, three a medium one', () => {
    const fieldWith = (fresh: number): Candidate[] =>
      eight.slice(0, 5).map((one, index) => ({
        ...one,
        evaluation: evaluation(index < fresh ? RUN_AT : RUN_AT - 2 * DAY_MS),
      }))
    expect([level(fieldWith(4)), level(fieldWith(3))]).toEqual(['high', 'medium'])
  })

  test('the confidence is low while a model can overtake, and when the primary is not evaluated', () => {
    const weak = candidate('m/b:free', { evaluation: evaluation(RUN_AT, [0, 0, 0]) })
    const unevaluated = candidate('m/a:free', NEVER)
    expect([level([unevaluated]), level([unevaluated, weak])]).toEqual(['low', 'low'])
  })

  test('the coverage counts an evaluation with a failed prompt, with 0 points for it', () => {
    const { updatedAt, tasks } = evaluation(RUN_AT)
    const unanswered = { status: 'http_timeout_or_error', points: 0, score: 0, details: {} } as const
    const half = tasks.map((each) => (each.id === 'task_files_lite' ? each : { ...each, ...unanswered }))
    const rival = candidate('m/a:free', { evaluation: { updatedAt, tasks: half } })
    const ranked = rank([candidate('m/b:free'), rival])
    expect(ranked.map(({ model }) => model.liteEvalScore)).toEqual([750, 350])
    const coverage = { evaluated: 2, completedToday: 2, unevaluatedCanStillWin: false }
    expect(coverageOf(ranked, 2, RUN_AT)).toMatchObject(coverage)
    expect(ranked[1]?.model.evalSummary).toMatchObject({ status: 'completed', passed: 1, total: 3 })
  })

  test('a model without a provider is no threat', () => {
    const gone = candidate('m/a:free', { ...NEVER, gone: true })
    const coverage = coverageOf(rank([candidate('m/b:free'), gone]), 1, RUN_AT)
    expect(coverage).toMatchObject({ unevaluatedCanStillWin: false, maxUnevaluatedPossibleScore: null })
  })
})
