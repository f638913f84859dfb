import { join } from 'node:path'
import { mkdirSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { fileObjects } from '../../../src/adapters/objects/objects.ts'
import { openRouter } from '../../../src/adapters/router/router.ts'
import type { State } from '../../../src/domain/ports.ts'
import { proveRun } from '../../../src/domain/models/stored-run.ts'
import type { StoredRun } from '../../../src/domain/models/schema.ts'
import { evaluateModels } from '../../../src/jobs/models/evaluate-models.ts'
import type { EvaluateResult } from '../../../src/jobs/models/evaluate-models.ts'
import type { EvaluateOptions, EvaluatePorts } from '../../../src/jobs/models/evaluation-run.ts'
import { startOfDay } from '../../../src/domain/time.ts'
import { makeLiteSuite } from '../../../src/jobs/models/lite-suite.ts'
import { connectEvaluations } from '../../adapters/state/open-chat.ts'
import { sandbox } from '../../adapters/sandbox/lite-shell.ts'
import { errorOf, scriptedModels, startRouter } from './router-simulator.ts'
import type { RouterSimulator, SimulatorOptions } from './router-simulator.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

/** The day of the evaluations, which start at 03:00. */
export const DAY = '2026-03-01'

export const START = startOfDay(DAY) + 3 * 3_600_000

export const MODELS = scriptedModels(6)

/** The model that solves every task. */
export const SOLVER = MODELS[0]?.id ?? ''

/** A response with status 200. */
export const okResponse = (body: object): { status: number; body: object } => ({ status: 200, body })

/** A failure of a model's provider. */
export const PROVIDER_DOWN = errorOf(502, 'Provider returned error', { provider_name: 'X' })

/** A rate limit of a model's provider. */
export const SHARED_POOL = errorOf(429, 'Provider returned error', {
  provider_name: 'X',
  limit_source: 'upstream_provider_shared_pool',
})

/** Wall clock and monotonic clock of a test, which advance only during sleeps. */
interface TestTime {
  now: number
  clock: () => number
  monotonic: () => number
  /** Advances the clocks instead of waiting. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

function testTime(from: number): TestTime {
  const time: TestTime = {
    now: from,
    clock: () => Math.floor(time.now),
    monotonic: () => time.now - from,
    async sleep(ms, signal) {
      // Let open calls end before the time advances.
      for (let turn = 0; turn < 200 && !signal.aborted; turn += 1) await nextTurn()
      signal.throwIfAborted()
      time.now += ms
    },
  }
  return time
}

type ServiceOptions = Omit<SimulatorOptions, 'clock'> & { chatTimeoutMs?: number }

/** Real stores, a service on a real socket and the real suite in the sandbox, with simulated time. */
export interface EvaluationBench {
  time: TestTime
  service: RouterSimulator
  ports: EvaluatePorts
  /** The request allowance of the account, as the chat uses it. */
  allowance: State['allowance']
  notes: string[]
  run(options?: Partial<EvaluateOptions>): Promise<EvaluateResult>
  stored(): Promise<StoredRun | null>
  /** A model of the stored run. */
  model(id: string): Promise<StoredRun['models'][number] | undefined>
  /** The same stores and time with another service. */
  withService(options: Partial<ServiceOptions>, key?: string | null): Promise<EvaluationBench>
}

/** One sandbox for all tests of a file. */
const shell = await sandbox()

/** @param options {@link MODELS} unless it names others */
export async function openBench(
  options: Partial<ServiceOptions> = {},
  from = START,
): Promise<EvaluationBench> {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'objects'))
  return benchIn(folder, testTime(from), { models: MODELS, ...options }, 'test-key')
}

async function benchIn(
  folder: string,
  time: TestTime,
  options: ServiceOptions,
  key: string | null,
): Promise<EvaluationBench> {
  const service = await startRouter({ ...options, clock: time.clock })
  const router = openRouter({
    base: service.url,
    key,
    referer: 'http://127.0.0.1:3000',
    userAgent: 'dash/test',
    clock: time.clock,
    chatTimeoutMs: options.chatTimeoutMs ?? 20_000,
  })
  onTestFinished(() => router.close())
  const { evaluations, allowance } = connectEvaluations(pathToFileURL(join(folder, 'state.db')).href)
  const recommendations = fileObjects(join(folder, 'objects')).recommendations
  const notes: string[] = []
  const ports: EvaluatePorts = {
    router,
    evaluations,
    recommendations,
    changes: null,
    makeSuite: (day) => makeLiteSuite(day, shell),
    baseUrl: 'https://openrouter.ai/api/v1',
    clock: time.clock,
    monotonic: time.monotonic,
    sleep: time.sleep,
    holder: { name: 'the test', process: null },
    isDead: () => false,
    onProgress: () => undefined,
    onNote: (note) => notes.push(note),
  }
  const stored = async (): Promise<StoredRun | null> => {
    const bytes = await recommendations.current()
    return bytes && proveRun(bytes)
  }
  return {
    time,
    service,
    ports,
    allowance,
    notes,
    run: (changes = {}) =>
      evaluateModels(ports, {
        mode: 'fullEval',
        dryRun: false,
        signal: new AbortController().signal,
        ...changes,
      }),
    stored,
    model: async (id) => (await stored())?.models.find((model) => model.id === id),
    withService: (serviceOptions, otherKey = key) =>
      benchIn(folder, time, { models: MODELS, ...serviceOptions }, otherKey),
  }
}
