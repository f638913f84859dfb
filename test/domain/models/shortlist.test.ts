import { describe, expect, test } from 'vitest'
import { CLOCK_TOLERANCE_MS } from '../../../src/domain/clock-check.ts'
import { unansweredTasks } from '../../../src/domain/models/lite/suite.ts'
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
import { candidate, catalogueModel, RUN_AT, sampleRun, task } from './free-models.ts'

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
    const store = { usingSeedFallback: false, hasKvBinding: true }
    const fresh = { lastUpdatedAt: '2026-08-22T03:17:01.124Z', maxFreshHours: 36 }
    expect(healthPayload(stored(), now)).toEqual({ ...inHealth, ...fresh, ...store })
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
    const body = topModelsPayload(seed(), ALL_OF_IT, RUN_AT)
    expect(body).toMatchObject({ source: 'seed', rankingConfidence: 'low', seed: true, nextUpdateAt: null })
    expect(body.notes[0]).toContain('built-in seed')
    expect(body.models.length).toBeGreaterThanOrEqual(3)
    for (const model of body.models) {
      expect(model).toMatchObject({ healthStatus: 'not_probed', checkedAt: null, supportsTools: true })
      expect(model.evalSummary.status).toBe('not_evaluated')
      expect(model.score).toBe(model.metadataScore + 100 + 25)
    }
    expect(proveRun(sealRun(seedRun()))).toEqual(seedRun())
  })
})

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : []
}

test.each(['evil/other:free', 'No endpoints found for gone/model:free.', 'x/y:f:freeree'])(
  'no published text except the id of a ranked model has a slash and the free suffix: %s',
  (hostile) => {
    const details = { responsePreview: hostile, seen: [hostile], command: hostile }
    const models = ['a/one:free', 'a/two:free'].map((id) => {
      const tasks = [task('task_files_lite', 0, details), ...unansweredTasks('text', '2026-08-22', details)]
      const model = catalogueModel(id, { name: 'A model' })
      return candidate(id, { model, evaluation: { updatedAt: RUN_AT, tasks } })
    })
    const run = sampleRun({
      candidates: models,
      previous: sampleRun({ candidates: models.slice(1), rankingVersion: '2026-08-21.v1' }),
      rejections: [{ id: 'maker/glitch', reason: 'zero_price_without_suffix' }],
      notes: [hostile, 'Not fully evaluated, because the account hit its rate limit: a/one:free.'],
    })
    const proved = stored(proveRun(sealRun(run)))
    const payload = [topModelsPayload(proved, ALL_OF_IT, RUN_AT), recommendationPayload(proved, RUN_AT)]
    const taken = textsOf(payload).filter((each) => each.includes('/') && each.includes(':free'))
    expect(new Set(taken)).toEqual(new Set(['a/one:free', 'a/two:free']))
  },
)

const ask = (query: string) =>
  topModelsPayload(stored(), parseShortlistQuery(new URLSearchParams(query)), RUN_AT)

const ALL = ['maker/good:free', 'maker/talker:free', 'other/cached:free', 'third/new:free']

describe('a shortlist query', () => {
  test.each([
    ['limit=1', ALL.slice(0, 1)],
    [`limit=${'9'.repeat(60)}`, ALL],
    ['needs=stop', ['maker/good:free', 'third/new:free']],
    ['needs=stop&limit=2', ['maker/good:free', 'third/new:free']],
    ['needs=structured,responseFormat', ['maker/good:free']],
    ['needs=tools', ['maker/good:free', 'other/cached:free']],
    ['minContext=131072', ALL.slice(0, 3)],
    ['minContext=131073', ALL.slice(0, 1)],
    ['health=passed', ALL.slice(0, 2)],
    ['health=passed&needs=tools&minContext=1&limit=9', ['maker/good:free']],
  ])('the query %j gives %j', (query, expected) => {
    const { count, models } = ask(query)
    expect(models.map(({ rank, id }) => [rank, id])).toEqual(expected.map((id) => [ALL.indexOf(id) + 1, id]))
    expect(count).toBe(expected.length)
  })

  test.each([
    ['limit=-1', 'invalid_limit'],
    ['limit=1.5', 'invalid_limit'],
    ['needs=x&limit=x', 'invalid_limit'],
    ['needs=', 'invalid_filter'],
    ['needs=tools,%20seed', 'invalid_filter'],
    ['minContext=0', 'invalid_filter'],
    ['health=imperfect', 'invalid_filter'],
  ])('the query %s is refused as %s', (query, code) => {
    const parse = () => parseShortlistQuery(new URLSearchParams(query))
    expect(parse).toThrow(expect.objectContaining({ code }))
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
