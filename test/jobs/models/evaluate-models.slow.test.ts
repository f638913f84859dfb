import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { addDays, DAY_MS, startOfDay } from '../../../src/domain/time.ts'
import type { RouterSimulator } from '../../support/router-simulator.ts'
import { scriptedModels } from '../../support/router-simulator.ts'
import type { EvaluationBench } from '../../support/evaluation.ts'
import { openBench } from '../../support/evaluation.ts'
import { sandbox } from '../../support/lite-shell.ts'

const DAY = '2026-03-01'
const START = startOfDay(DAY) + 3 * 3_600_000
const MODELS = scriptedModels(6)
const SOLVER = MODELS[0]?.id ?? ''

const shell = await sandbox()

const open = (
  options: Partial<Parameters<typeof openBench>[2]> = {},
  from = START,
): Promise<EvaluationBench> => openBench(shell, from, { models: MODELS, ...options })

function kept({ breaches, chats }: RouterSimulator): number {
  expect(breaches).toEqual([])
  return chats.length
}

const error = (code: number, message: string, metadata: object = {}): { status: number; body: unknown } => ({
  status: code,
  body: { error: { code, message, metadata } },
})

describe('a full evaluation', () => {
  test('asks every model two questions and recommends the one that answers them', async () => {
    const bench = await open()
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
    expect(run?.models[0]).toMatchObject({
      id: SOLVER,
      liteEvalScore: 750,
      healthStatus: 'passed',
      toolUse: 'proven',
      evalSummary: { status: 'completed', passed: 3 },
    })
    expect(run?.models.find(({ id }) => id === MODELS[2]?.id)).toMatchObject({
      toolUse: 'disproven',
      healthStatus: 'imperfect',
    })
    expect(run).toMatchObject({ probeMode: 'active', liteEvalMode: 'active', rankingConfidence: 'high' })
    expect(run?.evalCoverage).toMatchObject({ evaluated: 6, completedToday: 6, attemptedToday: 6 })
  })

  test('of eighteen models, eight of one vendor, stays under twenty a minute in the least time that allows', async () => {
    const vendors = ['oak', 'pine', 'oak', 'ash', 'oak', 'yew', 'oak', 'rowan', 'hazel']
    const bench = await open({ models: scriptedModels(18, vendors) })
    const { report } = await bench.run()
    expect(report).toMatchObject({ outcome: 'complete', requests: 36, evaluated: 18 })
    expect(kept(bench.service)).toBe(36)
    expect(bench.time.now - START).toBeLessThan(62_000)
  })

  test('uses the scores of the day when it runs again, and says that nothing changed', async () => {
    const bench = await open()
    await bench.run()
    bench.time.now += 600_000
    const { report } = await bench.run()
    expect(report).toMatchObject({
      outcome: 'unchanged',
      requests: 0,
      rankingVersion: `${DAY}.v1`,
      primary: SOLVER,
    })
    expect(kept(bench.service)).toBe(12)
    expect((await bench.stored())?.models[0]?.evalSummary).toMatchObject({ status: 'completed' })
  })

  test('that meets the daily limit half-way stops at once, and the next day works from the cache', async () => {
    const bench = await open()
    await bench.run()
    bench.time.now += DAY_MS
    const capped = await bench.against({
      models: MODELS,
      factFault: (path) => (path === '/key' ? error(502, 'Bad gateway') : null),
      aDay: 5,
    })
    const { report } = await capped.run()
    expect(report).toMatchObject({
      outcome: 'partial',
      rateLimit: { kind: 'account', resetAt: '2026-03-03T00:00:00.000Z' },
      reason: "the account's requests of the day are spent",
    })
    expect(kept(capped.service)).toBeLessThanOrEqual(5 + 4)
    expect(report.requests).toBe(capped.service.chats.length)
    const run = await capped.stored()
    const cached = run?.models.filter(({ evalSummary }) => evalSummary.status === 'cached_recent') ?? []
    expect(cached.length).toBeGreaterThan(0)
    expect(cached[0]?.evalSummary).toMatchObject({ cacheMultiplier: 0.9, cacheAgeDays: 1 })
    expect(run?.models[0]?.id).toBe(SOLVER)
    expect(run?.notes.join(' ')).toContain('requests of the day are spent')

    bench.time.now += DAY_MS
    const spent = await bench.against({ models: MODELS, usedByOthers: 52 })
    const next = await spent.run()
    expect(next.report).toMatchObject({ outcome: 'partial', requests: 0, primary: SOLVER })
    expect(spent.service.chats).toEqual([])
    expect((await spent.stored())?.liteEvalMode).toBe('cached')
  })

  test('asks who can win and whose score is oldest when the quota does not reach all', async () => {
    const bench = await open({ usedByOthers: 34 })
    const { report } = await bench.run()
    expect(report).toMatchObject({ outcome: 'partial', requests: 6, evaluated: 3 })
    expect(kept(bench.service)).toBe(6)
    expect((await bench.stored())?.evalCoverage).toMatchObject({ evaluated: 3, attemptedToday: 3 })
  })

  test('waits for the window when the account allows less a minute than it says, and learns', async () => {
    const bench = await open({ models: scriptedModels(12), aMinute: 8 })
    const { report } = await bench.run()
    expect(report).toMatchObject({ outcome: 'complete', rateLimit: { kind: 'account' } })
    expect(report.evaluated).toBeGreaterThanOrEqual(11)
    kept(bench.service)
    expect(await bench.ports.evaluations.learnedSince(START)).toBe(6)
    const refused = bench.service.chats.length - 24
    expect(refused).toBeLessThanOrEqual(4)
    bench.time.now += 3_600_000
    const again = await bench.against({ models: scriptedModels(13, ['gum', 'holly', 'ivy']), aMinute: 8 })
    expect((await again.run()).report.rateLimit).toBeNull()
    expect(again.service.chats.length).toBeGreaterThan(0)
  })

  test.each([
    [
      'its own rate limit',
      error(429, 'Provider returned error', {
        provider_name: 'X',
        limit_source: 'upstream_provider_shared_pool',
      }),
      'http_429',
    ],
    ['a provider that is down', error(502, 'Provider returned error', { provider_name: 'X' }), 'http_502'],
    ['HTML instead of an answer', { status: 502, body: '<html>bad gateway</html>' }, 'http_502'],
    ['an error inside a 200', { status: 200, body: { error: { code: 502, message: 'broke' } } }, 'http_502'],
    ['an answer that breaks off', 'cut', 'failed'],
    ['no answer in time', 'hang', 'timeout'],
    ['an answer without an end', 'endless', 'failed'],
    ['the refusal of a filter', error(403, 'flagged', { reasons: ['x'] }), 'http_403'],
    ['its end', error(404, 'No endpoints found for it.'), 'http_404'],
  ] as const)('costs a model %s and no other anything', async (_name, fault, health) => {
    const fails = ({ model }: { model: string }) => (model === MODELS[1]?.id ? fault : null)
    const bench = await open({ fault: fails, ...(fault === 'hang' ? { chatTimeoutMs: 2_000 } : {}) })
    const { report } = await bench.run()
    expect(report).toMatchObject({ outcome: 'complete', evaluated: 5, probed: 6 })
    const asked = bench.service.chats.filter(({ model }) => model === MODELS[1]?.id).length
    expect(kept(bench.service)).toBe(10 + asked)
    const run = await bench.stored()
    expect(run?.models.find(({ id }) => id === MODELS[1]?.id)).toMatchObject({
      healthStatus: health,
      evalSummary: { status: 'not_evaluated' },
    })
    expect(run?.evalCoverage).toMatchObject({ attemptedToday: 6, completedToday: 5 })
  })

  test('asks once more at the end of the queue when that may help, and keeps the answer', async () => {
    const failing = { model: SOLVER, kind: 'tool' }
    const bench = await open({
      fault: ({ model, kind, number }) =>
        model === failing.model && kind === failing.kind && number === 1
          ? error(429, 'Provider returned error', { provider_name: 'X', retry_after_seconds: 11 })
          : null,
    })
    const { report } = await bench.run()
    expect(report).toMatchObject({
      outcome: 'complete',
      evaluated: 6,
      requests: 13,
      rateLimit: { kind: 'model' },
    })
    const asked = bench.service.chats.filter(({ model }) => model === SOLVER)
    expect(bench.service.chats.at(-1)).toMatchObject(failing)
    expect((asked[2]?.at ?? 0) - (asked[0]?.at ?? 0)).toBeGreaterThanOrEqual(11_000)
    kept(bench.service)
    expect((await bench.stored())?.models.find(({ id }) => id === SOLVER)).toMatchObject({
      instabilityPenalty: 25,
      healthStatus: 'passed',
    })
  })

  test('publishes what kept a question from its answer', async () => {
    const metadata = { provider_name: 'Example Cloud', raw: 'busy' }
    const bench = await open({
      fault: ({ model, kind }) =>
        model === SOLVER && kind === 'text' ? error(429, 'Provider returned error', metadata) : null,
    })
    await bench.run()
    const tasks = (await bench.stored())?.models.find(({ id }) => id === SOLVER)?.evalSummary.tasks ?? []
    expect(tasks.map(({ status, points }) => [status, points])).toEqual([
      ['passed', 350],
      ['http_timeout_or_error', 0],
      ['http_timeout_or_error', 0],
    ])
    expect(tasks[1]?.details).toMatchObject({
      responseStatus: 429,
      rateLimitKind: 'model',
      providerName: 'Example Cloud',
    })
    expect(tasks[1]?.details).not.toHaveProperty('usedTool')
  })
})

