import { describe, expect, test } from 'vitest'
import {
  chatModels,
  claimsOf,
  confidenceOf,
  coverageOf,
  rankCandidates,
  shortTokens,
  unservedLeaders,
} from '../../../src/domain/models/ranking.ts'
import type { Candidate, Ranked } from '../../../src/domain/models/ranking.ts'
import { DAY_MS } from '../../../src/domain/time.ts'
import { candidate, catalogueModel, evaluation, RUN_AT, sampleCandidates, sampleRun } from './free-models.ts'

const NONE = new Map<string, number>()
const rank = (candidates: readonly Candidate[]): Ranked[] => rankCandidates(candidates, NONE, RUN_AT)
const ids = (ranked: readonly Ranked[]): string[] => ranked.map(({ model }) => model.id)

const NEVER = { evaluation: null } as const
const NOT_PROBED = { status: 'not_probed', latencyMs: null, rateLimitKind: 'none', checkedAt: null } as const

describe('a ranking', () => {
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

  test('a published model has the reason for it, its earlier rank, and the evaluation that counts', () => {
    const previous = new Map([['maker/good:free', 3]])
    const ranked = rankCandidates(sampleCandidates(), previous, RUN_AT)
    const [good, talker, cached, unevaluated] = ranked.map(({ model }) => model)
    const [now, yesterday] = ['2026-08-22T03:17:01.124Z', '2026-08-21T03:17:01.124Z']
    expect(good).toMatchObject({
      previousRank: 3,
      checkedAt: now,
      reason: 'Tools, structured outputs, reasoning; lite eval 3/3',
      evalSummary: { status: 'completed', passed: 3, total: 3, updatedAt: now },
    })
    expect(good?.evalSummary).not.toHaveProperty('cacheMultiplier')
    expect(talker).toMatchObject({ previousRank: null, toolUse: 'disproven' })
    expect(cached).toMatchObject({ healthScore: 100, latencyScore: 25, instabilityPenalty: 50 })
    const ofYesterday = { cachedFromUpdatedAt: yesterday, cacheAgeDays: 1, cacheMultiplier: 0.9 }
    expect(cached).toMatchObject({
      liteEvalScore: 468,
      evalSummary: { status: 'cached_recent', ...ofYesterday },
    })
    expect(unevaluated).toMatchObject({ checkedAt: null, reason: '32k context; lite eval 0/3' })
    expect([999_999, 1_000_000, 1_590_000].map(shortTokens)).toEqual(['999k', '1M', '1.5M'])
    const none = { status: 'not_evaluated', total: 3, tasks: [], updatedAt: null }
    expect(unevaluated?.evalSummary).toMatchObject(none)
  })
})

/** An evaluation of which a prompt or both have no response. */
function unanswered(isOpen: (id: string) => boolean): Candidate['evaluation'] {
  const { updatedAt, tasks } = evaluation(RUN_AT)
  const none = { status: 'http_timeout_or_error', points: 0, score: 0, details: {} } as const
  return { updatedAt, tasks: tasks.map((each) => (isOpen(each.id) ? { ...each, ...none } : each)) }
}

test('models without a provider that would rank first are no candidates, unless there is no other', () => {
  const gone = candidate('m/a:free', { gone: true })
  const weak = candidate('m/b:free', { evaluation: evaluation(RUN_AT, [0, 0, 0]) })
  const last = candidate('m/c:free', { gone: true, evaluation: null })
  expect([...unservedLeaders([weak, last, gone], RUN_AT)]).toEqual(['m/a:free'])
  expect([...unservedLeaders([weak], RUN_AT)]).toEqual([])
  expect([...unservedLeaders([last, gone], RUN_AT)]).toEqual(['m/a:free', 'm/c:free'])
})

test('the chat gets the models that can call tools, as far as known', () => {
  expect(chatModels(sampleRun()).map(({ id }) => id)).toEqual(['maker/good:free', 'other/cached:free'])
})

