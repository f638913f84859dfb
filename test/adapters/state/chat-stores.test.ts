import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import type { ChatLimits, TurnClaim } from '../../../src/domain/agent/bounds.ts'
import { budgetState } from '../../../src/domain/agent/budget.ts'
import { addDays, dayOf, startOfDay } from '../../../src/domain/time.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { answerCacheContract } from './answer-cache-contract.ts'
import { admitted, claimOf, DAY, NOW, extensionOf, NEXT_MIDNIGHT } from './chat-claims.ts'
import { chatKeysContract } from './chat-keys-contract.ts'
import { chatLedgerContract } from './chat-ledger-contract.ts'
import { connectChat, chatInFile, connectEvaluations } from './open-chat.ts'
import type { OpenState } from './open-chat.ts'

interface StateFile extends OpenState {
  path: string
  /** Simulates a power cut that keeps only the first bytes of the log. */
  cut(logBytes: number): Promise<OpenState>
}

async function openFile(): Promise<StateFile> {
  const folder = temporaryFolder()
  const path = join(folder, 'state.db')
  const opened = connectChat(pathToFileURL(path).href)
  await opened.ledger.ping()
  let cuts = 0
  return {
    ...opened,
    path,
    async cut(logBytes) {
      cuts += 1
      const copy = join(folder, `cut-${cuts}.db`)
      copyFileSync(path, copy)
      writeFileSync(`${copy}-wal`, readFileSync(`${path}-wal`).subarray(0, logBytes))
      return connectChat(pathToFileURL(copy).href)
    },
  }
}

test('a power cut within the log leaves whole transactions, correct totals and no damage', async () => {
  const { ledger, path, cut } = await openFile()
  await ledger.sweep(NOW, DAY)
  for (let turn = 1; turn <= 8; turn += 1) await ledger.settle(await admitted(ledger), turn, NOW)
  const size = statSync(`${path}-wal`).size
  const seen = new Set<number>()
  for (let part = 0; part <= 24; part += 1) {
    const { ledger: left, database } = await cut(Math.floor((size * part) / 24))
    const spent = await left.spending(DAY)
    const { rows } = await database.use((client) =>
      client.execute(
        `SELECT coalesce(sum(cost), 0) AS settled,
          coalesce(sum(CASE WHEN cost IS NULL THEN reserved END), 0) AS reserved FROM chat_turns`,
      ),
    )
    expect(spent).toEqual({ ...rows[0] })
    seen.add(spent.settled)
    expect(await left.admit(claimOf())).toMatchObject({ admitted: true })
  }
  expect(seen.size).toBeGreaterThan(4)
  expect(seen).toContain(36)
})

test('a long log is checkpointed by a sweep, once it has no reader', async () => {
  const { ledger, cache, database, path } = await openFile()
  const log = (): number => statSync(`${path}-wal`).size
  const text = 'x'.repeat(64 * 1024)
  while (log() < 33 * 1024 * 1024) await cache().put(`k${log()}`, { text, storedAt: NOW })
  const reader = createClient({ url: pathToFileURL(path).href })
  onTestFinished(() => reader.close())
  const reading = await reader.transaction('read')
  await reading.execute('SELECT count(*) FROM chat_turns')
  await admitted(ledger, { leaseMs: 1 })
  expect(await ledger.sweep(NOW + 1, DAY)).toBe(1)
  expect(log()).toBeGreaterThan(33 * 1024 * 1024)
  reading.close()
  await ledger.sweep(NOW + 1, DAY)
  expect(log()).toBe(0)
  const { rows } = await database.use((client) => client.execute('PRAGMA busy_timeout'))
  expect(rows[0]?.[0]).toBe(10)
  expect(await ledger.spending(DAY)).toEqual({ settled: 1_000, reserved: 0 })
})

