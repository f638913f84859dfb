import { describe, expect, test } from 'vitest'
import type { LeaseGrant, LeaseHolder } from '../../../src/domain/jobs.ts'
import type { Ledger } from '../../../src/domain/year/ports.ts'
import { leaseOf } from './open-ledger.ts'
import type { LedgerOpener } from './open-ledger.ts'

const NOW = Date.UTC(2026, 2, 2, 0, 10)
const FOR_MS = 600_000
const ONE: LeaseHolder = { name: 'host (process 1)', process: '1@boot/pid:[1]@100' }
const TWO: LeaseHolder = { name: 'host (process 2)', process: '2@boot/pid:[1]@200' }

const allAlive = (): boolean => false

function take(
  ledger: Ledger,
  holder: LeaseHolder,
  now: number,
  isDead: (process: string) => boolean = allAlive,
): Promise<LeaseGrant> {
  return ledger.takeLease(holder, now, FOR_MS, isDead)
}

const taken = (ledger: Ledger, holder: LeaseHolder, now = NOW): Promise<string> =>
  leaseOf(ledger, now, FOR_MS, holder)

/** Contract of every ledger engine: the lease and the attempts it protects. */
export function leaseContract(engine: string, open: LedgerOpener): void {
  const leased = async () => {
    const { ledger } = await open()
    return { ledger, token: await taken(ledger, ONE) }
  }

  describe(`the publisher's lease in ${engine}`, () => {
    test.each([
      ['refused while another process holds it', NOW, NOW + FOR_MS - 1, false],
      ['free from the moment of its expiry', NOW, NOW + FOR_MS, true],
      ['refused if it was taken by a clock that was ahead', NOW + FOR_MS, NOW, false],
      ['free if it ends later than possible by this clock', NOW + FOR_MS + 1, NOW, true],
    ])('the lease is %s, with its holder, start and end', async (_what, takenAt, now, granted) => {
      const { ledger, another } = await open()
      const first = await taken(ledger, ONE, takenAt)
      const second = await take(another().ledger, TWO, now)
      const [heldBy, since] = granted ? [TWO.name, now] : [ONE.name, takenAt]
      if (granted) expect(second).not.toMatchObject({ token: first })
      else expect(second).toEqual({ granted, heldBy, since, until: since + FOR_MS })
      const third = await take(ledger, ONE, now)
      expect(third).toEqual({ granted: false, heldBy, since, until: since + FOR_MS })
    })

    test('a lease is taken over from a process known to be dead, and from no other', async () => {
      const { ledger } = await open()
      await taken(ledger, ONE)
      const checkedProcesses: string[] = []
      const isDead = (process: string): boolean => checkedProcesses.push(process) > 1
      expect(await take(ledger, TWO, NOW + 1, isDead)).toMatchObject({ granted: false })
      expect(await take(ledger, TWO, NOW + 1, isDead)).toMatchObject({ granted: true })
      expect(checkedProcesses).toEqual([ONE.process, ONE.process])
    })

    test('a lease of a process without identity ends only by time', async () => {
      const { ledger } = await open()
      await taken(ledger, { name: 'elsewhere', process: null })
      const grant = await take(ledger, TWO, NOW + 1, () => true)
      expect(grant).toMatchObject({ granted: false, heldBy: 'elsewhere' })
    })

    test('one of many concurrent requests gets the lease', async () => {
      const first = await open()
      const ledgers = [first, ...Array.from({ length: 4 }, () => first.another())]
      const grants = await Promise.all(ledgers.map(({ ledger }) => take(ledger, ONE, NOW)))
      expect(grants.filter(({ granted }) => granted)).toHaveLength(1)
    })

    test('a lease renewed in time runs from its renewal', async () => {
      const { ledger, token } = await leased()
      expect(await ledger.renewLease(token, NOW + FOR_MS - 1, FOR_MS)).toBe(true)
      const until = NOW + 2 * FOR_MS - 1
      expect(await take(ledger, TWO, NOW + FOR_MS)).toMatchObject({ heldBy: ONE.name, since: NOW, until })
    })

    test('a lease cannot be renewed after it has expired, been taken over or been released', async () => {
      const { ledger } = await open()
      const first = await taken(ledger, ONE)
      expect(await ledger.renewLease(first, NOW + FOR_MS, FOR_MS)).toBe(false)
      const second = await taken(ledger, TWO, NOW + FOR_MS)
      expect(await ledger.renewLease(first, NOW + FOR_MS, FOR_MS)).toBe(false)
      await ledger.releaseLease(second)
      expect(await ledger.renewLease(second, NOW + FOR_MS, FOR_MS)).toBe(false)
      expect(await ledger.renewLease('never a token', NOW, FOR_MS)).toBe(false)
    })

    test('a lease is released by its token only', async () => {
      const { ledger, token } = await leased()
      await ledger.releaseLease('never a token')
      expect(await take(ledger, TWO, NOW + 1)).toMatchObject({ granted: false })
      await ledger.releaseLease(token)
      expect(await take(ledger, TWO, NOW + 1)).toMatchObject({ granted: true })
      await ledger.releaseLease(token)
      expect(await take(ledger, ONE, NOW + 2)).toMatchObject({ granted: false, heldBy: TWO.name })
    })
  })

  describe(`attempts in ${engine}`, () => {
    const DAY = '2026-03-01'

    test('attempts are counted one by one, separately for each day, and all are read by day', async () => {
      const { ledger, another } = await open()
      expect([await ledger.attempts(DAY), await ledger.attempts()]).toEqual([[], []])
      const token = await taken(ledger, ONE)
      expect(await ledger.countAttempt(DAY, 1, NOW, token)).toBe(true)
      for (const day of ['2026-03-02', '2025-12-31'])
        expect(await ledger.countAttempt(day, 1, NOW + 1, token)).toBe(true)
      expect(await ledger.countAttempt(DAY, 2, NOW + 2, token)).toBe(true)
      const other = another().ledger
      expect(await other.attempts(DAY)).toEqual([
        { asOfDay: DAY, attempt: 1, startedAt: NOW, failedAt: null, reason: null },
        { asOfDay: DAY, attempt: 2, startedAt: NOW + 2, failedAt: null, reason: null },
      ])
      expect(await other.attempts('2026-03-02')).toHaveLength(1)
      const days = (await other.attempts()).map(({ asOfDay }) => asOfDay)
      expect(days).toEqual(['2025-12-31', DAY, DAY, '2026-03-02'])
    })

    test.each([
      ['a repeated one', [1], 1],
      ['one that leaves another out', [1], 3],
      ['a second before the first', [], 2],
      ['number 0', [], 0],
      ['a fourth of a day', [1, 2, 3], 4],
    ])('an attempt is not counted: %s', async (_what, counted, attempt) => {
      const { ledger, token } = await leased()
      for (const before of counted) await ledger.countAttempt(DAY, before, NOW, token)
      expect(await ledger.countAttempt(DAY, attempt, NOW + 1, token).catch(() => 'refused')).not.toBe(true)
      expect(await ledger.attempts(DAY)).toHaveLength(counted.length)
    })

    test('attempts are counted for the holder of the lease only', async () => {
      const { ledger } = await open()
      expect(await ledger.countAttempt(DAY, 1, NOW, 'never a token')).toBe(false)
      const token = await taken(ledger, ONE)
      expect(await ledger.countAttempt(DAY, 1, NOW + FOR_MS, token)).toBe(false)
      expect(await ledger.countAttempt(DAY, 1, NOW + FOR_MS - 1, token)).toBe(true)
      await ledger.releaseLease(token)
      expect(await ledger.countAttempt(DAY, 2, NOW, token)).toBe(false)
      expect(await ledger.attempts(DAY)).toHaveLength(1)
    })

    test('an attempt counted twice at the same time counts once', async () => {
      const opened = await open()
      const token = await taken(opened.ledger, ONE)
      const ledgers = [opened, opened.another(), opened.another()]
      const counted = await Promise.all(ledgers.map(({ ledger }) => ledger.countAttempt(DAY, 1, NOW, token)))
      expect(counted.sort()).toEqual([false, false, true])
      expect(await opened.ledger.attempts(DAY)).toHaveLength(1)
    })

    test('an attempt keeps the time and reason of its first failure', async () => {
      const { ledger, token } = await leased()
      await ledger.countAttempt(DAY, 1, NOW, token)
      await ledger.countAttempt(DAY, 2, NOW, token)
      await ledger.failAttempt(DAY, 1, NOW + 5, 'the source is gone')
      await ledger.failAttempt(DAY, 1, NOW + 6, 'another reason')
      expect(await ledger.attempts(DAY)).toEqual([
        { asOfDay: DAY, attempt: 1, startedAt: NOW, failedAt: NOW + 5, reason: 'the source is gone' },
        { asOfDay: DAY, attempt: 2, startedAt: NOW, failedAt: null, reason: null },
      ])
    })
  })
}
