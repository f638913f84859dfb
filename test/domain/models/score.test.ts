import { describe, expect, test } from 'vitest'
import {
  countedEvaluation,
  failureDetails,
  liteScoreOf,
  toolUseOf,
} from '../../../src/domain/models/evaluation.ts'
import { HEALTH_STATUS_PATTERN } from '../../../src/domain/models/schema.ts'
import {
  healthScoreOf,
  latencyScoreOf,
  metadataComponents,
  parameterBillions,
} from '../../../src/domain/models/score.ts'
import { DAY_MS, startOfDay } from '../../../src/domain/time.ts'
import { catalogueModel, evaluation, RUN_AT, task } from './free-models.ts'

const pointsOf = (name: string, changes: Parameters<typeof catalogueModel>[1]): number =>
  metadataComponents(catalogueModel('a/b:free', changes), RUN_AT).find((part) => part.name === name)
    ?.points ?? -1

test.each([
  ['passed', 400],
  ['imperfect', 250],
  ['http_429', 100],
  ['not_probed', 100],
  ['timeout', 0],
  ['failed', 0],
] as const)('the health %s is worth %i', (status, points) => {
  expect(healthScoreOf(status)).toBe(points)
  expect(status).toMatch(HEALTH_STATUS_PATTERN)
})

test.each([
  [1_000, 75],
  [1_001, 60],
  [2_000, 60],
  [2_001, 40],
  [3_000, 40],
  [3_001, 20],
  [5_000, 20],
  [5_001, 5],
  [null, 25],
])('a latency of %s ms is worth %i', (ms, points) => {
  expect(latencyScoreOf(ms)).toBe(points)
})

describe('an evaluation', () => {
  const lastMoment = startOfDay('2026-08-22') - 1

  test.each([
    ['of this moment', RUN_AT, { status: 'completed', ageDays: 0, multiplier: 1 }],
    ['of the last moment of yesterday', lastMoment, { status: 'cached_recent', ageDays: 1, multiplier: 0.9 }],
    ['three days old', lastMoment - 2 * DAY_MS, { ageDays: 3, multiplier: 0.7 }],
  ])('an evaluation %s counts', (_what, updatedAt, expected) => {
    expect(countedEvaluation(evaluation(updatedAt), RUN_AT)).toMatchObject({ ...expected, points: 750 })
  })

  test('an evaluation that is four days old, of a later day, without tasks, or absent does not count', () => {
    expect(countedEvaluation(evaluation(lastMoment - 3 * DAY_MS), RUN_AT)).toBeNull()
    expect(countedEvaluation(evaluation(lastMoment + DAY_MS + 1), RUN_AT)).toBeNull()
    expect(countedEvaluation({ updatedAt: RUN_AT, tasks: [] }, RUN_AT)).toBeNull()
    expect(countedEvaluation(null, RUN_AT)).toBeNull()
  })

  test.each([
    [725, 1, 725],
    [725, 0.7, 508],
    [6, 0.9, 5],
  ])('an evaluation of %i points times %f scores %i, half up', (points, multiplier, score) => {
    expect(liteScoreOf({ points, multiplier })).toBe(score)
  })

  test('a task without a response has the details of its failure, with texts of others cut', () => {
    const failure = { class: 'timeout', status: null, retryAt: null, limit: null, remaining: null } as const
    const unnamed = { ...failure, resetAt: null, providerName: null, correlated: null, response: null }
    const none = { rateLimitLimit: null, rateLimitRemaining: null, rateLimitResetAt: null }
    expect(failureDetails({ ...unnamed, preview: 'x'.repeat(201) })).toEqual({
      responseStatus: 'timeout',
      rateLimitKind: 'none',
      providerName: null,
      ...none,
      responsePreview: `${'x'.repeat(199)}…`,
    })
    const limited = { ...unnamed, class: 'model_rate_limit', status: 429, resetAt: RUN_AT } as const
    expect(failureDetails({ ...limited, providerName: 'p'.repeat(101), preview: '' })).toMatchObject({
      responseStatus: 429,
      rateLimitKind: 'model',
      providerName: `${'p'.repeat(99)}…`,
      rateLimitResetAt: '2026-08-22T03:17:01.124Z',
    })
    expect(failureDetails({ ...unnamed, class: 'provider_down', preview: '' })['responseStatus']).toBe(
      'failed',
    )
  })

  test('tool use is measured: proven, disproven, and unknown when the task did not run', () => {
    const use = (usedTool: boolean | null) =>
      toolUseOf(countedEvaluation(evaluation(RUN_AT, [0, 0, 0], usedTool), RUN_AT))
    expect([use(true), use(false), use(null)]).toEqual(['proven', 'disproven', 'unknown'])
    const odd = { updatedAt: RUN_AT, tasks: [task('task_files_lite', 0, { usedTool: 'false' })] }
    expect(toolUseOf(countedEvaluation(odd, RUN_AT))).toBe('unknown')
  })
})

describe('the metadata score', () => {
  test('the metadata score has 600 points, each of which some model gets, and a model without facts gets almost none', () => {
    const best = catalogueModel('a/best-600b:free', {
      createdAt: RUN_AT,
      contextLength: 1_000_000,
      maxCompletionTokens: 262_144,
      // prettier-ignore
      supportedParameters: [
        'tools', 'tool_choice', 'structured_outputs', 'response_format', 'reasoning', 'reasoning_effort',
      ],
    })
    const least = {
      createdAt: null,
      contextLength: 8_192,
      maxCompletionTokens: 1_024,
      supportedParameters: [],
    }
    const worst = catalogueModel('a/worst-1b:free', least)
    const sumOf = (model: typeof best, of: 'points' | 'most') =>
      metadataComponents(model, RUN_AT).reduce((sum, part) => sum + part[of], 0)
    expect([sumOf(best, 'points'), sumOf(best, 'most'), sumOf(worst, 'points')]).toEqual([600, 600, 0])
    const evidenceOf = (model: typeof best) => metadataComponents(model, RUN_AT).map((part) => part.evidence)
    expect(evidenceOf(best)).toContain('reasoning_effort listed')
    expect(evidenceOf(worst)).toContain('reasoning_effort not listed')
  })

  test.each([
    ['recency', { createdAt: RUN_AT - 285 * DAY_MS }, 85],
    ['parameters', { description: '' }, 84],
    ['parameters', { name: 'M 45.25B' }, 60],
    ['context', { contextLength: 46_341 }, 30],
    ['output', { maxCompletionTokens: null }, 10],
    ['output', { maxCompletionTokens: 16_384 }, 25],
  ])('the metadata score gives %s of %j %i points', (name, changes, points) => {
    expect(pointsOf(name, changes)).toBe(points)
  })

  test.each([
    ['a 1.5T parameter model', 1_500],
    ['trained on 15T tokens and 36B tokens more', null],
    ['costs $3B, version v2.5b, 3Bs of it', null],
  ])('the metadata score reads the size of %s as %s billions', (description, billions) => {
    expect(parameterBillions(catalogueModel('a/m:free', { name: 'M', description }))).toBe(billions)
  })
})
