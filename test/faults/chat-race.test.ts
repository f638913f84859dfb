import { expect, test } from 'vitest'
import { countsOf, LONG } from './attack.ts'

interface Counts {
  tries: number
  admitted: Record<string, number>
  overAdmitted: Record<string, number>
  extended: number
  notExtended: number
  looks: number
  looksBeyondBudget: number
  taken: number
  openOfTheKilled: number
  swept: number
  admitMs: { p50: number; p99: number }
}

const KEYS_HELD = { keyDay: 0, keyMinute: 0, keyRevoked: 0 }

test('four processes on one state database admit nothing beyond any limit, and a killed one is swept', async () => {
  const tries = LONG ? 16_500 : 1_648
  const attack = await countsOf('chat-race.mjs', ['--tries', String(tries)])
  const counts = attack.counts as Counts
  process.stdout.write(`${tries} turns: ${JSON.stringify(counts)}\n`)
  expect(counts).toMatchObject({
    tries,
    overAdmitted: {
      burst: 0,
      day: 0,
      session: 0,
      gap: 0,
      streams: 0,
      share: 0,
      network: 0,
      money: 0,
      ...KEYS_HELD,
    },
    lost: 0,
    settledTwice: 0,
    errors: [],
    looksBeyondBudget: 0,
    wrongTotals: 0,
  })
  expect(counts.swept).toBe(counts.openOfTheKilled)
  expect(counts.swept).toBeGreaterThan(0)
  // The limits were reached: otherwise the test would prove nothing.
  expect(counts.admitted).toMatchObject({ burst: 30, session: 60, streams: 25, keyDay: 60, keyMinute: 30 })
  expect(counts.admitted['keyRevoked']).toBeGreaterThan(0)
  // The shares were reached too: nine turns of two calls and one that could not be extended, and twice as many of a
  // network.
  expect(counts.notExtended).toBeGreaterThan(0)
  expect(counts.admitted['share']).toBeGreaterThanOrEqual(27)
  expect(counts.admitted['network']).toBeGreaterThanOrEqual(54)
  expect(attack.code).toBe(0)
})

test('a thousand calls of 4 processes over the quotas of keys and sessions and the budget are held to each of them', async () => {
  const flags = ['--tries', '1000', '--only', 'keyDay,keyMinute,session,money', '--budget', '650000']
  const attack = await countsOf('chat-race.mjs', flags)
  const counts = attack.counts as Counts
  expect(counts).toMatchObject({
    tries: 1_000,
    overAdmitted: { keyDay: 0, keyMinute: 0, session: 0, money: 0 },
    errors: [],
    looksBeyondBudget: 0,
    wrongTotals: 0,
  })
  // Every limit was reached: less than a call is left of the budget.
  expect(counts.admitted).toMatchObject({ keyDay: 60, keyMinute: 30, session: 60 })
  expect(counts.taken).toBeGreaterThan(640_000)
  expect(attack.code).toBe(0)
})
