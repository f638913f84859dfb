import { describe, expect, test } from 'vitest'
import { EVALUATIONS_KEPT_DAYS } from '../../../src/domain/models/evaluation.ts'
import type {
  AttemptEnd,
  AttemptGuard,
  CountedAttempt,
  EndedRun,
} from '../../../src/domain/models/evaluation.ts'
import { RESERVED_REQUESTS } from '../../../src/domain/models/quota.ts'
import type { TaskResult } from '../../../src/domain/models/lite/suite.ts'
import type { State } from '../../../src/domain/ports.ts'
import { DAY_MS, dayOf } from '../../../src/domain/time.ts'
import type { StateOpener } from './open-chat.ts'

const NOW = Date.UTC(2026, 2, 1, 3)
const DAY = dayOf(NOW)
const MODEL = 'example/model-1:free'

const task = (points: number): TaskResult => ({
  id: 'babylonian_clock_lite',
  source: 'test',
  points,
  maxPoints: 100,
  score: points / 100,
  status: 'partial',
  details: { expected: '01:02:03', received: 'né "\\' },
})

const ANSWERED: AttemptEnd = {
  settledAt: NOW + 900,
  class: 'answered',
  status: null,
  latencyMs: 900,
  asAsked: false,
  tasks: [task(40)],
}

const ATTEMPT = { model: MODEL, kind: 'text', sentAt: NOW } as const

const RUN: EndedRun = {
  day: DAY,
  refreshMode: 'fullEval',
  startedAt: NOW,
  endedAt: NOW + 1_000,
  outcome: 'complete',
  rankingVersion: `${DAY}.v1`,
  startsAMinute: null,
  reason: null,
}

async function leased(evaluations: State['evaluations'], now = NOW): Promise<string> {
  const holder = { name: 'the test', process: null }
  const grant = await evaluations.takeLease(holder, now, 600_000, () => false)
  if (!grant.granted) throw new Error(`held by ${grant.heldBy}`)
  return grant.token
}

/** An open store with a lease. */
async function begun(open: StateOpener) {
  const opened = await open()
  return { ...opened, token: await leased(opened.evaluations) }
}

const guardOf = (token: string): AttemptGuard => ({ token, maxCountedBefore: null })

function numberOf(attempt: CountedAttempt): number {
  if ('counted' in attempt) return attempt.counted
  throw new Error(`refused: ${attempt.refused}`)
}

