import { describe, expect, test } from 'vitest'
import { withoutModelIds } from '../../../src/domain/models/schema.ts'
import { addDays, DAY_MS, startOfDay } from '../../../src/domain/time.ts'
import { DAY, MODELS, openBench, PROVIDER_DOWN, SOLVER, START } from './evaluation-bench.ts'
import { errorOf, scriptedModels } from './router-simulator.ts'

/** The account's minute limit, which begins anew at a time. */
const minuteLimit = (resetAt: number) =>
  errorOf(429, 'Rate limit exceeded: free-models-per-min. ', {
    limit_source: 'openrouter_free_tier_minute',
    headers: { 'X-RateLimit-Limit': '20', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': `${resetAt}` },
  })

const spent = errorOf(429, 'Rate limit exceeded: free-models-per-day')

const BARE = { status: 429, body: '<html>slow down</html>' }

describe("the account's minute limit", () => {
  test('an ambiguous minute limit that never ends leaves the run partial, and names the models that were not prompted', async () => {
    const bench = await openBench({ fault: () => BARE })
    const { report } = await bench.run()
    expect(report).toMatchObject({
      outcome: 'partial',
      probed: 0,
      evaluated: 0,
      rateLimit: { kind: 'account' },
      reason: 'the limit of requests per minute of the account did not reset while the run waited',
    })
    expect(report.requests).toBeLessThanOrEqual(7)
    // Without a time in the response the limit lasts a minute.
    const seconds = bench.service.chats.map(({ at }) => (at - START) / 1000)
    expect(seconds).toEqual([0, 0, 61, 122, 183])
    const run = await bench.stored()
    expect(run).toMatchObject({ probeMode: 'metadata', rankingConfidence: 'low' })
    for (const { id } of MODELS) expect(run?.notes.join('\n')).toContain(withoutModelIds(id))
    for (const model of run?.models ?? []) {
      expect(model).toMatchObject({ healthStatus: 'not_probed', instabilityPenalty: 0 })
    }
  })

  test('a forced run may use older scores of models that the minute limit blocked', async () => {
    const bench = await openBench()
    await bench.run()
    bench.time.now += DAY_MS
    const limited = await bench.withService({
      fault: ({ model, at }) => (model === SOLVER ? minuteLimit(at + 3_600_000) : null),
    })
    const { report } = await limited.run({ mode: 'forceEval' })
    expect(report).toMatchObject({ outcome: 'partial', primary: SOLVER })
    const run = await limited.stored()
    expect(run?.models.find(({ id }) => id === SOLVER)?.evalSummary).toMatchObject({
      status: 'cached_recent',
      cacheMultiplier: 0.9,
    })
  })
})

describe("the account's daily limit", () => {
  test('a forced run does not count a model as evaluated whose prompt the daily limit blocks, for a response of an earlier run of the day', async () => {
    const models = MODELS.slice(0, 1)
    const bench = await openBench({ models })
    await bench.run()
    bench.time.now += 120_000
    const limited = await bench.withService({ fault: ({ kind }) => (kind === 'text' ? spent : null), models })
    const report = { outcome: 'partial', probed: 1, evaluated: 0 }
    expect(await limited.run({ mode: 'forceEval' })).toMatchObject({ report })
  })

  test("the daily limit counts the chat's requests with the same key, before and during a run", async () => {
    const bench = await openBench()
    for (let sent = 0; sent < 34; sent += 1)
      await bench.allowance.countChatRequest('a/b:free', START - 100_000, 50)
    const told = await bench.withService({
      factFault: (path) => (path === '/key' ? PROVIDER_DOWN : null),
    })
    expect(await told.run()).toMatchObject({ report: { outcome: 'partial', requests: 6, evaluated: 3 } })

    const racing = await openBench({
      fault: ({ number, model }) => {
        if (number === 1 && model === SOLVER) void fill()
        return null
      },
    })
    let filled = 0
    const fill = async (): Promise<void> => {
      while (await racing.allowance.countChatRequest('a/b:free', START, 50)) filled += 1
    }
    const { report } = await racing.run()
    const reason = 'the daily requests of the account are used up'
    expect(report).toMatchObject({ outcome: 'partial', reason })
    expect(filled + report.requests).toBe(40)
  })
})

describe('an evaluation across midnight', () => {
  test('an evaluation sends nothing after midnight, and ranks its measurements as scores of the day it began', async () => {
    const midnight = startOfDay(addDays(DAY, 1))
    const models = scriptedModels(15)
    const bench = await openBench({ models }, midnight - 20_000)
    const { report } = await bench.run()
    expect(report).toMatchObject({
      outcome: 'partial',
      rankingVersion: `${DAY}.v1`,
      requests: 19,
      reason: expect.stringContaining('day ended') as string,
    })
    expect(bench.service.breaches).toEqual([])
    expect(bench.time.now).toBeGreaterThanOrEqual(midnight)
    expect(bench.service.chats.length).toBeGreaterThan(0)
    expect(bench.service.chats.every(({ at }) => at < midnight)).toBe(true)
    const run = await bench.stored()
    const completed = run?.models.filter(({ evalSummary }) => evalSummary.status === 'completed') ?? []
    expect(completed).toHaveLength(report.evaluated)
    expect(completed.length).toBeGreaterThan(0)
    expect(run?.evalCoverage).toMatchObject({ completedToday: report.evaluated })
    expect(run?.updatedAt).toBe(`${DAY}T23:59:59.999Z`)

    const next = await bench.withService({ models })
    const { report: later } = await next.run()
    expect(later).toMatchObject({
      outcome: 'complete',
      rankingVersion: `${addDays(DAY, 1)}.v1`,
      evaluated: 15,
    })
  })
})

test('a recommendation is not older than the start of its run when the clock is set back meanwhile', async () => {
  const bench = await openBench({
    fault: (): null => {
      bench.time.now = START - 60_000
      return null
    },
  })
  expect(await bench.run()).toMatchObject({ report: { outcome: 'complete', evaluated: 6 } })
  expect(await bench.stored()).toMatchObject({ updatedAt: `${DAY}T03:00:00.000Z` })
})

test('an evaluation by a clock that was ahead, and requests of the chat by it, do not change later evaluations', async () => {
  const bench = await openBench()
  await bench.run()
  bench.time.now += 365 * DAY_MS
  await bench.run()
  for (let sent = 0; sent < 25; sent += 1)
    await bench.allowance.countChatRequest('a/b:free', bench.time.now, 1_000)
  bench.time.now = START + DAY_MS
  const next = await bench.withService({})
  const { report } = await next.run()
  expect(report).toMatchObject({ outcome: 'complete', requests: 12, evaluated: 6 })
  const run = await next.stored()
  expect(run).toMatchObject({ liteEvalMode: 'active', evalCoverage: { completedToday: 6 } })
  for (const { evalSummary } of run?.models ?? [])
    expect(evalSummary).toMatchObject({ updatedAt: expect.stringMatching('^2026-03-02') as string })
})
