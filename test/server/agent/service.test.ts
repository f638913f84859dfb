import { expect, onTestFinished, test, vi } from 'vitest'
import type { State } from '../../../src/domain/ports.ts'
import { probedLedger, startSweeper } from '../../../src/server/agent/service.ts'
import { silentLog } from '../../support/api-client.ts'
import { startAgent } from '../../support/agent.ts'
import { openAgent } from '../../../src/server/agent/routes.ts'
import type { AgentPorts } from '../../../src/server/agent/service.ts'

/** A store whose writes fail while the test says so, and how often it was probed. */
function brittleStore() {
  const store = { probes: 0, full: false, now: 0, slow: null as Promise<void> | null }
  const ping = (): Promise<void> => {
    store.probes += 1
    return store.slow ?? (store.full ? Promise.reject(new Error('the disk is full')) : Promise.resolve())
  }
  const admit = (): Promise<never> => Promise.reject(new Error('the disk is full'))
  return {
    store,
    ledger: probedLedger({ ping, admit } as Partial<State['chat']> as State['chat'], () => store.now),
  }
}

const ready = (ledger: State['chat']): Promise<boolean> =>
  ledger.ping().then(
    () => true,
    () => false,
  )

test('the quota store is probed with at most one write a second, however often it is checked', async () => {
  const { store, ledger } = brittleStore()
  for (let asked = 0; asked < 1_000; asked += 1) expect(await ready(ledger)).toBe(true)
  expect(store.probes).toBe(1)
  store.full = true
  store.now += 1_000
  expect(await Promise.all([ready(ledger), ready(ledger)])).toEqual([false, false])
  expect([await ready(ledger), store.probes]).toEqual([false, 2])
  // A probe that does not end is not sent again.
  let go: () => void = () => undefined
  store.slow = new Promise((resolve) => (go = resolve))
  store.now += 1_000
  const pending = ready(ledger)
  store.now += 60_000
  const later = ready(ledger)
  go()
  expect([await pending, await later, store.probes]).toEqual([true, true, 3])
})

test('the quota store is probed again after an admission that failed, which a probe may have begun before', async () => {
  const { store, ledger } = brittleStore()
  let go: () => void = () => undefined
  store.slow = new Promise((resolve) => (go = resolve))
  const overtaken = ready(ledger)
  await expect(ledger.admit({} as never)).rejects.toThrow('the disk is full')
  go()
  expect(await overtaken).toBe(true)
  store.slow = null
  expect([await ready(ledger), store.probes]).toEqual([true, 2])
  await expect(ledger.admit({} as never)).rejects.toThrow('the disk is full')
  store.full = true
  expect(await ready(ledger)).toBe(false)
})

const AT = Date.parse('2026-11-21T00:20:00Z')

test('a clock set a day ahead and back leaves the callers of the day, and so their counts', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const { ledger } = await startAgent()
  const kept = await ledger.makeSalt('2026-11-21')
  let now = AT
  let sweeps = 0
  const sweep: typeof ledger.sweep = (...args) => ledger.sweep(...args).finally(() => (sweeps += 1))
  const stop = startSweeper({ sweep }, () => now, silentLog, 1_800)
  for (const day of [0, 1, 1, 400, 0]) {
    now = AT + day * 86_400_000
    await vi.waitUntil(() => sweeps > 0)
    await ledger.makeSalt(day === 0 ? '2026-11-21' : '2026-11-22')
    sweeps = 0
    vi.advanceTimersByTime(5_000)
    await vi.waitUntil(() => sweeps > 0)
  }
  await stop()
  expect(await ledger.salt('2026-11-21')).toEqual(kept)
})

const NOTHING_SPENT = { settled: 0, reserved: 0 }

/** A chat whose state can be read, and written as `write` says; how often it was written is counted. */
function chatOf(write: () => Promise<void>, isOn: boolean) {
  const counted = { writes: 0 }
  const ping = (): Promise<void> => {
    counted.writes += 1
    return write()
  }
  const ports = {
    settings: {
      disabled: !isOn,
      itemChat: true,
      trustedProxies: [],
      origins: () => [],
      maxOutputTokens: 100,
      limits: { maxOpenTurns: { perAddress: 1, perNetwork: 1, all: 1 }, budgetPerDay: 1_000_000 },
    },
    signer: {},
    provider: { prices: { input: 0, cached: 0, output: 0 } },
    modelName: async () => 'a-model',
    ledger: { ping, spending: async () => NOTHING_SPENT },
    clock: () => 0,
    log: silentLog,
  }
  return { counted, agent: openAgent(ports as unknown as AgentPorts) }
}

const fail = (): Promise<void> => Promise.reject(new Error('the disk is full'))
const stay = (): Promise<void> => new Promise(() => undefined)

test('a state that cannot be written makes a server unready while the chat is on, and a page waits for none', async () => {
  const { agent } = chatOf(fail, true)
  await expect(agent.ping()).rejects.toThrow('the disk is full')
  for (const write of [fail, stay])
    expect(await chatOf(write, true).agent.pageStatus()).toMatchObject({ ok: false, budget: 'unknown' })
})

test.each([
  ['cannot be written', fail],
  ['is locked', stay],
])('a state that %s is not written, and leaves a server ready, while the chat is off', async (_, write) => {
  const { agent, counted } = chatOf(write, false)
  await agent.ping()
  expect(await agent.pageStatus()).toMatchObject({ budget: 'ok' })
  expect(counted.writes).toBe(0)
})
