import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CLOCK_TOLERANCE_MS } from '../../../src/domain/clock-check.ts'
import { countedEvaluation, toolUseOf } from '../../../src/domain/models/evaluation.ts'
import type { LiteEvaluation } from '../../../src/domain/models/evaluation.ts'
import { taskResult, unansweredTasks } from '../../../src/domain/models/lite/suite.ts'
import { healthScoreOf, latencyScoreOf } from '../../../src/domain/models/score.ts'
import type { RankedModel } from '../../../src/domain/models/schema.ts'
import { seedRun } from '../../../src/domain/models/recommend.ts'
import {
  healthPayload,
  isStale,
  NO_FILTER,
  parseShortlist,
  parseShortlistQuery,
  pickModel,
  recommendationPayload,
  statusPayload,
  topModelsPayload,
} from '../../../src/domain/models/shortlist.ts'
import type { ServedRun } from '../../../src/domain/models/shortlist.ts'
import { proveRun, sealRun } from '../../../src/domain/models/stored-run.ts'
import { DAY_MS } from '../../../src/domain/time.ts'
import { candidate, catalogueModel, RUN_AT, sampleRun } from '../../support/free-models.ts'

const HOUR_MS = 3_600_000
const ALL_OF_IT = { limit: null, filter: NO_FILTER }
const stored = (run = sampleRun()): ServedRun => ({ run, seed: false, storeAvailable: true })
const seed = (storeAvailable = true): ServedRun => ({ run: seedRun(), seed: true, storeAvailable })

const ENVELOPE =
  'updatedAt source rankingVersion probeMode refreshMode liteEvalMode liteEvalSuite rankingConfidence rankingConfidenceReason evalCoverage baseUrl createKeyUrl fallback'
const OWN = 'notes seed stale ageHours nextUpdateAt'
const MODEL =
  'rank id name score metadataScore healthScore latencyScore liteEvalScore contextLength maxCompletionTokens supportsTools supportsToolChoice supportsStructuredOutputs supportsResponseFormat supportsReasoning supportsIncludeReasoning supportsSeed supportsStop latencyMs healthStatus evalSuite evalSummary reason instabilityPenalty previousRank toolUse rateLimitKind checkedAt'
const COVERAGE =
  'evaluated completedToday attemptedToday totalRanked candidatePool unevaluatedCanStillWin unevaluatedThreatCount topUnevaluatedThreat maxUnevaluatedPossibleScore'
const SUMMARY = 'suite status passed total updatedAt tasks'

