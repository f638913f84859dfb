import { describe, expect, test } from 'vitest'
import type { EndedRun } from '../../../src/domain/models/evaluation.ts'
import type { RouterSimulator } from './router-simulator.ts'
import { errorOf, scriptedModels } from './router-simulator.ts'
import { DAY, MODELS, openBench, PROVIDER_DOWN, SOLVER, START, SHARED_POOL } from './evaluation-bench.ts'

function kept({ breaches, chats }: RouterSimulator): number {
  expect(breaches).toEqual([])
  return chats.length
}

/** Only one model can win, however long its responses take on a busy machine. */
const ONE_SOLVER = MODELS.map((model) =>
  model.id !== SOLVER && model.behaviour === 'solver' ? { ...model, behaviour: 'guesser' as const } : model,
)

describe('a full evaluation', () => {
  test('a full evaluation sends every model two prompts and recommends the one that solves them, and a second one of the day changes nothing', async () => {
    const bench = await openBench()
    const { report } = await bench.run()
    expect(report).toMatchObject({
      outcome: 'complete',
      refreshMode: 'fullEval',
      rankingVersion: `${DAY}.v1`,
      primary: SOLVER,
      ranked: 6,
      probed: 6,
      evaluated: 6,
      requests: 12,
      rateLimit: null,
      reason: null,
    })
    expect(kept(bench.service)).toBe(12)
    const run = await bench.stored()
    expect(run?.models[0]).toMatchObject({ id: SOLVER, liteEvalScore: 750, healthStatus: 'passed' })
    expect(await bench.model(MODELS[2]?.id ?? '')).toMatchObject({ toolUse: 'disproven' })
    expect(run).toMatchObject({ probeMode: 'active', liteEvalMode: 'active', rankingConfidence: 'high' })
    expect(run?.evalCoverage).toMatchObject({ evaluated: 6, completedToday: 6, attemptedToday: 6 })
    bench.time.now += 600_000
    const again = await bench.run()
    const unchanged = { outcome: 'unchanged', requests: 0, rankingVersion: `${DAY}.v1`, primary: SOLVER }
    expect(again.report).toMatchObject(unchanged)
    expect(await bench.stored()).toEqual(run)
  })

  test('an evaluation waits for the window when the account allows less a minute than it reports, and lowers its rate', async () => {
    const bench = await openBench({ models: scriptedModels(12), perMinute: 8 })
    const { report } = await bench.run()
    expect(report).toMatchObject({ outcome: 'complete', rateLimit: { kind: 'account' } })
    expect(report.evaluated).toBeGreaterThanOrEqual(11)
    kept(bench.service)
    expect(await bench.ports.evaluations.lowestRateBetween(START, START)).toBe(6)
    expect(bench.service.chats.length).toBeLessThanOrEqual(24 + 4)
    bench.time.now += 3_600_000
    const again = await bench.withService({
      models: scriptedModels(13, ['gum', 'holly', 'ivy']),
      perMinute: 8,
    })
    expect((await again.run()).report.rateLimit).toBeNull()
    expect(again.service.chats.length).toBeGreaterThan(0)
  })

  test.each([
    ['its own rate limit', SHARED_POOL, 'http_429'],
    ['a provider that is down', PROVIDER_DOWN, 'http_502'],
    ['an answer that breaks off', 'cut', 'failed'],
    ['no response in time', 'hang', 'timeout'],
    ['its end', errorOf(404, 'No endpoints found for it.'), 'http_404'],
  ] as const)('a failure affects no other model: %s', async (_name, fault, health) => {
    const fails = ({ model }: { model: string }) => (model === MODELS[1]?.id ? fault : null)
    const timeout = fault === 'hang' ? { chatTimeoutMs: 2_000 } : {}
    const bench = await openBench({ models: ONE_SOLVER, fault: fails, ...timeout })
    const report = { outcome: 'complete', evaluated: 5, probed: 6, primary: SOLVER }
    expect(await bench.run()).toMatchObject({ blame: null, report })
    const asked = bench.service.chats.filter(({ model }) => model === MODELS[1]?.id).length
    expect(kept(bench.service)).toBe(10 + asked)
    const run = await bench.stored()
    const model = { healthStatus: health, evalSummary: { status: 'not_evaluated' } }
    expect(run?.models.find(({ id }) => id === MODELS[1]?.id)).toMatchObject(model)
    expect(run?.evalCoverage).toMatchObject({ attemptedToday: 6, completedToday: 5 })
  })

  test('an evaluation retries once at the end of the queue when that may help, and keeps the response', async () => {
    const limited = errorOf(429, 'Provider returned error', { provider_name: 'X', retry_after_seconds: 11 })
    const failing = { model: SOLVER, kind: 'tool' }
    const bench = await openBench({
      fault: ({ model, kind, number }) =>
        model === SOLVER && kind === 'tool' && number === 1 ? limited : null,
    })
    const report = { outcome: 'complete', evaluated: 6, requests: 13, rateLimit: { kind: 'model' } }
    expect(await bench.run()).toMatchObject({ report })
    const asked = bench.service.chats.filter(({ model }) => model === SOLVER)
    expect(bench.service.chats.at(-1)).toMatchObject(failing)
    expect((asked[2]?.at ?? 0) - (asked[0]?.at ?? 0)).toBeGreaterThanOrEqual(11_000)
    kept(bench.service)
    expect(await bench.model(SOLVER)).toMatchObject({ instabilityPenalty: 25, healthStatus: 'passed' })
  })
})

