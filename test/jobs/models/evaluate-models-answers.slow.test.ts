import { describe, expect, test } from 'vitest'
import { withoutModelIds } from '../../../src/domain/models/schema.ts'
import { DAY_MS } from '../../../src/domain/time.ts'
import { DAY, MODELS, okResponse, openBench, PROVIDER_DOWN, SHARED_POOL, SOLVER } from './evaluation-bench.ts'
import { errorOf } from './router-simulator.ts'

const OTHER = MODELS[1]?.id ?? ''

const said = (content: string | null, finish_reason = 'stop'): { status: number; body: unknown } =>
  okResponse({ choices: [{ finish_reason, message: { role: 'assistant', content } }] })

describe('a response', () => {
  test('a prompt has the token limit of a model where that is smaller, and a response that it cuts disproves nothing', async () => {
    const [first, ...others] = MODELS
    const small = { ...first, maxCompletionTokens: 1_024 } as (typeof MODELS)[number]
    const bench = await openBench({
      models: [small, ...others],
      fault: ({ model, kind }) => (model === SOLVER && kind === 'tool' ? said(null, 'length') : null),
    })
    await bench.run()
    const limits = (id: string): unknown[] =>
      bench.service.chats.filter(({ model }) => model === id).map(({ body }) => body['max_tokens'])
    expect([limits(SOLVER), limits(OTHER)]).toEqual([
      [1_024, 1_024],
      [3_000, 4_000],
    ])
    expect(await bench.model(SOLVER)).toMatchObject({
      toolUse: 'unknown',
      healthStatus: 'imperfect',
      instabilityPenalty: 0,
      evalSummary: { status: 'completed' },
    })
  })
})

describe('a later run of the day', () => {
  test('a later run of the day is partial when killed runs used the requests of its models, and names them', async () => {
    const hanging = await openBench()
    const asked = new Set<string>()
    for (let killed = 0; killed < 2; killed += 1) {
      const stopping = new AbortController()
      const bench = await hanging.withService({
        fault: ({ model }) => {
          asked.add(model)
          if (bench.service.chats.length < 4) return 'cut'
          stopping.abort(new Error('stopped'))
          return 'hang'
        },
      })
      await expect(bench.run({ signal: stopping.signal })).rejects.toThrow('stopped')
      hanging.time.now += 120_000
    }
    const bench = await hanging.withService({})
    const { report } = await bench.run()
    const spent = [...asked].filter((id) => bench.service.chats.every(({ model }) => model !== id))
    expect(spent.length).toBeGreaterThan(0)
    const reason = `${spent.length} models not fully evaluated: too few of their daily requests are left`
    expect(report).toMatchObject({ outcome: 'partial', reason })
    const notes = (await bench.stored())?.notes.join('\n')
    for (const id of spent) expect(notes).toContain(withoutModelIds(id))
    expect(bench.service.breaches).toEqual([])
  })

  test("a run sends nothing once the day's requests are used, while the service does not report the rest", async () => {
    const untold = { factFault: (path: string) => (path === '/key' ? SHARED_POOL : null) }
    const bench = await openBench({ ...untold, perDay: 50, usedByOthers: 50 })
    const first = await bench.run()
    const rateLimit = { kind: 'account', resetAt: '2026-03-02T00:00:00.000Z' }
    expect(first.report).toMatchObject({ outcome: 'partial', requests: 1, rateLimit })
    const stopped = 'Stopped after 1 request: the daily requests of the account are used up.'
    expect((await bench.stored())?.notes).toContain(stopped)
    const sent = bench.service.chats.length
    expect(sent).toBeGreaterThan(0)
    bench.time.now += 3_600_000
    expect((await bench.run()).report).toMatchObject({ outcome: 'partial', requests: 0 })
    expect(bench.service.chats).toHaveLength(sent)

    bench.time.now += DAY_MS
    const next = await bench.withService({ ...untold })
    expect((await next.run()).report).toMatchObject({ outcome: 'complete', evaluated: 6 })
  })
})

describe('a model without a provider', () => {
  test('a model without a provider leads no ranking, even of models that all fail', async () => {
    const bench = await openBench({
      fault: ({ model }) => (model === SOLVER ? errorOf(404, 'No endpoints found for it.') : PROVIDER_DOWN),
    })
    const { report } = await bench.run()
    expect(report.primary).not.toBe(SOLVER)
    expect(report.rejected).toEqual([{ model: SOLVER, reason: 'gone' }])
  })

  test.each<[string, Parameters<typeof openBench>[0], string | null, string]>([
    [
      'no model has a provider',
      { fault: () => errorOf(404, 'No endpoints found for it.') },
      'service',
      'no candidate has an endpoint at the service',
    ],
    ['the catalogue is empty', { models: [] }, null, 'no free text model'],
  ])('the stored recommendation stays when %s', async (_what, service, blame, reason) => {
    const bench = await openBench()
    await bench.run()
    const before = await bench.stored()
    bench.time.now += DAY_MS
    const failing = await bench.withService({ ...service })
    expect(await failing.run()).toMatchObject({
      blame,
      report: { outcome: 'failed', primary: SOLVER, reason: expect.stringContaining(reason) as string },
    })
    expect(await failing.stored()).toEqual(before)
  })
})

describe('a partial run', () => {
  test('a forced run evaluates every candidate again, as often as it runs, until the account has no requests left', async () => {
    const bench = await openBench()
    await bench.run()
    const requests: number[] = []
    for (let repeat = 0; repeat < 4; repeat += 1) {
      bench.time.now += 120_000
      const forced = await bench.withService({ usedByOthers: 12 * (repeat + 1) })
      const { report } = await forced.run({ mode: 'forceEval' })
      requests.push(report.requests)
      const outcome = report.requests === 12 ? 'complete' : 'partial'
      expect(report).toMatchObject({ outcome, evaluated: report.requests / 2 })
      expect(forced.service.breaches).toEqual([])
      expect((await forced.stored())?.rankingVersion).toBe(`${DAY}.v${repeat + 2}`)
    }
    expect(requests).toEqual([12, 12, 4, 0])
    const run = await bench.stored()
    expect(run?.models.map(({ evalSummary }) => evalSummary.status)).toEqual(MODELS.map(() => 'completed'))
    expect(run?.notes.join(' ')).toContain('no requests left')
  })

  test('a forced run that a model fails uses no earlier score of that day', async () => {
    const bench = await openBench()
    await bench.run()
    bench.time.now += 120_000
    const failing = await bench.withService({
      fault: ({ model }) => (model === SOLVER ? PROVIDER_DOWN : null),
    })
    const report = { outcome: 'complete', evaluated: 5 }
    expect(await failing.run({ mode: 'forceEval' })).toMatchObject({ report })
    const fallen = { liteEvalScore: 0, evalSummary: { status: 'not_evaluated' } }
    expect(await failing.model(SOLVER)).toMatchObject(fallen)
  })

  test('a run stores a new recommendation when only a price glitch was added, and keeps the reason of the rejection', async () => {
    const bench = await openBench()
    await bench.run()
    const glitch = { ...MODELS[0], id: 'alder/paid' } as (typeof MODELS)[number]
    const glitched = await bench.withService({ models: [...MODELS, glitch] })
    expect((await glitched.run()).report).toMatchObject({
      outcome: 'complete',
      rankingVersion: `${DAY}.v2`,
      rejected: [{ model: 'alder/paid', reason: 'zero_price_without_suffix' }],
    })
    expect((await glitched.stored())?.notes.join(' ')).toContain('alder/paid')
    expect((await glitched.run()).report).toMatchObject({ outcome: 'unchanged' })
  })
})