describe('the payloads', () => {
  test('the payloads have their fields in the order of the contract, stored and seed alike', () => {
    for (const served of [stored(), stored(proveRun(sealRun(sampleRun()))), seed()]) {
      const top = topModelsPayload(served, ALL_OF_IT, RUN_AT)
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

  test.each([
    [HOUR_MS - 1, { ageHours: 0, stale: false }, { ok: true, ageHours: 0.99 }],
    [36 * HOUR_MS, { ageHours: 36, stale: false }, { ok: true, ageHours: 36 }],
    [36 * HOUR_MS + 1, { ageHours: 36, stale: true }, { ok: false, ageHours: 36 }],
  ])('the payloads report their age %i ms after the update', (ageMs, inBody, inHealth) => {
    const now = RUN_AT + ageMs
    const body = topModelsPayload(stored(), ALL_OF_IT, now)
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
})

test('a recommendation of the future is stale, except by a clock slightly ahead', () => {
  const served = stored()
  const before = RUN_AT - CLOCK_TOLERANCE_MS
  const [near, far] = [before, before - 1].map((now) => topModelsPayload(served, ALL_OF_IT, now))
  expect([near?.stale, far?.stale]).toEqual([false, true])
  expect(far).toMatchObject({ ageHours: 0 })
  expect(far?.notes.at(-1)).toContain('in the future')
  expect([healthPayload(served, before).ok, healthPayload(served, before - 1).ok]).toEqual([true, false])
})

describe('the seed', () => {
  test('the seed holds several models by published facts alone, and reports that nothing was measured', () => {
    const { models, notes, ...rest } = topModelsPayload(seed(), ALL_OF_IT, RUN_AT)
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
})

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

const evaluations: fc.Arbitrary<LiteEvaluation | null> = fc.option(
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

const named = (id: string, drawn: object) =>
  candidate(id, { model: catalogueModel(id, { name: 'A model' }), ...drawn })

const candidates = fc
  .array(fc.record({ evaluation: evaluations, health, failuresIn72h: fc.nat(8) }), {
    minLength: 1,
    maxLength: IDS.length,
  })
  .map((drawn) => drawn.map((each, index) => named(IDS[index] ?? '', each)))

/** What readers get after any run, as JSON. */
const payloads = fc
  .record({ candidates, before: candidates, note: text, glitch: fc.boolean() })
  .map((drawn) => {
    const run = sampleRun({
      candidates: drawn.candidates,
      previous: sampleRun({ candidates: drawn.before, rankingVersion: '2026-08-21.v1' }),
      rejections: drawn.glitch ? [{ id: 'maker/glitch', reason: 'zero_price_without_suffix' }] : [],
      notes: [drawn.note, `Not fully evaluated, because the account hit its rate limit: ${IDS.join(', ')}.`],
    })
    const proved = stored(proveRun(sealRun(run)))
    const top = topModelsPayload(proved, ALL_OF_IT, RUN_AT)
    return { drawn, top, recommendation: recommendationPayload(proved, RUN_AT) }
  })

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : []
}

test('every payload is consistent', () => {
  fc.assert(
    fc.property(payloads, ({ top, drawn }) => {
      for (const model of top.models) {
        expectLiteScore(model)
        expectScore(model)
        const counted = drawn.candidates.find((each) => each.model.id === model.id)?.evaluation ?? null
        if (countedEvaluation(counted, RUN_AT) === null) continue
        expect(model.toolUse).toBe(toolUseOf({ updatedAt: RUN_AT, tasks: model.evalSummary.tasks }))
      }
    }),
  )
})

/** What the tasks of the summary add up to, times the multiplier; nothing without an answer. */
function expectLiteScore({ liteEvalScore, evalSummary }: RankedModel): void {
  const { status, tasks, updatedAt, passed, total, cacheMultiplier = 1 } = evalSummary
  const tenths = tasks.reduce((sum, task) => sum + task.points, 0) * Math.round(cacheMultiplier * 10)
  expect(liteEvalScore).toBe(Math.floor((tenths + 5) / 10))
  const answered = tasks.filter((task) => task.status !== 'http_timeout_or_error')
  expect(status === 'not_evaluated').toBe(answered.length === 0)
  if (status === 'not_evaluated') expect([liteEvalScore, passed, updatedAt]).toEqual([0, 0, null])
  else
    expect([passed, total]).toEqual([tasks.filter((task) => task.status === 'passed').length, tasks.length])
}

/** Every part of the score follows from the fields beside it. */
function expectScore(model: RankedModel): void {
  const { healthStatus, healthScore, latencyMs, latencyScore, evalSummary, reason } = model
  expect(healthScore).toBe(healthScoreOf(healthStatus as Parameters<typeof healthScoreOf>[0]))
  expect(latencyScore).toBe(latencyScoreOf(latencyMs))
  expect(model.score).toBe(
    model.metadataScore + healthScore + latencyScore + model.liteEvalScore - model.instabilityPenalty,
  )
  expect(reason.endsWith(`lite eval ${evalSummary.passed}/${evalSummary.total}`)).toBe(true)
}

test('no published text except the id of a ranked model has a slash and the free suffix', () => {
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

const ask = (query: string) =>
  topModelsPayload(stored(), parseShortlistQuery(new URLSearchParams(query)), RUN_AT)
const ids = (query: string): string[] => ask(query).models.map(({ id }) => id)

const ALL = ['maker/good:free', 'maker/talker:free', 'other/cached:free', 'third/new:free']

describe('a shortlist query', () => {
  test.each([
    ['limit=1', ALL.slice(0, 1)],
    [`limit=${'9'.repeat(60)}`, ALL],
    ['needs=stop', ['maker/good:free', 'third/new:free']],
    ['needs=structured,responseFormat', ['maker/good:free']],
    ['needs=tools', ['maker/good:free', 'other/cached:free']],
    ['needs=toolChoice', ['maker/good:free', 'maker/talker:free', 'other/cached:free']],
    ['needs=seed&limit=2', ALL.slice(0, 2)],
    ['minContext=131072', ALL.slice(0, 3)],
    ['minContext=131073', ALL.slice(0, 1)],
    ['minContext=999999999999999999999', []],
    ['health=passed', ALL.slice(0, 2)],
    ['health=passed&needs=tools&minContext=1&limit=9', ['maker/good:free']],
  ])('the query %j gives %j', (query, expected) => {
    expect(ids(query)).toEqual(expected)
    expect(ask(query).count).toBe(expected.length)
  })

  test('a query filters before it limits, and keeps the ranks of the whole list', () => {
    const { models } = ask('needs=stop&limit=2')
    expect(models.map(({ rank, id }) => [rank, id])).toEqual([
      [1, 'maker/good:free'],
      [4, 'third/new:free'],
    ])
  })

  test.each(['-1', '1.5'])('a query with limit=%s is refused', (value) => {
    expect(() =>
      parseShortlistQuery(new URLSearchParams(`limit=${encodeURI(value).replace('+', '%2B')}`)),
    ).toThrow(expect.objectContaining({ code: 'invalid_limit' }))
  })

  // prettier-ignore
  test.each([
    'needs=',  'needs=tools,', 'needs=tools,%20seed', 
      'minContext=', 'minContext=0',
      'health=imperfect', 'health=',
  ])('a query with %s is refused', (query) => {
    expect(() => parseShortlistQuery(new URLSearchParams(query))).toThrow(
      expect.objectContaining({ code: 'invalid_filter' }),
    )
  })

  test('an invalid limit is refused first', () => {
    expect(() => parseShortlistQuery(new URLSearchParams('needs=x&limit=x'))).toThrow(
      expect.objectContaining({ code: 'invalid_limit' }),
    )
  })
})

describe('a received shortlist', () => {
  const body = (): unknown => JSON.parse(JSON.stringify(ask('')))

  test('a shortlist gives its best model, and the same recommendation as the other endpoint', () => {
    const shortlist = parseShortlist(body())
    const pick = shortlist && pickModel(shortlist, NO_FILTER)
    expect(pick?.primary.id).toBe('maker/good:free')
    expect(JSON.stringify(pick?.recommendation)).toBe(JSON.stringify(recommendationPayload(stored(), RUN_AT)))
  })

  test('a shortlist may come from a host without the newer fields', () => {
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
    ['no models', { ...(body() as object), models: undefined }],
    ['an id for a shell', { ...(body() as object), models: [{ ...ask('').models[0], id: '$(reboot)/x' }] }],
  ])('%s is not a shortlist', (_what, value) => {
    expect(parseShortlist(value)).toBeNull()
  })
})
