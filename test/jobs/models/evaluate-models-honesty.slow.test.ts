import { describe, expect, test } from 'vitest'
import { DAY_MS } from '../../../src/domain/time.ts'
import {
  DAY,
  errorOf,
  okResponse,
  MODELS,
  openBench,
  PROVIDER_DOWN,
  SOLVER,
} from '../../support/evaluation.ts'

describe('a model without a provider', () => {
  test('a model without a provider leads no ranking, even of models that all fail', async () => {
    const bench = await openBench({
      fault: ({ model }) => (model === SOLVER ? errorOf(404, 'No endpoints found for it.') : PROVIDER_DOWN),
    })
    const { report } = await bench.run()
    expect(report.primary).not.toBe(SOLVER)
    expect(report.rejected).toEqual([{ model: SOLVER, reason: 'gone' }])
  })

  test('the stored recommendation stays when no model has a provider', async () => {
    const bench = await openBench()
    await bench.run()
    bench.time.now += DAY_MS
    const gone = await bench.withService({
      fault: () => errorOf(404, 'No endpoints found for it.'),
    })
    expect(await gone.run()).toMatchObject({
      blame: 'service',
      report: { outcome: 'failed', primary: SOLVER },
    })
    expect((await gone.stored())?.rankingVersion).toBe(`${DAY}.v1`)
  })
})

test('a catalogue without a candidate keeps the stored recommendation', async () => {
  const bench = await openBench()
  await bench.run()
  const before = await bench.stored()
  const empty = await bench.withService({ models: [] })
  const reason: unknown = expect.stringContaining('no free text model')
  expect(await empty.run()).toMatchObject({ report: { outcome: 'failed', primary: SOLVER, reason } })
  expect(await empty.stored()).toEqual(before)
})

describe('the confidence of a ranking', () => {
  test('a response that was cut without content disproves nothing', async () => {
    const cut = okResponse({
      choices: [{ index: 0, finish_reason: 'length', message: { role: 'assistant', content: null } }],
    })
    const bench = await openBench({
      fault: ({ model, kind }) => (model === SOLVER && kind === 'tool' ? cut : null),
    })
    await bench.run()
    const model = await bench.model(SOLVER)
    expect(model).toMatchObject({
      toolUse: 'unknown',
      healthStatus: 'imperfect',
      instabilityPenalty: 0,
      evalSummary: { status: 'completed' },
    })
    expect(bench.service.chats.filter((chat) => chat.model === SOLVER)).toHaveLength(2)
  })
})

describe('healthOnly', () => {
  test('healthOnly stores its results for later runs', async () => {
    const gone = MODELS[5]?.id ?? ''
    const bench = await openBench({
      factFault: (path) => (path === `/models/${gone}/endpoints` ? errorOf(404, 'Not found') : null),
    })
    const ranking = async (): Promise<[string, number, string][]> =>
      (await bench.stored())?.models.map(({ id, score, healthStatus }) => [id, score, healthStatus]) ?? []
    await bench.run({ mode: 'healthOnly' })
    const before = await ranking()
    expect(before).toContainEqual([SOLVER, expect.any(Number), 'imperfect'])
    expect(before).toContainEqual([gone, expect.any(Number), 'failed'])
    expect(await bench.run({ mode: 'metadataOnly' })).toMatchObject({ report: { outcome: 'unchanged' } })
    expect(await ranking()).toEqual(before)
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
      expect(report.outcome).toBe(report.requests === 12 ? 'complete' : 'partial')
      expect(report.evaluated).toBe(report.requests / 2)
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
    const down = PROVIDER_DOWN
    const failing = await bench.withService({
      fault: ({ model }) => (model === SOLVER ? down : null),
    })
    const { report } = await failing.run({ mode: 'forceEval' })
    expect(report).toMatchObject({ outcome: 'complete', evaluated: 5 })
    const fallen = await failing.model(SOLVER)
    expect(fallen).toMatchObject({ liteEvalScore: 0, evalSummary: { status: 'not_evaluated' } })
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
