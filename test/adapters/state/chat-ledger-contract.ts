import { describe, expect, test } from 'vitest'
import { addDays, DAY_MS } from '../../../src/domain/time.ts'
import { admitted, claimOf, DAY, extensionOf, NEXT_MIDNIGHT, NOW, spend } from './chat-claims.ts'
import type { StateOpener } from './open-chat.ts'

const UNTIL_MIDNIGHT = (NEXT_MIDNIGHT - NOW) / 1000

const refusal = (scope: string, retryAfterSeconds: number): object => ({
  admitted: false,
  scope,
  retryAfterSeconds,
})

/** Contract of every state engine: quotas, money and salts. */
export function chatLedgerContract(engine: string, open: StateOpener): void {
  quotaContract(engine, open)
  moneyContract(engine, open)
  shareContract(engine, open)
  callerContract(engine, open)
}

function quotaContract(engine: string, open: StateOpener): void {
  describe(`the chat's quotas in ${engine}`, () => {
    test.each([
      ['burst', { address: 'a', limits: { burstPerMinute: 1 } }, 'ip'],
      ['gap', { session: 's', limits: { minGapMs: 1_000 } }, 'session'],
    ])(
      'the %s counts turns by a clock that was ahead only while they are less than a minute ahead',
      async (_limit, caller, scope) => {
        const { ledger } = await open()
        await admitted(ledger, { ...caller, now: NOW + 3_600_000 })
        await admitted(ledger, { ...caller, now: NOW + 59_999 })
        expect(await ledger.admit(claimOf(caller))).toMatchObject({ admitted: false, scope })
        await admitted(ledger, { ...caller, now: NOW - 1 })
      },
    )
  })
}

function moneyContract(engine: string, open: StateOpener): void {
  describe(`the chat's money in ${engine}`, () => {
    test('a turn is charged once, to the day of its admission', async () => {
      const { ledger, another } = await open()
      const turn = await admitted(ledger, { now: NEXT_MIDNIGHT - 1 })
      const settled = await Promise.all([
        ledger.settle(turn, 400, NEXT_MIDNIGHT + 5),
        another().ledger.settle(turn, 500, NEXT_MIDNIGHT + 5),
      ])
      expect(settled.filter(Boolean)).toHaveLength(1)
      const { settled: cost, reserved } = await ledger.spending(DAY)
      expect([400, 500]).toContain(cost)
      expect(reserved).toBe(0)
      expect(await ledger.spending('2026-03-02')).toEqual({ settled: 0, reserved: 0 })
      expect(await ledger.settle('unheard', 1, NOW)).toBe(false)
    })

    test('fractional micro-dollars and negative costs are refused', async () => {
      const { ledger } = await open()
      const turn = await admitted(ledger)
      await expect(ledger.settle(turn, 0.5, NOW)).rejects.toThrow()
      await expect(ledger.settle(turn, -1, NOW)).rejects.toThrow()
      expect(await ledger.spending(DAY)).toEqual({ settled: 0, reserved: 1_000 })
    })
  })
}