describe('a full evaluation under limits and faults', () => {
  test('that nobody can attribute a limit to waits once two vendors agree, and blames no model', async () => {
    const bench = await open({
      fault: ({ at }) => (at < START + 1000 ? { status: 429, body: '<html>slow down</html>' } : null),
    })
    const { report } = await bench.run()
    expect(report).toMatchObject({ outcome: 'complete', rateLimit: { kind: 'account' } })
    kept(bench.service)
    const penalties = (await bench.stored())?.models.map(({ instabilityPenalty }) => instabilityPenalty)
    expect(penalties).toEqual([0, 0, 0, 0, 0, 0])
  })

  test.each([
    ['a key that is not taken', error(401, 'User not found.'), 'OPENROUTER_API_KEY'],
    ['a negative balance', error(402, 'Insufficient credits'), 'add credits'],
    [
      "the account's data policy",
      error(404, 'No endpoints found matching your data policy (Free model publication).'),
      'settings/privacy',
    ],
    ["a key's own limit", error(403, 'Key limit exceeded (total limit).'), 'raise it'],
  ])('stops at %s and says what to change', async (_name, fault, words) => {
    const bench = await open({ fault: () => fault })
    const result = await bench.run()
    expect(result).toMatchObject({ misconfigured: true, report: { outcome: 'failed', rankingVersion: null } })
    expect(result.report.reason).toContain(words)
    expect(kept(bench.service)).toBeLessThanOrEqual(4)
    expect(await bench.stored()).toBeNull()
  })

  test('that loses its key half-way keeps what was measured', async () => {
    const bench = await open({
      fault: ({ vendor }) => (vendor === 'fir' ? error(401, 'User not found.') : null),
    })
    const result = await bench.run()
    expect(result).toMatchObject({ misconfigured: false, report: { outcome: 'partial' } })
    expect((await bench.stored())?.models).toHaveLength(6)
  })

  test('asks no model with a key that the service does not take', async () => {
    const bench = await (await open()).against({ models: MODELS }, 'wrong-key')
    expect(await bench.run()).toMatchObject({
      misconfigured: true,
      report: { outcome: 'failed', requests: 0 },
    })
    expect(bench.service.chats).toEqual([])
  })

  test('stops when the service itself is down for two vendors', async () => {
    const bench = await open({ fault: () => ({ status: 502, body: '<html>' }) })
    const result = await bench.run()
    expect(result).toMatchObject({ unavailable: true, report: { outcome: 'failed' } })
    expect(kept(bench.service)).toBeLessThan(8)
  })

  test('that was cut off forgets nothing: the next one asks only what is open', async () => {
    const bench = await open()
    const stopping = new AbortController()
    const stopped = await bench.against({
      models: MODELS,
      fault: (): null => {
        if (stopped.service.chats.length >= 5) stopping.abort(new Error('cut'))
        return null
      },
    })
    await expect(stopped.run({ signal: stopping.signal })).rejects.toThrow('cut')
    const sent = stopped.service.chats.length
    // One may have been written down and not sent.
    const written = await stopped.ports.evaluations.attemptsSince(START)
    expect(written.length).toBeGreaterThanOrEqual(sent)
    const rest = await bench.against({ models: MODELS, usedByOthers: sent })
    const { report } = await rest.run()
    expect(rest.notes).toEqual([])
    expect(report).toMatchObject({ outcome: 'complete' })
    for (const { id } of MODELS) {
      const both = [...stopped.service.chats, ...rest.service.chats].filter(({ model }) => model === id)
      expect(both.length).toBeLessThanOrEqual(3)
    }
    const settled = (await rest.ports.evaluations.attemptsSince(START)).filter(({ end }) => end?.tasks)
    const answers = settled.map(({ model, kind }) => `${model} ${kind}`)
    expect(new Set(answers).size).toBe(answers.length)
  })

  test('ends with the UTC day, whose suite and quota it used', async () => {
    const bench = await open({ models: scriptedModels(15) }, startOfDay(addDays(DAY, 1)) - 20_000)
    const { report } = await bench.run()
    expect(report).toMatchObject({
      outcome: 'partial',
      requests: 19,
      reason: expect.stringContaining('day ended') as string,
    })
    kept(bench.service)
  })

  test('keeps the stored recommendation when the catalogue has no candidate', async () => {
    const bench = await open()
    await bench.run()
    const empty = await bench.against({ models: [] })
    const result = await empty.run()
    expect(result).toMatchObject({
      misconfigured: false,
      unavailable: false,
      report: { outcome: 'failed', primary: SOLVER },
    })
    expect((await empty.stored())?.rankingVersion).toBe(`${DAY}.v1`)
  })

  test('refuses when there is no catalogue', async () => {
    const bench = await open({ factFault: () => ({ status: 503, body: '<html>' }) })
    await expect(bench.run()).rejects.toMatchObject({ code: 'source_unavailable' })
  })

  test('keeps why each other model was no candidate', async () => {
    const paid = {
      ...MODELS[0],
      id: 'alder/paid',
      character: 'solver' as const,
      name: 'Paid',
      contextLength: 9000,
      maxCompletionTokens: 900,
      latencyMs: 1,
    }
    const bench = await open({ models: [...MODELS, paid] })
    const { report } = await bench.run()
    expect(report.rejected).toEqual([{ model: 'alder/paid', reason: 'zero_price_without_suffix' }])
  })

  test('runs one at a time', async () => {
    const bench = await open()
    const { evaluations } = bench.ports
    await evaluations.takeLease({ name: 'another', process: null }, START, 600_000, () => false)
    await expect(bench.run()).rejects.toMatchObject({ code: 'lease_held' })
    await nextTurn()
    expect(bench.service.facts).toEqual([])
  })
})

