import { expect, test } from 'vitest'
import { openAgent } from '../../../src/server/agent/routes.ts'
import type { AgentPorts } from '../../../src/server/agent/service.ts'
import { silentLog } from '../../support/api-client.ts'

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
    ledger: { ping, lastPing: ping, spending: async () => NOTHING_SPENT },
    clock: () => 0,
    log: silentLog,
  }
  return { counted, agent: openAgent(ports as unknown as AgentPorts) }
}

const fail = (): Promise<void> => Promise.reject(new Error('the disk is full'))
const stay = (): Promise<void> => new Promise(() => undefined)

test('a state that cannot be written makes a server unready while the chat is on', async () => {
  const { agent } = chatOf(fail, true)
  await expect(agent.ping()).rejects.toThrow('the disk is full')
  expect(await agent.shownStatus()).toMatchObject({ ok: false, budget: 'unknown' })
})

test.each([
  ['cannot be written', fail],
  ['is locked', stay],
])('a state that %s is not written, and leaves a server ready, while the chat is off', async (_, write) => {
  const { agent, counted } = chatOf(write, false)
  await agent.ping()
  expect(await agent.shownStatus()).toMatchObject({ budget: 'ok' })
  expect(counted.writes).toBe(0)
})

test('a page does not wait for a state that is locked', async () => {
  const { agent } = chatOf(stay, true)
  expect(await agent.shownStatus()).toMatchObject({ ok: false, budget: 'unknown' })
})