test("an evaluation's writes beside the chat are durable at once, and visible to both", async () => {
  const { ledger, path, cut } = await openFile()
  await admitted(ledger)
  const { evaluations } = connectEvaluations(pathToFileURL(path).href)
  await evaluations.saveEndpoints([{ model: 'a/b:free', checkedAt: NOW, usable: true, latencyMs: null }])
  const left = await cut(statSync(`${path}-wal`).size)
  expect(await left.ledger.spending(DAY)).toEqual({ settled: 0, reserved: 1_000 })
  const { rows } = await left.database.use((client) =>
    client.execute('SELECT model FROM evaluation_endpoints'),
  )
  expect(rows).toHaveLength(1)
})

const LEASE_MS = 40_000

const atMost = (max: number) => fc.integer({ min: 0, max })

/** Multiples of a step, so that sums and times often meet their bounds exactly. */
const multiples = (step: number, most: number) => atMost(most).map((count) => count * step)

const admissions = fc.record({
  do: fc.constant('admit' as const),
  afterMs: fc.constantFrom(0, 0, 500, 5_000, 10_000, 20_000),
  session: atMost(3),
  address: atMost(3),
  server: atMost(1),
  withTools: multiples(50, 6),
  withoutTools: multiples(50, 2),
})
const settlement = fc.record({
  do: fc.constant('settle' as const),
  which: atMost(20),
  cost: multiples(50, 4),
})
const extension = fc.record({ do: fc.constant('extend' as const), which: atMost(6), upTo: multiples(50, 12) })

const step = fc.oneof(
  { weight: 6, arbitrary: admissions },
  { weight: 4, arbitrary: settlement },
  { weight: 3, arbitrary: extension },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
)

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** Most limits are loose, so that each of them takes effect alone now and then. */
const seldom = (tight: fc.Arbitrary<number>, wide: number) =>
  fc.oneof({ weight: 1, arbitrary: fc.constant(wide) }, { weight: 1, arbitrary: tight })

const limitsOf = fc.record({
  messagesPerSession: seldom(fc.integer({ min: 0, max: 6 }), 100),
  messagesPerDay: seldom(fc.integer({ min: 0, max: 9 }), 100),
  burstPerMinute: seldom(fc.integer({ min: 0, max: 5 }), 100),
  minGapMs: seldom(fc.constantFrom(500, 5_000, 10_000), 0),
  maxOpenTurns: seldom(fc.integer({ min: 1, max: 6 }), 100),
  budgetPerDay: seldom(multiples(250, 8), 1_000_000),
  budgetShare: seldom(multiples(100_000, 10), 1_000_000),
})

/** Sums of the rows, which `chat_days` must match. */
const SUMS = `
  SELECT day, sum(coalesce(cost, 0)) AS settled, sum(CASE WHEN cost IS NULL THEN reserved ELSE 0 END) AS reserved
  FROM chat_turns GROUP BY day ORDER BY day`

/** Runs steps on the ledger and on a plain list of turns, which must agree after each, and counts the steps. */
async function takeSteps(
  { ledger, database }: OpenState,
  limits: ChatLimits,
  steps: readonly Step[],
  done: Record<'admissions' | 'refusals' | 'extensions', number>,
): Promise<void> {
  const turns: (NaiveTurn & { id: string })[] = []
  // Midnight is in the middle of the run.
  let now = NEXT_MIDNIGHT - 60_000
  /** Settles the turns whose lease is over at what they reserved, and counts them. */
  const sweep = (): number => {
    const over = turns.filter(({ claim, cost }) => cost === null && claim.now + LEASE_MS <= now)
    for (const turn of over) turn.cost = turn.reserved
    return over.length
  }
  const admit = async (each: Step & { do: 'admit' }): Promise<void> => {
    now += each.afterMs
    sweep()
    const claim = claimAt(now, each, limits)
    const expected = naiveAdmission(turns, claim)
    const admission = await ledger.admit(claim)
    expect(admission).toMatchObject(expected)
    done[admission.admitted ? 'admissions' : 'refusals'] += 1
    if (admission.admitted)
      turns.push({ id: admission.turn, claim, reserved: admission.reserved, cost: null })
  }
  const extend = async (turn: NaiveTurn & { id: string }, upTo: number): Promise<void> => {
    const extended = naiveExtension(turns, turn, upTo)
    expect(await ledger.extend(extensionOf(turn.id, upTo, limits))).toBe(extended)
    if (!extended) return
    turn.reserved = Math.max(turn.reserved, upTo)
    done.extensions += 1
  }
  for (const each of steps) {
    const turn = 'which' in each ? turns[each.which] : undefined
    if (each.do === 'admit') await admit(each)
    else if (each.do === 'extend' && turn) await extend(turn, each.upTo)
    else if (each.do === 'settle' && turn) {
      expect(await ledger.settle(turn.id, each.cost, now)).toBe(turn.cost === null)
      turn.cost ??= each.cost
    } else if (each.do === 'sweep') {
      const swept = sweep()
      expect(await ledger.sweep(now, dayOf(now - 86_400_000))).toBe(swept)
    } else continue
    const { rows } = await database.use((client) => client.execute(SUMS))
    for (const { day, settled, reserved } of rows)
      expect(await ledger.spending(day as string)).toEqual({ settled, reserved })
  }
}