describe('a forced evaluation', () => {
  test('asks every model again that answered today, beside those that are new', async () => {
    const bench = await open()
    await bench.run()
    const forced = await bench.against({ models: [...MODELS, ...scriptedModels(8).slice(6)] })
    const { report } = await forced.run({ mode: 'forceEval' })
    expect(report).toMatchObject({
      refreshMode: 'forceEval',
      outcome: 'complete',
      requests: 16,
      evaluated: 8,
    })
    kept(forced.service)
  })

  test('does not use older scores for a model that fails by itself, but does after a limit of the account', async () => {
    const bench = await open()
    await bench.run()
    bench.time.now += DAY_MS
    const failing = await bench.against({
      models: MODELS,
      fault: ({ model }) =>
        model === SOLVER ? error(502, 'Provider returned error', { provider_name: 'X' }) : null,
    })
    await failing.run({ mode: 'forceEval' })
    const fallen = (await failing.stored())?.models.find(({ id }) => id === SOLVER)
    expect(fallen?.evalSummary.status).toBe('not_evaluated')
    bench.time.now += DAY_MS
    const limited = await bench.against({ models: MODELS, usedByOthers: 50 })
    await limited.run({ mode: 'forceEval' })
    const cached = (await limited.stored())?.models.find(({ id }) => id === SOLVER)
    expect(cached?.evalSummary).toMatchObject({ status: 'cached_recent', cacheMultiplier: 0.8 })
  })
})

