import { expect, test } from 'vitest'
import { countsOf, LONG, printFacts } from '../support/attack.ts'

interface Counts {
  tries: number
  admitted: Record<string, number>
  overAdmitted: Record<string, number>
  extended: number
  notExtended: number
  looks: number
  openOfTheKilled: number
  swept: number
  admitMs: { p50: number; p99: number }
}

test('four processes on one state database admit nothing beyond any limit, and a killed one is swept', async () => {
  const tries = LONG ? 12_000 : 1_200
  const attack = await countsOf('chat-race.mjs', ['--tries', String(tries)])
  const counts = attack.counts as Counts
  printFacts(`${tries} turns asked for by 4 processes`, {
    admitted: JSON.stringify(counts.admitted),
    'extended, and not': `${counts.extended}, ${counts.notExtended}`,
    'looks at the money': counts.looks,
    'left open by the killed one': counts.openOfTheKilled,
  })
  expect(counts).toMatchObject({
    tries,
    overAdmitted: { burst: 0, day: 0, session: 0, gap: 0, streams: 0, share: 0, network: 0, money: 0 },
    lost: 0,
    settledTwice: 0,
    errors: [],
    looksBeyondBudget: 0,
    wrongTotals: 0,
  })
  expect(counts.swept).toBe(counts.openOfTheKilled)
  expect(counts.swept).toBeGreaterThan(0)
  // The limits were reached: otherwise the test would prove nothing.
  expect(counts.admitted).toMatchObject({ burst: 30, session: 60, streams: 25 })
  // The shares were reached too: nine turns of two calls and one that could not be extended, and twice as many of a
  // network.
  expect(counts.notExtended).toBeGreaterThan(0)
  expect(counts.admitted['share']).toBeGreaterThanOrEqual(27)
  expect(counts.admitted['network']).toBeGreaterThanOrEqual(54)
  expect(attack.code).toBe(0)
})
