import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

/** The short form of the attack; `docs/evidence.md` has the long one. */
const FLIPS = 300

const ATTACK = fileURLToPath(new URL('../../scripts/attacks/bit-flips.mjs', import.meta.url))

interface Side {
  flips: number
  changed: number
  unreadable: number
  unchanged: number
  reported: number
}

interface Counts {
  ledger: Side
  objects: Side
  right: number
  unavailable: number
  cases: unknown[]
}

test('every random bit flip that changes a row or an object is reported, and no answer is ever wrong', async () => {
  const args = [ATTACK, '--flips', String(FLIPS), '--seed', '7', '--days', '8', '--json']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  const [code] = (await once(child, 'close')) as [number | null]
  const counts = JSON.parse(stdout) as Counts
  expect(counts).toMatchObject({
    missed: 0,
    wrong: 0,
    older: 0,
    deaths: 0,
    wrote: 0,
    auditFaults: 0,
    cases: [],
  })
  expect(code).toBe(0)
  const { ledger, objects } = counts
  expect(ledger.flips + objects.flips).toBe(FLIPS)
  expect(objects).toMatchObject({ changed: objects.flips, reported: objects.flips })
  expect(ledger.changed + ledger.unreadable).toBeGreaterThan(5)
  expect(ledger.reported).toBe(ledger.changed + ledger.unreadable)
  // Every way to be asked was met: damage refused, and what is sound still served.
  expect(counts.right).toBeGreaterThan(100)
  expect(counts.unavailable).toBeGreaterThan(100)
})