/** The claim of a step, whose address has another hash each day. */
function claimAt(now: number, each: Step & { do: 'admit' }, limits: ChatLimits): TurnClaim {
  const addressOn = (at: number): string => `${dayOf(at)}-${each.address}`
  return claimOf({
    session: `s${each.session}`,
    address: addressOn(now),
    // Two addresses have a network in common, one is of IPv4.
    network: [null, 'n', 'n', 'm'][each.address] ?? null,
    formerAddress: now >= NEXT_MIDNIGHT ? addressOn(now - 86_400_000) : null,
    server: `server${each.server}`,
    now,
    firstCall: {
      withTools: Math.max(each.withTools, each.withoutTools),
      withoutTools: each.withoutTools,
    },
    shortestCall: { withTools: 100, withoutTools: 50 },
    leaseMs: LEASE_MS,
    limits,
  })
}

test('after any interleaving the totals are the sums of the turns, and each admission follows the plain rules', async () => {
  const opened = await chatInFile()
  const done = { admissions: 0, refusals: 0, extensions: 0 }
  const manySteps = fc.array(step, { minLength: 10, maxLength: 40, size: 'max' })
  await fc.assert(
    fc.asyncProperty(limitsOf, manySteps, async (limits, steps) => {
      const empty = ['DELETE FROM chat_turns', 'DELETE FROM chat_days']
      await opened.database.use((client) => client.batch(empty, 'write'))
      await takeSteps(opened, limits, steps, done)
    }),
    { numRuns: 60 },
  )
  expect(done.admissions).toBeGreaterThan(60)
  expect(done.extensions).toBeGreaterThan(10)
  expect(done.refusals).toBeGreaterThan(60)
})

chatLedgerContract('a file', chatInFile)
answerCacheContract('a file', chatInFile)
chatKeysContract('a file', chatInFile)

/** A turn as a list remembers it. */
interface NaiveTurn {
  claim: TurnClaim
  reserved: number
  cost: number | null
}

/** Returns the amount that turns have reserved and spent. */
function takenBy(turns: readonly NaiveTurn[]): number {
  return turns.reduce((sum, { cost, reserved }) => sum + (cost ?? reserved), 0)
}

/** Returns the rest of the budget, and of the shares of an address and its network. */
function moneyLeft(turns: readonly NaiveTurn[], { limits, day, address, network }: TurnClaim): number[] {
  const today = turns.filter((turn) => turn.claim.day === day)
  const share = Math.floor((limits.budgetPerDay * limits.budgetShare) / 1_000_000)
  return [
    limits.budgetPerDay - takenBy(today),
    share >= limits.budgetPerDay
      ? Infinity
      : share - takenBy(today.filter((turn) => turn.claim.address === address)),
    network === null || 2 * share >= limits.budgetPerDay
      ? Infinity
      : 2 * share - takenBy(today.filter((turn) => turn.claim.network === network)),
  ]
}

/** When so many turns have ended that together they held enough; at the latest when a new day begins. */
function naiveFreeAt(turns: readonly NaiveTurn[], { day }: TurnClaim, needed: number): number {
  const midnight = startOfDay(addDays(day, 1))
  let held = 0
  for (const { claim, reserved, cost } of turns) {
    if (cost === null && claim.day === day) held += reserved
    if (held >= needed) return Math.min(claim.now + LEASE_MS, midnight)
  }
  return midnight
}

