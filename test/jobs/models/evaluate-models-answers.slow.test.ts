import { describe, expect, test } from 'vitest'
import { withoutModelIds } from '../../../src/domain/models/schema.ts'
import { DAY_MS } from '../../../src/domain/time.ts'
import {
  DAY,
  errorOf,
  MODELS,
  okResponse,
  openBench,
  PROVIDER_DOWN,
  SHARED_POOL,
  SOLVER,
} from './evaluation-bench.ts'

const OTHER = MODELS[1]?.id ?? ''

const said = (content: string | null, finish_reason = 'stop'): { status: number; body: unknown } =>
  okResponse({ choices: [{ finish_reason, message: { role: 'assistant', content } }] })

describe('a response', () => {
  test('a response without text and calls is a provider failure, and is retried once', async () => {
    const bench = await openBench({
      fault: ({ model, kind, number }) =>
        model === OTHER && kind === 'tool' && number < 3 ? said(null) : null,
    })
    const { report } = await bench.run()
    expect(report).toMatchObject({ outcome: 'complete', evaluated: 6 })
    const model = await bench.model(OTHER)
    expect(model).toMatchObject({ toolUse: 'proven', instabilityPenalty: 25 })
  })

  test('a response that disproves tool use counts before an older one that proved it', async () => {
    const bench = await openBench()
    await bench.run()
    bench.time.now += DAY_MS
    const talking = await bench.withService({
      fault: ({ model, kind }) =>
        model === SOLVER ? (kind === 'tool' ? said('I cannot use tools.') : SHARED_POOL) : null,
    })
    await talking.run()
    const model = await talking.model(SOLVER)
    expect(model).toMatchObject({ toolUse: 'disproven', evalSummary: { status: 'cached_recent' } })
  })

  test('a prompt has no larger token limit than the model, and its full limit where the model has more', async () => {
    const [first, ...others] = MODELS
    const small = { ...first, maxCompletionTokens: 1_024 } as (typeof MODELS)[number]
    const bench = await openBench({ models: [small, ...others] })
    await bench.run()
    const room = (id: string): unknown[] =>
      bench.service.chats.filter(({ model }) => model === id).map(({ body }) => body['max_tokens'])
    expect(room(SOLVER)).toEqual([1_024, 1_024])
    expect(room(OTHER)).toEqual([3_000, 4_000])
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
    expect(report).toMatchObject({
      outcome: 'partial',
      reason: `${spent.length} models not fully evaluated: too few of their daily requests are left`,
    })
    const notes = (await bench.stored())?.notes.join('\n')
    for (const id of spent) expect(notes).toContain(withoutModelIds(id))
    expect(bench.service.breaches).toEqual([])
  })

  test("a run sends nothing once the day's requests are used, while the service does not report the rest", async () => {
    const untold = { factFault: (path: string) => (path === '/key' ? SHARED_POOL : null) }
    const bench = await openBench({ ...untold, perDay: 50, usedByOthers: 50 })
    const first = await bench.run()
    expect(first.report).toMatchObject({ outcome: 'partial', rateLimit: { kind: 'account' } })
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
    const bench = await openBench({
      fault: ({ model, kind }) => (model === SOLVER && kind === 'tool' ? said(null, 'length') : null),
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
