import type { H3 } from 'h3'
import { describe, expect, test } from 'vitest'
import type { Recommendation, TopModels } from '../../../src/domain/models/schema.ts'
import { seedRun } from '../../../src/domain/models/recommend.ts'
import { sealRun } from '../../../src/domain/models/stored-run.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { FREE_MODELS_CONTRACTS } from '../../../src/server/models/routes.ts'
import { openApp, silentLog } from '../../support/api-client.ts'
import { requestRoute } from '../contract-client.ts'
import type { ContractResponse } from '../contract-client.ts'
import { RUN_AT, sampleCandidates, sampleRun } from '../../domain/models/free-models.ts'
import { openWorkspace } from '../../support/workspace.ts'

const [RECOMMENDATION, TOP_MODELS, HEALTH, STATUS] = FREE_MODELS_CONTRACTS.map(({ path }) => path) as [
  string,
  string,
  string,
  string,
]
const PATHS = [RECOMMENDATION, TOP_MODELS, HEALTH, STATUS]
const HOUR_MS = 3_600_000

const isSeed = ({ headers }: ContractResponse): boolean => headers.get('x-free-llm-seed') === 'true'

const json = async <T>(app: Pick<H3, 'request'>, target: string): Promise<T> =>
  JSON.parse((await requestRoute(app, target)).text) as T

/** A store without kept runs. */
const NO_RUNS = { run: async () => null, versions: async () => [] }

/** The application over a real folder that holds the sample run. */
async function openStored(now: () => number = () => RUN_AT + HOUR_MS, run = sampleRun()): Promise<H3> {
  const workspace = await openWorkspace()
  await workspace.recommendations.put(run.rankingVersion, sealRun(run))
  return openApp(workspace, { clock: now })
}

describe('a stored recommendation', () => {
  test('a stored recommendation is served consistently by all four endpoints', async () => {
    const app = await openStored()
    const recommendation = await json<Recommendation>(app, RECOMMENDATION)
    const top = await json<TopModels>(app, TOP_MODELS)
    expect([recommendation.primary, ...recommendation.alternatives]).toEqual(top.models)
    expect([top.count, top.seed, top.stale, top.ageHours]).toEqual([4, false, false, 1])
    expect(await json(app, HEALTH)).toMatchObject({ ok: true, ageHours: 1, usingSeedFallback: false })
    const { rankingVersion, rankingConfidence } = top
    const primary = 'maker/good:free'
    expect(await json(app, STATUS)).toMatchObject({ ok: true, primary, rankingVersion, rankingConfidence })
    for (const path of PATHS) expect(isSeed(await requestRoute(app, path))).toBe(false)
  })

  test('a stored recommendation and the seed have the configured URL in place of the stored one', async () => {
    const publishedBaseUrl = 'https://models.example/v1'
    const workspace = await openWorkspace()
    const run = sampleRun({ baseUrl: 'http://10.0.0.7:8080/v1' })
    await workspace.recommendations.put(run.rankingVersion, sealRun(run))
    for (const stores of [workspace, await openWorkspace()])
      for (const path of [RECOMMENDATION, TOP_MODELS])
        expect(await json(openApp(stores, { clock: () => RUN_AT, publishedBaseUrl }), path)).toMatchObject({
          baseUrl: publishedBaseUrl,
        })
  })

  test('a stored recommendation is served as CSV with the same filters', async () => {
    const app = await openStored()
    const { headers, text } = await requestRoute(app, `${TOP_MODELS}.csv?needs=stop&limit=1`)
    expect(headers.get('content-disposition')).toBe('attachment; filename="dash-free-models-2026-08-22.csv"')
    const [names = '', first = '', ...rest] = text.split('\r\n')
    expect(names).toMatch(/^rank,id,name,score,.*,evalSummary\.passed,evalSummary\.total,/)
    expect(names).not.toContain('tasks')
    expect([first.split(',').slice(0, 2), rest]).toEqual([['1', 'maker/good:free'], ['']])
    expect((await requestRoute(app, `${TOP_MODELS}.csv?limit=0`)).error).toBe('invalid_limit')
  })

  test('a stored recommendation is 304 for a client that holds it, until the hour is over', async () => {
    let now = RUN_AT + 10
    const app = await openStored(() => now)
    const { headers } = await requestRoute(app, HEALTH)
    const init = { headers: { 'if-none-match': headers.get('etag') ?? '' } }
    expect((await requestRoute(app, HEALTH, init)).status).toBe(304)
    now = RUN_AT + 2 * HOUR_MS
    expect((await requestRoute(app, HEALTH, init)).status).toBe(200)
  })

  test('a stored recommendation is replaced without a restart', async () => {
    const workspace = await openWorkspace()
    const app = openApp(workspace, { clock: () => RUN_AT })
    expect(isSeed(await requestRoute(app, RECOMMENDATION))).toBe(true)
    for (const rankingVersion of ['2026-08-22.v1', '2026-08-22.v2']) {
      await workspace.recommendations.put(rankingVersion, sealRun(sampleRun({ rankingVersion })))
      expect(await json(app, RECOMMENDATION)).toMatchObject({ rankingVersion, seed: false })
    }
  })
})

