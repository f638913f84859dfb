import { describe, expect, test } from 'vitest'
import { withoutModelIds } from '../../../src/domain/models/schema.ts'
import { DAY_MS } from '../../../src/domain/time.ts'
import { okResponse, MODELS, openBench, SHARED_POOL, SOLVER } from '../../support/evaluation.ts'

const OTHER = MODELS[1]?.id ?? ''

const said = (content: string | null): { status: number; body: unknown } =>
  okResponse({ choices: [{ finish_reason: 'stop', message: { role: 'assistant', content } }] })

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