describe('the modes that ask no model', () => {
  test('healthOnly takes health from the endpoints, and the last probe of the day where there is one', async () => {
    const bench = await open({ usedByOthers: 34 })
    await bench.run()
    const asked = new Set(bench.service.chats.map(({ model }) => model))
    const gone = MODELS[5]?.id ?? ''
    const health = await bench.against({
      models: MODELS,
      factFault: (path) => (path === `/models/${gone}/endpoints` ? error(404, 'Not found') : null),
    })
    const { report } = await health.run({ mode: 'healthOnly' })
    expect(report).toMatchObject({
      outcome: 'complete',
      refreshMode: 'healthOnly',
      probed: 6,
      evaluated: 0,
      requests: 0,
    })
    expect(health.service.chats).toEqual([])
    const run = await health.stored()
    expect(run).toMatchObject({ probeMode: 'passive', liteEvalMode: 'cached', rankingVersion: `${DAY}.v2` })
    for (const model of run?.models ?? []) {
      if (model.id === gone) expect(model).toMatchObject({ healthStatus: 'failed', latencyMs: null })
      else if (!asked.has(model.id)) expect(model.healthStatus).toBe('imperfect')
      if (model.id === SOLVER) expect(model).toMatchObject({ healthStatus: 'passed', latencyMs: 500 })
    }
  })

  test('metadataOnly asks for the catalogue alone', async () => {
    const bench = await open()
    const { report } = await bench.run({ mode: 'metadataOnly' })
    expect(report).toMatchObject({ outcome: 'complete', refreshMode: 'metadataOnly', probed: 0, requests: 0 })
    expect(bench.service.facts).toEqual(['/models'])
    expect(await bench.stored()).toMatchObject({
      probeMode: 'metadata',
      liteEvalMode: 'off',
      rankingConfidence: 'low',
    })
  })

  test('without a key only metadata is refreshed, which is said', async () => {
    const bench = await (await open()).against({ models: MODELS }, null)
    const { report } = await bench.run()
    expect(report).toMatchObject({ outcome: 'complete', refreshMode: 'metadataOnly', requests: 0 })
    expect(bench.notes).toEqual(['there is no OPENROUTER_API_KEY: only metadata is refreshed'])
    expect(bench.service.facts).toEqual(['/models'])
    expect((await bench.stored())?.notes.join(' ')).toContain('No key')
  })

  test('a dry run plans, sends no chat request and writes nothing', async () => {
    const bench = await open()
    const { report } = await bench.run({ dryRun: true })
    expect(report).toMatchObject({ outcome: 'unchanged', dryRun: true, requests: 12, ranked: 6 })
    expect(bench.service.chats).toEqual([])
    expect(await bench.stored()).toBeNull()
    expect(await bench.ports.evaluations.versionsOf(DAY)).toEqual([])
  })
})
