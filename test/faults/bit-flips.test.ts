import { expect, test } from 'vitest'
import { countsOf } from './attack.ts'

/** The short form of the attack; `docs/evidence.md` has the long one. */
const FLIPS = 300

type Side = Record<'flips' | 'changed' | 'unreadable' | 'reported', number>

interface Counts {
  ledger: Side
  objects: Side
  right: number
  unavailable: number
}

test('every random bit flip that changes a row or an object is reported, and no response is ever wrong', async () => {
  const args = ['--flips', String(FLIPS), '--seed', '7', '--days', '8']
  const attack = await countsOf('bit-flips.mjs', args)
  const counts = attack.counts as Counts
  expect(counts).toMatchObject({
    missed: 0,
    wrong: 0,
    older: 0,
    deaths: 0,
    wrote: 0,
    auditFaults: 0,
    cases: [],
  })
  expect(attack.code).toBe(0)
  const { ledger, objects } = counts
  expect(ledger.flips + objects.flips).toBe(FLIPS)
  expect(objects).toMatchObject({ changed: objects.flips, reported: objects.flips })
  expect(ledger.changed + ledger.unreadable).toBeGreaterThan(5)
  expect(ledger.reported).toBe(ledger.changed + ledger.unreadable)
  // Every kind of request occurred: damage is refused, and sound data is still served.
  expect(counts.right).toBeGreaterThan(100)
  expect(counts.unavailable).toBeGreaterThan(100)
})