/** Contract of every state engine: attempts and their results. */
export function evaluationsContract(engine: string, open: StateOpener): void {
  describe(`the evaluations in ${engine}`, () => {
    test('an attempt is stored before it is sent, and its end afterwards, the later of two', async () => {
      const { evaluations, another, token } = await begun(open)
      const attempt = { model: MODEL, kind: 'tool' as const, sentAt: NOW }
      const id = numberOf(await evaluations.countAttempt(attempt, guardOf(token)))
      const stored = { id, ...attempt, day: DAY }
      expect(await another().evaluations.attemptsSince(NOW)).toEqual([{ ...stored, end: null }])
      await evaluations.settleAttempt(id, ANSWERED)
      expect(await another().evaluations.attemptsSince(NOW)).toEqual([{ ...stored, end: ANSWERED }])
      expect(await evaluations.attemptsSince(NOW + 1)).toEqual([])
      const later = { ...ANSWERED, class: 'account_minute', status: 429, asAsked: null, tasks: null } as const
      await evaluations.settleAttempt(id, later)
      expect(await evaluations.attemptsSince(NOW)).toMatchObject([{ end: later }])
    })

    test('the rate that runs learned is returned', async () => {
      const { evaluations, another } = await open()
      for (const [index, startsAMinute] of [null, 14, 17].entries())
        await evaluations.recordRun({ ...RUN, startedAt: NOW + index, startsAMinute })
      expect(await another().evaluations.lowestRateBetween(NOW, NOW + 2)).toBe(14)
      expect(await evaluations.lowestRateBetween(NOW + 2, NOW + 2)).toBe(17)
      expect(await evaluations.lowestRateBetween(NOW - 1, NOW)).toBeNull()
      expect(await evaluations.lowestRateBetween(NOW + 3, NOW + 4)).toBeNull()
    })

    test("no attempt is counted beyond the account's daily limit, including the chat", async () => {
      const { evaluations, allowance, another, token } = await begun(open)
      const guard = { ...guardOf(token), maxCountedBefore: 2 }
      const count = (model: string) => evaluations.countAttempt({ ...ATTEMPT, model }, guard)
      expect(await another().allowance.countChatRequest(MODEL, NOW, 50)).toBe(true)
      expect(await allowance.countChatRequest(MODEL, NOW - DAY_MS, 50)).toBe(true)
      expect(await count('a/1:free')).toHaveProperty('counted')
      expect(await count('a/2:free')).toHaveProperty('counted')
      expect(await count('a/3:free')).toEqual({ refused: 'day_spent' })
      expect(await evaluations.requestsSince(NOW)).toEqual([NOW, NOW, NOW])
    })

    test('no request of the chat is counted once both have reached the limit less the reserve', async () => {
      const { evaluations, allowance, another, token } = await begun(open)
      numberOf(await evaluations.countAttempt(ATTEMPT, guardOf(token)))
      expect(await allowance.countChatRequest(MODEL, NOW, RESERVED_REQUESTS)).toBe(false)
      const chat = (at: number): Promise<boolean> =>
        another().allowance.countChatRequest(MODEL, at, RESERVED_REQUESTS + 3)
      const counted = await Promise.all([chat(NOW + 1), chat(NOW + 2), chat(NOW + 3)])
      expect(counted.filter(Boolean)).toHaveLength(2)
      expect(await chat(NOW + 4)).toBe(false)
      expect(await chat(NOW + DAY_MS)).toBe(true)
      expect(await evaluations.requestsSince(NOW + 1)).toHaveLength(3)
    })

    test('an evaluation and the chat that count at the same time never exceed the limit together', async () => {
      const { evaluations, another, token } = await begun(open)
      const { allowance } = another()
      const guard = { ...guardOf(token), maxCountedBefore: 9 }
      const counted = Array.from({ length: 30 }, async (_, index) =>
        index % 2 === 0
          ? evaluations.countAttempt({ ...ATTEMPT, model: `a/${index}:free` }, guard)
          : allowance.countChatRequest(MODEL, NOW, RESERVED_REQUESTS + 10),
      )
      await Promise.all(counted)
      expect(await evaluations.requestsSince(0)).toHaveLength(10)
    })

    test('no attempt is counted without the lease', async () => {
      const { evaluations, token } = await begun(open)
      const refused = { refused: 'lease_lost' }
      expect(await evaluations.countAttempt(ATTEMPT, guardOf('another'))).toEqual(refused)
      const late = { ...ATTEMPT, sentAt: NOW + 600_000 }
      expect(await evaluations.countAttempt(late, guardOf(token))).toEqual(refused)
    })

    test('a sweep ends the open attempts of interrupted runs, and nothing else', async () => {
      const { evaluations, token } = await begun(open)
      const guard = guardOf(token)
      const settled = numberOf(await evaluations.countAttempt(ATTEMPT, guard))
      await evaluations.settleAttempt(settled, ANSWERED)
      await evaluations.countAttempt({ model: MODEL, kind: 'tool', sentAt: NOW }, guard)
      expect(await evaluations.sweep(NOW + 5)).toBe(1)
      expect(await evaluations.attemptsSince(NOW)).toMatchObject([
        { end: ANSWERED },
        { end: { class: 'abandoned', settledAt: NOW + 5 } },
      ])
      expect(await evaluations.sweep(NOW + 6)).toBe(0)
    })

    test('the latest endpoints of each model are kept', async () => {
      const { evaluations, another } = await open()
      const record = { model: MODEL, checkedAt: NOW, usable: true, latencyMs: 700 }
      await evaluations.saveEndpoints([])
      await evaluations.saveEndpoints([record, { ...record, model: 'a/b:free', checkedAt: NOW - 5 }])
      const later = { ...record, checkedAt: NOW + 5, usable: false, latencyMs: null }
      await evaluations.saveEndpoints([later])
      expect(await another().evaluations.endpointsSince(NOW)).toEqual([later])
    })

    test(`the newest ${EVALUATIONS_KEPT_DAYS} days with requests are kept, whatever the clock says`, async () => {
      const { evaluations, allowance } = await open()
      const count = async (sentAt: number): Promise<void> => {
        const token = await leased(evaluations, sentAt)
        numberOf(await evaluations.countAttempt({ model: MODEL, kind: 'tool', sentAt }, guardOf(token)))
        await allowance.countChatRequest(MODEL, sentAt, 50)
      }
      const old = NOW - 365 * DAY_MS
      for (let day = 1; day < EVALUATIONS_KEPT_DAYS; day += 1) await count(NOW + day * DAY_MS)
      await count(old)
      await evaluations.sweep(NOW)
      expect(await evaluations.attemptsSince(0)).toHaveLength(EVALUATIONS_KEPT_DAYS)
      expect(await evaluations.requestsSince(0)).toHaveLength(2 * EVALUATIONS_KEPT_DAYS)
      await count(NOW)
      await evaluations.sweep(NOW)
      const kept = await evaluations.requestsSince(0)
      expect(kept).toHaveLength(2 * EVALUATIONS_KEPT_DAYS)
      expect(kept).not.toContain(old)
    })
  })
}