function shareContract(engine: string, open: StateOpener): void {
  describe(`the share of an address in ${engine}`, () => {
    const limits = { budgetPerDay: 10_000, budgetShare: 200_000 }

    test('the share is never exceeded, for any number of concurrent admissions and extensions', async () => {
      const { ledger, another } = await open()
      const others = [ledger, another().ledger, another().ledger]
      const admissions = await Promise.all(
        Array.from({ length: 30 }, async (_, index) => {
          const store = others[index % 3] ?? ledger
          const claim = claimOf({ address: `share-${index % 2}`, limits })
          const admission = await store.admit(claim)
          if (!admission.admitted) return 0
          const extended = await store.extend(extensionOf(admission.turn, 1_300, limits))
          return extended ? 1_300 : admission.reserved
        }),
      )
      const held = admissions.reduce((sum, each) => sum + each, 0)
      expect(held).toBeGreaterThan(2_000)
      expect(held).toBeLessThanOrEqual(4_000)
      expect(await ledger.spending(DAY)).toEqual({ settled: 0, reserved: held })
    })
  })

  describe(`the share of an address in the requests of a day, in ${engine}`, () => {
    const free = {
      firstCall: { withTools: 0, withoutTools: 0 },
      shortestCall: { withTools: 0, withoutTools: 0 },
    }

    test('the share limits admissions, with a request for each open turn, and requests', async () => {
      const { ledger, allowance } = await open()
      const send = (turn: string) =>
        allowance.countChatRequest('a/b:free', NOW, 1_000, { turn, perAddress: 3 })
      const mine = { ...free, address: 'a', requestsPerAddress: 3, leaseMs: 60_500 }
      const first = await admitted(ledger, mine)
      expect([await send(first), await send(first)]).toEqual([true, true])
      // The last request is reserved for an answer without tools.
      expect(await ledger.admit(claimOf(mine))).toMatchObject({ admitted: true, degraded: true })
      expect(await ledger.admit(claimOf(mine))).toEqual(refusal('ip', 61))
      expect(await send(first)).toBe(true)
      expect(await send(first)).toBe(false)
      expect(await ledger.admit(claimOf(mine))).toEqual(refusal('ip', UNTIL_MIDNIGHT))
      expect(await ledger.admit(claimOf({ ...mine, address: 'b' }))).toMatchObject({ degraded: false })
      expect(await ledger.admit(claimOf({ ...mine, now: NEXT_MIDNIGHT }))).toMatchObject({ degraded: false })
    })

    test('the share is twice as much for all addresses of a /48 together', async () => {
      const { ledger, allowance } = await open()
      const turns = []
      for (const address of ['a', 'b', 'c'])
        turns.push(await admitted(ledger, { ...free, address, network: 'n', requestsPerAddress: 2 }))
      const sent = []
      for (const turn of [...turns, ...turns])
        sent.push(await allowance.countChatRequest('a/b:free', NOW, 1_000, { turn, perAddress: 2 }))
      expect(sent).toEqual([true, true, true, true, false, false])
      const claim = claimOf({ ...free, address: 'd', network: 'n', requestsPerAddress: 2 })
      expect(await ledger.admit(claim)).toEqual(refusal('ip', UNTIL_MIDNIGHT))
    })

    test('the share limits the rounds with tools: a last request stays for the call without them', async () => {
      const { ledger, allowance } = await open()
      const turn = await admitted(ledger, { ...free, requestsPerAddress: 3 })
      const extend = () => ledger.extend(extensionOf(turn, 0, {}, 3))
      const send = () => allowance.countChatRequest('a/b:free', NOW, 1_000, { turn, perAddress: 3 })
      expect([await send(), await extend(), await send(), await extend(), await send()]).toEqual([
        true,
        true,
        true,
        false,
        true,
      ])
    })
  })
}

function callerContract(engine: string, open: StateOpener): void {
  describe(`the data about callers in ${engine}`, () => {
    test('a day has one random salt, from any number of creators', async () => {
      const { ledger, another } = await open()
      expect(await ledger.salt(DAY)).toBeNull()
      const [first, ...others] = await Promise.all(
        [ledger, another().ledger, another().ledger].map((each) => each.makeSalt(DAY)),
      )
      expect(first).toHaveLength(32)
      for (const other of others) expect(other).toEqual(first)
      expect(await ledger.salt(DAY)).toEqual(first)
      expect(await ledger.makeSalt(addDays(DAY, 1))).not.toEqual(first)
      expect(await ledger.salt(DAY)).toEqual(first)
    })

    test('the data about callers are deleted when no token of the day is valid any more, and the money is kept', async () => {
      const { ledger } = await open()
      await ledger.makeSalt(DAY)
      await spend(ledger, 700)
      await admitted(ledger, { leaseMs: 3 * DAY_MS })
      const rows = { session: 's', limits: { messagesPerSession: 1 } }
      await ledger.settle(await admitted(ledger, rows), 5, NOW)
      await ledger.sweep(NOW + DAY_MS, DAY)
      expect(await ledger.salt(DAY)).not.toBeNull()
      expect(await ledger.admit(claimOf({ ...rows, now: NOW + DAY_MS }))).toMatchObject({ admitted: false })
      await ledger.sweep(NOW + DAY_MS, addDays(DAY, 1))
      expect(await ledger.salt(DAY)).toBeNull()
      expect(await ledger.admit(claimOf({ ...rows, now: NOW + DAY_MS }))).toMatchObject({ admitted: true })
      expect(await ledger.spending(DAY)).toEqual({ settled: 705, reserved: 1_000 })
    })
  })
}
