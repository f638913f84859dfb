import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { countedEvaluation, toolUseOf } from '../../../src/domain/models/evaluation.ts'
import type { LiteEvaluation } from '../../../src/domain/models/evaluation.ts'
import { healthScoreOf, latencyScoreOf } from '../../../src/domain/models/schema.ts'
import { taskResult, unansweredTasks } from '../../../src/domain/models/lite/grade.ts'
import { recommendationPayload, topModelsPayload, NO_FILTER } from '../../../src/domain/models/shortlist.ts'
import type { Candidate } from '../../../src/domain/models/ranking.ts'
import type { RankedModel } from '../../../src/domain/models/schema.ts'
import { proveRun, sealRun } from '../../../src/domain/models/stored-run.ts'
import { DAY_MS } from '../../../src/domain/time.ts'
import { candidate, catalogueModel, RUN_AT, sampleRun } from '../../support/free-models.ts'

const DAY = '2026-08-22'

const IDS = ['a/one:free', 'a/two:free', 'b/three:free', 'c/four:free', 'c/five:free']

/** Text of models and services that readers could take for the id of a free model. */
const text = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.constantFrom('evil/other:free', 'No endpoints found for gone/model:free.', 'x/y:f:freeree'),
)

const toolTasks = fc.oneof(
  fc
    .tuple(fc.integer({ min: 0, max: 350 }), fc.boolean(), fc.boolean())
    .map(([points, usedTool, isVoid]) => [
      taskResult('task_files_lite', DAY, { points: isVoid ? 0 : points, details: { usedTool }, isVoid }),
    ]),
  text.map((responsePreview) => unansweredTasks('tool', DAY, { responsePreview })),
)

const textTasks = fc.oneof(
  fc
    .tuple(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 100 }), text)
    .map(([shell, clock, said]) => [
      taskResult('task_shell_command_lite', DAY, { points: shell, details: { command: said, seen: [said] } }),
      taskResult('babylonian_clock_lite', DAY, { points: clock, details: { received: said } }),
    ]),
  text.map((responsePreview) => unansweredTasks('text', DAY, { responsePreview })),
)

const evaluation: fc.Arbitrary<LiteEvaluation | null> = fc.option(
  fc.record({
    updatedAt: fc.nat(4).map((days) => RUN_AT - days * DAY_MS),
    tasks: fc.tuple(toolTasks, textTasks).map((tasks) => tasks.flat()),
  }),
  { nil: null },
)

const health = fc.record({
  status: fc.constantFrom('passed', 'imperfect', 'http_429', 'http_502', 'timeout', 'failed'),
  latencyMs: fc.option(fc.nat(9_000), { nil: null }),
  rateLimitKind: fc.constantFrom('none', 'model', 'account'),
  checkedAt: fc.constant(RUN_AT),
})

function candidateNamed(id: string, drawn: object): Candidate {
  return candidate(id, { model: catalogueModel(id, { name: 'A model' }), ...drawn })
}

const candidates = fc
  .array(fc.record({ evaluation, health, failuresIn72h: fc.nat(8) }), { minLength: 1, maxLength: IDS.length })
  .map((drawn) => drawn.map((each, index) => candidateNamed(IDS[index] ?? '', each)))

/** What readers get after any run, as JSON. */
const payloads = fc
  .record({ candidates, before: candidates, note: text, glitch: fc.boolean() })
  .map((drawn) => {
    const run = sampleRun({
      candidates: drawn.candidates,
      previous: sampleRun({ candidates: drawn.before, rankingVersion: '2026-08-21.v1' }),
      unsuffixed: drawn.glitch ? [catalogueModel('maker/glitch')] : [],
      notes: [drawn.note, `Not asked everything, for the account's limits: ${IDS.join(', ')}.`],
    })
    const served = { run: proveRun(sealRun(run)), seed: false, storeAnswers: true }
    const top = topModelsPayload(served, { limit: null, filter: NO_FILTER }, RUN_AT)
    return { drawn, top, recommendation: recommendationPayload(served, RUN_AT) }
  })

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : []
}

