import { describe, expect, test } from 'vitest'
import type { ChatLimits } from '../../../src/domain/agent/bounds.ts'
import { addDays, DAY_MS } from '../../../src/domain/time.ts'
import { admitted, claimOf, DAY, extensionOf, NEXT_MIDNIGHT, NOW, spend } from './chat-claims.ts'
import type { ClaimChanges } from './chat-claims.ts'
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

/** An earlier turn, which is open unless it has a cost. */
type Earlier = ClaimChanges & { cost?: number }

/** A turn of a caller of its own unless `caller` names one. @param ms when it was admitted, from now */
const past = (ms: number, caller: Earlier = {}): Earlier => ({ ...caller, now: NOW + ms })
const by = (limits: Partial<ChatLimits>, claim: ClaimChanges = {}): ClaimChanges => ({ ...claim, limits })

const A = { address: 'a' }
const B = { address: 'b' }
const N = { network: 'n' }
const S = { session: 's', sessionEndsAt: NOW + 90_500 }
const LATE = NEXT_MIDNIGHT - 10_000
const TO_LATE = LATE - NOW
const NEXT_DAY = { now: NEXT_MIDNIGHT + 20_000, address: 'b', formerAddress: 'a' }
/** A call that costs less, and the same with tools. */
const CALL = { withTools: 200, withoutTools: 200 }
const CHEAP = { firstCall: CALL, shortestCall: CALL }
const ADMITTED = { admitted: true, degraded: false, reserved: 1_000 }
const DEGRADED = { admitted: true, degraded: true, reserved: 300 }
/** An address may have a fifth: two turns of 1,000 each. */
const SHARE = { budgetPerDay: 10_000, budgetShare: 200_000 }
/** The turns of three addresses of a network that together have taken its share. */
const OF_NETWORK = ['a', 'a', 'b', 'c'].map((address, index) =>
  past(index, { ...N, address, ...(index === 3 && { cost: 1_000 }) }),
)

const byIp = (seconds: number): object => refusal('ip', seconds)
const bySession = (seconds: number): object => refusal('session', seconds)
const byAll = (seconds: number): object => refusal('global-budget', seconds)

/** Earlier turns, the next claim and its admission. A call costs 1,000 with tools and 300 without, a lease is 120 s. */
const QUOTAS: [limit: string, earlier: Earlier[], claim: ClaimChanges, admission: object][] = [
  ['a burst', [past(-50_000, A), past(-20_000, A)], by({ burstPerMinute: 2 }, A), byIp(10)],
  ['a burst that ended', [past(-60_000, A)], by({ burstPerMinute: 1 }, A), ADMITTED],
  ['the burst of another address', [past(0, A)], by({ burstPerMinute: 1 }, B), ADMITTED],
  ['a burst across midnight', [past(TO_LATE, A)], by({ burstPerMinute: 1 }, NEXT_DAY), byIp(30)],
  ['no burst', [], by({ burstPerMinute: 0 }), byIp(60)],
  ['the day of an address', [past(0, A)], by({ messagesPerDay: 1 }, A), byIp(UNTIL_MIDNIGHT)],
  ['the day before', [past(0, B)], by({ messagesPerDay: 1 }, NEXT_DAY), ADMITTED],
  ['a session', [past(0, S)], by({ messagesPerSession: 1 }, S), bySession(91)],
  ['the gap of a session', [past(-20_000, S), past(-3_500, S)], by({ minGapMs: 5_000 }, S), bySession(2)],
  ['a gap that ended', [past(-5_000, S)], by({ minGapMs: 5_000 }, S), ADMITTED],
  ['the turns of a server', [past(0)], by({ maxOpenTurns: 1 }), byAll(5)],
  ['a turn of another server', [past(0, { server: 'b' })], by({ maxOpenTurns: 1 }), ADMITTED],
  ['an ended turn of a server', [past(0, { cost: 1 })], by({ maxOpenTurns: 1 }), ADMITTED],
  ['an expired turn of a server', [past(-120_000)], by({ maxOpenTurns: 1 }), ADMITTED],
  [
    'a spent budget, before the burst',
    [past(0, { ...A, cost: 701 })],
    by({ budgetPerDay: 1_000, burstPerMinute: 1 }, A),
    byAll(UNTIL_MIDNIGHT),
  ],
  ['the rest of a budget', [past(0, { cost: 700 })], by({ budgetPerDay: 1_000 }), DEGRADED],
  [
    'a budget spent and held',
    [past(-70_000), past(0, { cost: 1_000 })],
    by({ budgetPerDay: 2_299 }),
    byAll(50),
  ],
  ['a budget held by two', [past(-70_000), past(0)], by({ budgetPerDay: 1_000 }), byAll(120)],
  ['a budget held at midnight', [past(TO_LATE)], by({ budgetPerDay: 1_200 }, { now: LATE }), byAll(10)],
  [
    'one held since',
    [past(TO_LATE), past(TO_LATE + 10_000)],
    by({ budgetPerDay: 1_200 }, NEXT_DAY),
    byAll(100),
  ],
  ['four fifths of a budget', [past(0)], by({ budgetPerDay: 1_250 }, CHEAP), { degraded: true }],
  ['less than four fifths', [past(0)], by({ budgetPerDay: 1_251 }, CHEAP), { degraded: false }],
  ['a share', [past(-99_000), past(-70_000, A), past(0, { ...A, cost: 1_000 })], by(SHARE, A), byIp(50)],
  ['the share of another address', [past(0, A), past(0, A)], by(SHARE, B), ADMITTED],
  ['the rest of a share', [past(0, A), past(0, { ...A, cost: 1 })], by(SHARE, A), DEGRADED],
  ['the share of a network', [past(-99_000), ...OF_NETWORK], by(SHARE, { ...N, address: 'd' }), byIp(120)],
  ['the share of another network', OF_NETWORK, by(SHARE, { network: 'm' }), ADMITTED],
]