test('a model can become the primary by prompts that it did not respond to today, or by all that a forced run repeats', () => {
  const claimed = (mode: 'fullEval' | 'forceEval', evaluated: Candidate['evaluation'], gone = false) => {
    const history = { tasksToday: { tool: [] }, sentToday: 1, lastEvaluatedAt: null, tested: true }
    const rival = { ...candidate('m/a:free', { evaluation: evaluated, gone }), ...history }
    const leader = { ...candidate('m/b:free'), ...history }
    const [claim] = claimsOf([rival, leader], mode, RUN_AT)
    return [claim?.canWin, claim?.openKinds.join(), claim?.left]
  }
  const failed = evaluation(RUN_AT, [0, 300, 100])
  expect(claimed('fullEval', failed)).toEqual([false, 'text', 2])
  expect(claimed('forceEval', failed)).toEqual([true, 'tool,text', 3])
  expect(claimed('fullEval', evaluation(RUN_AT - DAY_MS, [0, 300, 100]))[0]).toBe(true)
  expect(
    claimed(
      'fullEval',
      unanswered((id) => id === 'task_files_lite'),
    )[0],
  ).toBe(true)
})

describe('coverage', () => {
  const primary = candidate('m/b:free')
  const larger = { model: catalogueModel('m/d:free', { contextLength: 1_000_000 }) }

  // The perfect primary has 75 points for its latency, as a model that would solve every task.
  test.each<[string, Candidate, boolean]>([
    ['of an earlier id', candidate('m/a:free', NEVER), true],
    ['of a later id', candidate('m/c:free', NEVER), false],
    ['that did not respond', candidate('m/a:free', { evaluation: unanswered(() => true) }), true],
    ['with a larger context', candidate('m/d:free', { ...NEVER, ...larger }), true],
    ['that failed lately', candidate('m/d:free', { ...NEVER, ...larger, failuresIn72h: 8 }), false],
    ['without a provider', candidate('m/d:free', { ...NEVER, ...larger, gone: true }), false],
    ['that was not probed', candidate('m/a:free', { ...NEVER, health: NOT_PROBED }), true],
  ])(
    'an unevaluated model %s is a threat if a perfect evaluation would make it the primary',
    (_of, rival, isThreat) => {
      const others = [
        candidate('m/z:free', NEVER),
        candidate('m/y:free', { evaluation: evaluation(RUN_AT, [0, 0, 0]) }),
      ]
      const ranked = rank([primary, rival, ...others])
      const { metadataScore, instabilityPenalty } =
        ranked.find(({ model }) => model.id === rival.model.id)?.model ?? {}
      const possible = (metadataScore ?? 0) + 400 + 75 + 750 - (instabilityPenalty ?? 0)
      const plain = (ranked[0]?.model.metadataScore ?? 0) + 400 + 75 + 750
      expect(coverageOf(ranked, 0, RUN_AT)).toMatchObject({
        evaluated: 2,
        totalRanked: 4,
        unevaluatedCanStillWin: isThreat,
        unevaluatedThreatCount: isThreat ? 1 : 0,
        topUnevaluatedThreat: isThreat ? rival.model.id : null,
        maxUnevaluatedPossibleScore: rival.gone ? plain : Math.max(possible, plain),
      })
    },
  )

  test('an evaluation of which one prompt has no response counts with 0 points for it', () => {
    const half = unanswered((id) => id !== 'task_files_lite')
    const ranked = rank([primary, candidate('m/a:free', { evaluation: half })])
    expect(coverageOf(ranked, 2, RUN_AT)).toMatchObject({ evaluated: 2, unevaluatedCanStillWin: false })
    expect(ranked[1]?.model).toMatchObject({
      liteEvalScore: 350,
      evalSummary: { status: 'completed', passed: 1 },
    })
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

  test('four fresh scores of five give a high confidence, three of four a medium one', () => {
    const withOneOld = (count: number): Candidate[] =>
      eight.slice(0, count).with(0, { ...primary, evaluation: evaluation(RUN_AT - 2 * DAY_MS) })
    expect([level(withOneOld(5)), level(withOneOld(4))]).toEqual(['high', 'medium'])
  })

  test('the confidence is low while a model can overtake, and when the primary is not evaluated', () => {
    const weak = candidate('m/b:free', { evaluation: evaluation(RUN_AT, [0, 0, 0]) })
    const unevaluated = candidate('m/a:free', NEVER)
    expect([level([unevaluated]), level([unevaluated, weak])]).toEqual(['low', 'low'])
    const reasonOf = (...field: Candidate[]): string => {
      const ranked = rank(field)
      return confidenceOf(ranked, coverageOf(ranked, 0, RUN_AT), RUN_AT).rankingConfidenceReason
    }
    expect(reasonOf(primary, unevaluated)).toMatch(
      /^One model without a valid test could take the first place /,
    )
    expect(reasonOf(primary, unevaluated, candidate('m/A:free', NEVER))).toMatch(/^2 models without /)
  })
})