describe('any payload agrees with itself', () => {
  const holds = (check: (model: RankedModel) => void): void => {
    fc.assert(
      fc.property(payloads, ({ top }) => {
        for (const model of top.models) check(model)
      }),
    )
  }

  test('the lite score is what the tasks of the summary add up to, times the multiplier', () => {
    holds(({ liteEvalScore, evalSummary: { tasks, cacheMultiplier = 1 } }) => {
      const points = tasks.reduce((sum, task) => sum + task.points, 0)
      const tenths = points * Math.round(cacheMultiplier * 10)
      expect(liteEvalScore).toBe(Math.floor((tenths + 5) / 10))
    })
  })

  test('a model that is called not evaluated has no point and no answer, every other has an answer', () => {
    holds(({ liteEvalScore, evalSummary: { status, tasks, updatedAt, passed, total } }) => {
      const answered = tasks.filter((task) => task.status !== 'http_timeout_or_error')
      expect(status === 'not_evaluated').toBe(answered.length === 0)
      if (status === 'not_evaluated') expect([liteEvalScore, passed, updatedAt]).toEqual([0, 0, null])
      else
        expect([tasks.filter((task) => task.status === 'passed').length, tasks.length]).toEqual([
          passed,
          total,
        ])
    })
  })

  test('every part of the score follows from the fields beside it', () => {
    holds((model) => {
      const { healthStatus, healthScore, latencyMs, latencyScore, evalSummary, reason } = model
      expect(healthScore).toBe(healthScoreOf(healthStatus as Parameters<typeof healthScoreOf>[0]))
      expect(latencyScore).toBe(latencyScoreOf(latencyMs))
      expect(model.score).toBe(
        model.metadataScore + healthScore + latencyScore + model.liteEvalScore - model.instabilityPenalty,
      )
      expect(reason.endsWith(`lite eval ${evalSummary.passed}/${evalSummary.total}`)).toBe(true)
    })
  })

  test('tool use is that of the published tool task', () => {
    fc.assert(
      fc.property(payloads, ({ top, drawn }) => {
        for (const { id, toolUse, evalSummary } of top.models) {
          const counted = drawn.candidates.find(({ model }) => model.id === id)?.evaluation ?? null
          if (countedEvaluation(counted, RUN_AT) === null) continue
          expect(toolUse).toBe(toolUseOf({ updatedAt: RUN_AT, tasks: evalSummary.tasks }))
        }
      }),
    )
  })

  test('coverage counts the published summaries', () => {
    fc.assert(
      fc.property(payloads, ({ top: { evalCoverage, models } }) => {
        const withStatus = (wanted: RankedModel['evalSummary']['status']): RankedModel[] =>
          models.filter(({ evalSummary }) => evalSummary.status === wanted)
        expect(evalCoverage.evaluated).toBe(models.length - withStatus('not_evaluated').length)
        expect(evalCoverage.completedToday).toBe(withStatus('completed').length)
        expect(evalCoverage.totalRanked).toBe(models.length)
        const threat = evalCoverage.topUnevaluatedThreat
        expect(threat !== null).toBe(evalCoverage.unevaluatedCanStillWin)
        if (threat !== null) expect(withStatus('not_evaluated').map(({ id }) => id)).toContain(threat)
      }),
    )
  })
})

test('no published text but the id of a ranked model has a slash and the free suffix', () => {
  fc.assert(
    fc.property(payloads, ({ top, recommendation }) => {
      const ids = new Set(top.models.map(({ id }) => id))
      for (const payload of [top, recommendation]) {
        const taken = textsOf(payload).filter((each) => each.includes('/') && each.includes(':free'))
        expect(taken.filter((each) => !ids.has(each))).toEqual([])
      }
      expect(top.rankingConfidenceReason).not.toMatch(/\//)
    }),
  )
})