/** Admission by the plain rules over a plain list, without any thought of speed. */
function naiveAdmission(turns: readonly NaiveTurn[], claim: TurnClaim): object {
  const { limits, now, day, firstCall, shortestCall, sessionEndsAt } = claim
  const { budgetPerDay, burstPerMinute, minGapMs } = limits
  const those = (fit: (turn: TurnClaim) => boolean): NaiveTurn[] => turns.filter((turn) => fit(turn.claim))
  const today = those((turn) => turn.day === day)
  const settled = today.reduce((sum, { cost }) => sum + (cost ?? 0), 0)
  const addresses = new Set([claim.address, claim.formerAddress])
  const burst = those((turn) => addresses.has(turn.address) && turn.now > now - 60_000)
  const ofAddress = those((turn) => turn.address === claim.address && turn.day === day)
  const ofNetwork = those((turn) => claim.network !== null && turn.network === claim.network)
  const inSession = those((turn) => turn.session === claim.session)
  const open = those((turn) => turn.server === claim.server).filter(({ cost }) => cost === null)
  const lastAt = inSession.at(-1)?.claim.now ?? -Infinity
  const left = moneyLeft(turns, claim)
  const [missing = 0, missingOfAddress = 0, missingOfNetwork = 0] = left.map(
    (available) => firstCall.withoutTools - available,
  )
  const midnight = startOfDay(addDays(day, 1))
  const checks: [boolean, string, number][] = [
    [
      settled >= budgetPerDay || settled + shortestCall.withoutTools > budgetPerDay,
      'global-budget',
      midnight,
    ],
    [
      burst.length >= burstPerMinute,
      'ip',
      (burst.at(-Math.max(1, burstPerMinute))?.claim.now ?? now) + 60_000,
    ],
    [ofAddress.length >= limits.messagesPerDay, 'ip', midnight],
    [missingOfAddress > 0, 'ip', naiveFreeAt(ofAddress, claim, missingOfAddress)],
    [missingOfNetwork > 0, 'ip', naiveFreeAt(ofNetwork, claim, missingOfNetwork)],
    [inSession.length >= limits.messagesPerSession, 'session', sessionEndsAt],
    [lastAt > now - minGapMs, 'session', lastAt + minGapMs],
    [open.length >= limits.maxOpenTurns, 'global-budget', now + 5_000],
    [missing > 0, 'global-budget', naiveFreeAt(turns, claim, missing)],
  ]
  // The status agrees with the admission.
  const state = budgetState({ settled, reserved: takenBy(today) - settled }, budgetPerDay, shortestCall)
  expect(state === 'exhausted').toBe(checks[0]?.[0])
  const refusing = checks.filter(([refuses]) => refuses)
  const [first] = refusing
  if (first) {
    const [, scope] = first
    // A caller may have another session at once.
    const counted = refusing.filter(([, of]) => of !== 'session' || scope === 'session')
    const until = Math.max(...counted.map(([, , at]) => at))
    return { admitted: false, scope, retryAfterSeconds: Math.max(1, Math.ceil((until - now) / 1_000)) }
  }
  const isSoft = takenBy(today) >= 0.8 * budgetPerDay || settled + shortestCall.withTools > budgetPerDay
  if (isSoft) expect(state).toBe('soft')
  const degraded = isSoft || firstCall.withTools > Math.min(...left)
  return {
    admitted: true,
    degraded,
    reserved: degraded ? firstCall.withoutTools : firstCall.withTools,
    remaining: {
      session: limits.messagesPerSession - inSession.length - 1,
      day: limits.messagesPerDay - ofAddress.length - 1,
    },
  }
}

/** Returns whether a turn may reserve an amount, by the same rules. */
function naiveExtension(turns: readonly NaiveTurn[], turn: NaiveTurn, upTo: number): boolean {
  return (
    turn.cost === null &&
    Math.max(0, upTo - turn.reserved) <= Math.max(0, Math.min(...moneyLeft(turns, turn.claim)))
  )
}