describe('a full evaluation under limits and faults', () => {
  test('an evaluation stops at a key that is not taken, and reports what to change', async () => {
    const bench = await openBench({ fault: () => errorOf(401, 'User not found.') })
    const result = await bench.run()
    expect(result).toMatchObject({ blame: 'settings', report: { outcome: 'failed', rankingVersion: null } })
    expect(result.report.reason).toMatch(/OPENROUTER_API_KEY$/)
    expect(kept(bench.service)).toBeLessThanOrEqual(4)
    expect(await bench.stored()).toBeNull()
  })

  test('an evaluation that loses its key half-way keeps its measurements, and names the cause alone', async () => {
    const bench = await openBench({
      fault: ({ model }) => (model.startsWith('fir/') ? errorOf(401, 'User not found.') : null),
    })
    const result = await bench.run()
    expect(result).toMatchObject({ blame: null, report: { outcome: 'partial' } })
    const { models = [], notes = [] } = (await bench.stored()) ?? {}
    expect(models).toHaveLength(6)
    expect(notes).toContainEqual(
      expect.stringMatching(/^Stopped after \d+ requests: .*OPENROUTER_API_KEY\.$/),
    )
    expect(notes).toContainEqual(
      expect.stringMatching(/^Not fully measured, because the run stopped: .*fir\//),
    )
    expect(notes.join(' ')).not.toContain('hit its rate limit')
  })

  test('an evaluation stops when the service itself is down for two vendors', async () => {
    const bench = await openBench({ fault: () => ({ status: 502, body: '<html>' }) })
    const result = await bench.run()
    expect(result).toMatchObject({ blame: 'service', report: { outcome: 'failed' } })
    expect(kept(bench.service)).toBeLessThan(8)
  })

  test('an evaluation that the service stops counts no model as measured for failures of the service', async () => {
    const bench = await openBench({
      models: scriptedModels(2),
      fault: ({ model, kind }) =>
        model.startsWith('birch/') && kind === 'tool' ? null : { status: 502, body: '<html>' },
    })
    expect(await bench.run()).toMatchObject({ report: { outcome: 'partial', requests: 4, probed: 1 } })
  })

  test('an interrupted evaluation loses nothing: the next one sends only the open prompts', async () => {
    const bench = await openBench()
    const stopping = new AbortController()
    const stopped = await bench.withService({
      fault: (): null => {
        if (stopped.service.chats.length >= 5) stopping.abort(new Error('cut'))
        return null
      },
    })
    await expect(stopped.run({ signal: stopping.signal })).rejects.toThrow('cut')
    const sent = stopped.service.chats.length
    const rest = await bench.withService({ usedByOthers: sent })
    expect(await rest.run()).toMatchObject({ report: { outcome: 'complete' } })
    expect(rest.notes).toEqual([])
    for (const { id } of MODELS) {
      const both = [...stopped.service.chats, ...rest.service.chats].filter(({ model }) => model === id)
      expect(both.length).toBeLessThanOrEqual(3)
    }
    const settled = (await rest.ports.evaluations.attemptsSince(START)).filter(({ end }) => end?.tasks)
    const answers = settled.map(({ model, kind }) => `${model} ${kind}`)
    expect(new Set(answers).size).toBe(answers.length)
  })
})

describe('the modes without prompts', () => {
  test('healthOnly takes health from the endpoints, and the last probe of the day where there is one, for later runs too', async () => {
    const bench = await openBench({ usedByOthers: 34 })
    await bench.run()
    const asked = new Set(bench.service.chats.map(({ model }) => model))
    const gone = MODELS[5]?.id ?? ''
    const health = await bench.withService({
      factFault: (path) => (path === `/models/${gone}/endpoints` ? errorOf(404, 'Not found') : null),
    })
    const { report } = await health.run({ mode: 'healthOnly' })
    const counts = { probed: 6, evaluated: 0, requests: 0 }
    expect(report).toMatchObject({ outcome: 'complete', refreshMode: 'healthOnly', ...counts })
    expect(health.service.chats).toEqual([])
    const run = await health.stored()
    expect(run).toMatchObject({ probeMode: 'passive', liteEvalMode: 'cached', rankingVersion: `${DAY}.v2` })
    for (const model of run?.models ?? []) {
      if (model.id === gone) expect(model).toMatchObject({ healthStatus: 'failed', latencyMs: null })
      else if (!asked.has(model.id)) expect(model.healthStatus).toBe('imperfect')
      if (model.id === SOLVER) expect(model).toMatchObject({ healthStatus: 'passed', latencyMs: 500 })
    }
    const untested = MODELS.flatMap(({ id }) => (asked.has(id) ? [] : [id]))
    expect(new Set(run?.untested)).toEqual(new Set(untested))
    expect(await bench.run({ mode: 'metadataOnly' })).toMatchObject({ report: { outcome: 'unchanged' } })
    expect(await bench.stored()).toEqual(run)
  })

  test.each([
    ['metadataOnly', 'test-key', { mode: 'metadataOnly' }, []],
    ['a run without a key', null, {}, ['OPENROUTER_API_KEY is not set; only metadata is refreshed']],
  ] as const)('%s requests the catalogue alone', async (_what, key, options, notes) => {
    const models = [...MODELS, { ...MODELS[0], id: '' } as (typeof MODELS)[number]]
    const bench = await (await openBench()).withService({ models }, key)
    const { report } = await bench.run(options)
    expect(report).toMatchObject({ outcome: 'complete', refreshMode: 'metadataOnly', probed: 0, requests: 0 })
    expect(bench.notes).toEqual(notes)
    expect(bench.service.facts).toEqual(['/models'])
    const modes = { probeMode: 'metadata', liteEvalMode: 'off', rankingConfidence: 'low' }
    expect(await bench.stored()).toMatchObject(modes)
    const stored = (await bench.stored())?.notes.join(' ')
    if (key === null) expect(stored).toContain('No key')
    expect(stored).toContain('1 row of the catalogue could not be read.')
  })
})

test('each run is recorded with its end, also when it fails', async () => {
  const bench = await openBench({ models: MODELS.slice(0, 1) })
  const { evaluations } = bench.ports
  const runs: EndedRun[] = []
  const record = evaluations.recordRun
  evaluations.recordRun = (run) => {
    runs.push(run)
    return record(run)
  }
  await bench.run()
  const stopping = AbortSignal.abort(new Error('cut'))
  await expect(bench.run({ mode: 'forceEval', signal: stopping })).rejects.toThrow('cut')
  const run = { day: DAY, startedAt: START, startsAMinute: null }
  const complete = { outcome: 'complete', refreshMode: 'fullEval', rankingVersion: `${DAY}.v1`, reason: null }
  const failed = { outcome: 'failed', refreshMode: 'forceEval', rankingVersion: null, reason: 'interrupted' }
  expect(runs).toMatchObject([
    { ...run, ...complete },
    { ...run, ...failed, startedAt: expect.any(Number) as number },
  ])
})

test("an attempt that cannot be settled, the last of a model's, leaves no result of its prompt", async () => {
  const bench = await openBench({ models: MODELS.slice(0, 1) })
  const broken = new Error('the state database is read-only')
  const { evaluations } = bench.ports
  const settle = evaluations.settleAttempt
  let settled = 0
  evaluations.settleAttempt = (...args) => {
    settled += 1
    return settled === 2 ? Promise.reject(broken) : settle(...args)
  }
  await expect(bench.run()).rejects.toThrow(broken.message)
  const attempts = await evaluations.attemptsSince(START)
  expect(attempts.map(({ end }) => end?.class)).toEqual(['answered', 'abandoned'])
})