function quotaContract(engine: string, open: StateOpener): void {
  describe(`the chat's quotas in ${engine}`, () => {
    test.each(QUOTAS)('a claim is answered by the limits: %s', async (_limit, earlier, claim, admission) => {
      const { ledger } = await open()
      for (const { cost, ...changes } of earlier) {
        const id = await admitted(ledger, changes)
        if (cost !== undefined) await ledger.settle(id, cost, changes.now ?? NOW)
      }
      expect(await ledger.admit(claimOf(claim))).toMatchObject(admission)
    })

    test('a refusal names the first limit and waits for all of them, for the session only if it is the first', async () => {
      const { ledger } = await open()
      const caller = { ...A, ...S }
      await admitted(ledger, { ...caller, leaseMs: 90_000 })
      const claim = (limits: Partial<ChatLimits>) => ledger.admit(claimOf(by(limits, caller)))
      const session = { messagesPerSession: 1, minGapMs: 5_000 }
      expect(await claim({ burstPerMinute: 1, ...session })).toEqual(byIp(60))
      expect(await claim(session)).toEqual(bySession(91))
      expect(await claim({ minGapMs: 5_000, budgetPerDay: 1_200 })).toEqual(bySession(90))
      const remaining = { session: 8, day: 18 }
      expect(await claim({ messagesPerSession: 10, messagesPerDay: 20 })).toMatchObject({ remaining })
    })

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

    test('an open turn may reserve more within the budget and its shares, and its day counts that once', async () => {
      const { ledger } = await open()
      const id = await admitted(ledger, { ...A, ...N })
      await admitted(ledger, { ...B, ...N, firstCall: { withTools: 2_000, withoutTools: 300 } })
      const extend = (upTo: number, limits: Partial<ChatLimits> = {}) =>
        ledger.extend(extensionOf(id, upTo, limits))
      expect(await extend(1_501, { budgetPerDay: 3_500 })).toBe(false)
      expect(await extend(1_500, { budgetPerDay: 3_500 })).toBe(true)
      // The address has 1,100 left and its network 1,700, then the address 400 and its network 300.
      expect(await extend(2_601, { budgetPerDay: 10_000, budgetShare: 260_000 })).toBe(false)
      expect(await extend(1_801, { budgetPerDay: 10_000, budgetShare: 190_000 })).toBe(false)
      expect(await extend(500, { budgetPerDay: 1_000 })).toBe(true)
      expect(await ledger.spending(DAY)).toEqual({ settled: 0, reserved: 3_500 })
      await ledger.settle(id, 700, NOW)
      expect([await extend(1_600), await ledger.settle(id, 1, NOW)]).toEqual([false, false])
      expect(await ledger.spending(DAY)).toEqual({ settled: 700, reserved: 2_000 })
      expect(await ledger.sweep(NOW + 120_000, DAY)).toBe(1)
      expect(await ledger.spending(DAY)).toEqual({ settled: 2_700, reserved: 0 })
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
      expect(await ledger.admit(claimOf(mine))).toEqual(byIp(61))
      expect(await send(first)).toBe(true)
      expect(await send(first)).toBe(false)
      expect(await ledger.admit(claimOf(mine))).toEqual(byIp(UNTIL_MIDNIGHT))
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
      expect(await ledger.admit(claim)).toEqual(byIp(UNTIL_MIDNIGHT))
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
      await admitted(ledger)
      const rows = { session: 's', limits: { messagesPerSession: 1 } }
      await ledger.settle(await admitted(ledger, rows), 5, NOW)
      await ledger.sweep(NOW + DAY_MS, DAY)
      expect(await ledger.salt(DAY)).not.toBeNull()
      expect(await ledger.admit(claimOf({ ...rows, now: NOW + DAY_MS }))).toMatchObject({ admitted: false })
      await ledger.sweep(NOW + DAY_MS, addDays(DAY, 1))
      expect(await ledger.salt(DAY)).toBeNull()
      expect(await ledger.admit(claimOf({ ...rows, now: NOW + DAY_MS }))).toMatchObject({ admitted: true })
      expect(await ledger.spending(DAY)).toEqual({ settled: 1_705, reserved: 1_000 })
    })
  })
}