describe('the end of the primary model', () => {
  const END = Date.UTC(2026, 8, 1)
  const ending = sampleRun({
    candidates: sampleCandidates().map((each) => ({
      ...each,
      model: { ...each.model, expirationDay: each.model.id === 'maker/good:free' ? '2026-09-01' : null },
    })),
  })
  const announced = async (now: number, run = ending): Promise<unknown[]> => {
    const app = await openStored(() => now, run)
    const response = await requestRoute(app, RECOMMENDATION)
    const { headers } = response
    const held = { headers: { 'if-none-match': headers.get('etag') ?? '' } }
    const again = await requestRoute(app, RECOMMENDATION, held)
    expect([again.status, again.headers.get('sunset')]).toEqual([304, headers.get('sunset')])
    expect(response.text).not.toContain('2026-09-01')
    return [headers.get('deprecation'), headers.get('sunset')]
  }

  test('the end is announced in headers within 14 days, and the payload is unchanged', async () => {
    const dates = [`@${END / 1000 - 14 * 86_400}`, 'Tue, 01 Sep 2026 00:00:00 GMT']
    expect(await announced(END - 14 * 24 * HOUR_MS - 1)).toEqual([null, null])
    expect(await announced(END - 14 * 24 * HOUR_MS)).toEqual(dates)
    expect(await announced(END + HOUR_MS)).toEqual(dates)
    expect(await announced(END, sampleRun())).toEqual([null, null])
  })
})

describe('the seed is served with its header', () => {
  const sealed = sealRun(sampleRun())
  const flipped = Uint8Array.from(sealed)
  flipped[500] = (flipped[500] ?? 0) ^ 1

  test.each([
    ['nothing is stored', null],
    ['a bit of them has changed', flipped],
  ])('the seed is served with its header when %s, and the store still responds', async (_what, bytes) => {
    const app = openApp(await openWorkspace(), {
      recommendations: { ...NO_RUNS, current: async () => bytes },
      clock: () => RUN_AT,
    })
    for (const path of PATHS) expect(isSeed(await requestRoute(app, path))).toBe(true)
    expect(await json(app, RECOMMENDATION)).toMatchObject({
      source: 'seed',
      seed: true,
      rankingConfidence: 'low',
    })
    expect((await json<TopModels>(app, TOP_MODELS)).count).toBeGreaterThanOrEqual(3)
    expect(await json(app, HEALTH)).toMatchObject({
      ok: false,
      usingSeedFallback: true,
      lastUpdatedAt: null,
      ageHours: null,
      hasKvBinding: true,
    })
  })

  test.each([
    ['cannot be reached', new Refusal('storage_unavailable', 'nothing listens'), false],
    ['holds a folder in its place', new Refusal('storage_damaged', 'no file'), true],
    ['fails in any other way', new Error('EIO'), false],
  ])(
    'the seed is served with its header when the store %s, and the error is logged',
    async (_what, thrown, answers) => {
      const logged: unknown[] = []
      const log = {
        ...silentLog,
        error: (fields: Record<string, unknown>) => void logged.push(fields['err']),
      }
      const recommendations = { ...NO_RUNS, current: () => Promise.reject(thrown) }
      const app = openApp(await openWorkspace(), { recommendations, log })
      for (const path of PATHS) expect(isSeed(await requestRoute(app, path))).toBe(true)
      expect(await json(app, STATUS)).toMatchObject({ hasKvBinding: answers, usingSeedFallback: true })
      expect(logged[0]).toBe(thrown)
    },
  )
})

test('the badge has the members of an endpoint badge, and is an error only for the seed', async () => {
  const path = '/badge/free-model.json'
  const badge = { schemaVersion: 1, label: 'free model', message: 'maker/good:free', isError: false }
  expect(await json(await openStored(), path)).toEqual({ ...badge, color: '#17642f' })
  const stale = { ...badge, message: 'maker/good:free (stale)', color: '#804500' }
  expect(await json(await openStored(() => RUN_AT + 40 * HOUR_MS), path)).toEqual(stale)
  const seeded = openApp(await openWorkspace(), { demo: true })
  expect(await json(seeded, path)).toMatchObject({
    label: 'DEMO: free model',
    message: `${seedRun().models[0]?.id} (seed)`,
    isError: true,
  })
  expect(isSeed(await requestRoute(seeded, path))).toBe(true)
})
