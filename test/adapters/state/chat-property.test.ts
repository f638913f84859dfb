import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { database } from '../../../src/adapters/sqlite/database.ts'
import { migrationsOf } from '../../../src/adapters/sqlite/migrate.ts'
import { libsqlChatLedger } from '../../../src/adapters/state/chat-ledger.ts'
import { dayOf } from '../../../src/domain/time.ts'
import { claimOf, extensionOf, NEXT_MIDNIGHT } from './chat-claims.ts'
import { naiveAdmission, naiveExtension } from './naive-admission.ts'
import type { NaiveTurn } from './naive-admission.ts'

const LEASE_MS = 40_000

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('admit' as const),
      afterMs: fc.integer({ min: 0, max: 12_000 }),
      session: fc.integer({ min: 0, max: 3 }),
      address: fc.integer({ min: 0, max: 3 }),
      server: fc.integer({ min: 0, max: 1 }),
      withTools: fc.integer({ min: 0, max: 300 }),
      withoutTools: fc.integer({ min: 0, max: 120 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      which: fc.nat(20),
      cost: fc.integer({ min: 0, max: 200 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('extend' as const),
      which: fc.nat(6),
      upTo: fc.integer({ min: 0, max: 600 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
)

/** Most limits hold nobody back, so that each of them does on its own now and then. */
const seldom = (tight: fc.Arbitrary<number>, wide: number) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(wide) }, { weight: 1, arbitrary: tight })

const limits = fc.record({
  messagesPerSession: seldom(fc.integer({ min: 0, max: 6 }), 100),
  messagesPerDay: seldom(fc.integer({ min: 0, max: 9 }), 100),
  burstPerMinute: seldom(fc.integer({ min: 0, max: 5 }), 100),
  minGapMs: seldom(fc.integer({ min: 1, max: 10_000 }), 0),
  maxOpenTurns: seldom(fc.integer({ min: 1, max: 6 }), 100),
  budgetPerDay: seldom(fc.integer({ min: 0, max: 2_000 }), 1_000_000),
  budgetShare: seldom(fc.integer({ min: 1, max: 1_000_000 }), 1_000_000),
})

/** Nothing but the rows: what `chat_days` has to agree with. */
const SUMS = `
  SELECT day, sum(coalesce(cost, 0)) AS settled, sum(CASE WHEN cost IS NULL THEN reserved ELSE 0 END) AS reserved
  FROM chat_turns GROUP BY day ORDER BY day`

test('after any interleaving the totals are the sums of the turns, and each admission is by the plain rules', async () => {
  const state = database({
    location: { url: ':memory:', authToken: null },
    store: 'state',
    migrationsFolder: migrationsOf('state'),
    nativeBusyMs: 10,
    retryMs: 1_000,
  })
  onTestFinished(() => state.close())
  const ledger = libsqlChatLedger(state)
  let refusals = 0
  let admissions = 0
  let extensions = 0
  await fc.assert(
    fc.asyncProperty(
      limits,
      fc.array(step, { minLength: 10, maxLength: 40, size: 'max' }),
      async (given, steps) => {
        await state.use(({ client }) =>
          client.batch(['DELETE FROM chat_turns', 'DELETE FROM chat_days'], 'write'),
        )
        const turns: (NaiveTurn & { id: string })[] = []
        // So that midnight comes in the middle.
        let now = NEXT_MIDNIGHT - 60_000
        const sweep = (): void => {
          for (const turn of turns) {
            if (turn.cost === null && turn.claim.now + LEASE_MS <= now) turn.cost = turn.reserved
          }
        }
        for (const each of steps) {
          if (each.do === 'sweep') {
            sweep()
            await ledger.sweep(now, dayOf(now - 86_400_000))
          } else if (each.do === 'settle') {
            const turn = turns[each.which]
            if (!turn) continue
            expect(await ledger.settle(turn.id, each.cost, now)).toBe(turn.cost === null)
            turn.cost ??= each.cost
          } else if (each.do === 'extend') {
            const turn = turns[each.which]
            if (!turn) continue
            const extended = naiveExtension(turns, turn, each.upTo)
            expect(await ledger.extend(extensionOf(turn.id, each.upTo, given))).toBe(extended)
            if (extended) turn.reserved = Math.max(turn.reserved, each.upTo)
            if (extended) extensions += 1
          } else {
            now += each.afterMs
            sweep()
            const day = dayOf(now)
            const isNew = now >= NEXT_MIDNIGHT
            const claim = claimOf({
              session: `s${each.session}`,
              address: `${day}-${each.address}`,
              // Two addresses have a network in common, one is of IPv4.
              network: [null, 'n', 'n', 'm'][each.address] ?? null,
              formerAddress: isNew ? `${dayOf(now - 86_400_000)}-${each.address}` : null,
              server: `server${each.server}`,
              now,
              firstCall: {
                withTools: Math.max(each.withTools, each.withoutTools),
                withoutTools: each.withoutTools,
              },
              shortestCall: { withTools: 30, withoutTools: 20 },
              leaseMs: LEASE_MS,
              limits: given,
            })
            const expected = naiveAdmission(turns, claim)
            const admission = await ledger.admit(claim)
            expect(admission).toMatchObject(expected)
            if (admission.admitted)
              turns.push({ id: admission.turn, claim, reserved: admission.reserved, cost: null })
            if (admission.admitted) admissions += 1
            else refusals += 1
          }
          const { rows } = await state.use(({ client }) => client.execute(SUMS))
          for (const { day, settled, reserved } of rows) {
            expect(await ledger.spending(day as string)).toEqual({ settled, reserved })
          }
        }
      },
    ),
    { numRuns: 60 },
  )
  expect(admissions).toBeGreaterThan(100)
  expect(extensions).toBeGreaterThan(10)
  expect(refusals).toBeGreaterThan(100)
})
