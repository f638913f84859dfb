import { describe, expect, test } from 'vitest'
import { withoutModelIds } from '../../../src/domain/models/schema.ts'
import { addDays, startOfDay } from '../../../src/domain/time.ts'
import { DAY, errorOf, openBench, PROVIDER_DOWN, SOLVER, START } from '../../support/evaluation.ts'
import { scriptedModels } from '../../support/router-simulator.ts'

/** The account's minute limit, which begins anew at a time. */
const minuteLimit = (resetAt: number) =>
  errorOf(429, 'Rate limit exceeded: free-models-per-min. ', {
    limit_source: 'openrouter_free_tier_minute',
    headers: { 'X-RateLimit-Limit': '20', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': `${resetAt}` },
  })

describe("the account's minute limit", () => {
  test.each([
    { met: 1, outcome: 'complete', status: 'completed', requests: 3 },
    { met: 2, outcome: 'partial', status: 'not_evaluated', requests: 3 },
  ])(
    'the minute limit met $met times by one model leaves the run $outcome, with no more than three requests for it',
    async ({ met, outcome, status, requests }) => {
      let refused = 0
      const bench = await openBench({
        fault: ({ model, kind, at }) => {
          if (model !== SOLVER || kind !== 'tool' || refused === met) return null
          refused += 1
          return minuteLimit(at + 20_000)
        },
      })
      const { report } = await bench.run()
      expect(refused).toBe(met)
      expect(report).toMatchObject({ outcome })
      expect(bench.service.chats.filter(({ model }) => model === SOLVER)).toHaveLength(requests)
      const run = await bench.stored()
      const solver = run?.models.find(({ id }) => id === SOLVER)
      expect(solver).toMatchObject({ instabilityPenalty: 0, evalSummary: { status } })
      expect(
        run?.notes.some((note) => note.includes('evaluated') && note.includes(withoutModelIds(SOLVER))),
      ).toBe(met > 1)
    },
  )
})

describe("the account's daily limit", () => {
  test("the daily limit counts the chat's requests with the same key, before and during a run", async () => {
    const bench = await openBench()
    const { allowance } = bench
    for (let sent = 0; sent < 34; sent += 1) await allowance.countChatRequest('a/b:free', START - 100_000, 50)
    const told = await bench.withService({
      factFault: (path) => (path === '/key' ? PROVIDER_DOWN : null),
    })
    const { report } = await told.run()
    expect(report).toMatchObject({ outcome: 'partial', requests: 6, evaluated: 3 })

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
    const raced = await racing.run()
    expect(raced.report).toMatchObject({
      outcome: 'partial',
      reason: 'the daily requests of the account are used up',
    })
    expect(filled + raced.report.requests).toBe(40)
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
