import { describe, expect, test } from 'vitest'
import { EVALUATIONS_KEPT_DAYS } from '../../../src/domain/models/evaluation.ts'
import type {
  AttemptEnd,
  AttemptGuard,
  CountedAttempt,
  DayScore,
  RunEnd,
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

const END: RunEnd = {
  endedAt: NOW + 1000,
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

function begin(evaluations: State['evaluations'], startedAt = NOW): Promise<number> {
  return evaluations.beginRun({ day: dayOf(startedAt), refreshMode: 'fullEval', startedAt })
}

/** An open store with a lease and a run. */
async function begun(open: StateOpener) {
  const opened = await open()
  const token = await leased(opened.evaluations)
  return { ...opened, token, run: await begin(opened.evaluations) }
}

const guardOf = (token: string): AttemptGuard => ({ token, maxCountedBefore: null })

function numberOf(attempt: CountedAttempt): number {
  if ('counted' in attempt) return attempt.counted
  throw new Error(`refused: ${attempt.refused}`)
}

/** Contract of every state engine: runs, attempts and scores. */
export function evaluationsContract(engine: string, open: StateOpener): void {
  describe(`the evaluations in ${engine}`, () => {
    test('an attempt is stored before it is sent, and its end afterwards', async () => {
      const { evaluations, another, token, run } = await begun(open)
      const attempt = { run, model: MODEL, kind: 'tool' as const, sentAt: NOW }
      const id = numberOf(await evaluations.countAttempt(attempt, guardOf(token)))
      expect(await another().evaluations.attemptsSince(NOW)).toEqual([
        { id, ...attempt, day: DAY, end: null },
      ])
      await evaluations.settleAttempt(id, ANSWERED)
      expect(await another().evaluations.attemptsSince(NOW)).toEqual([
        { id, ...attempt, day: DAY, end: ANSWERED },
      ])
      expect(await evaluations.attemptsSince(NOW + 1)).toEqual([])
    })

    test('the later end of an attempt counts', async () => {
      const { evaluations, token, run } = await begun(open)
      const attempt = { run, model: MODEL, kind: 'text' as const, sentAt: NOW }
      const id = numberOf(await evaluations.countAttempt(attempt, guardOf(token)))
      const ambiguous = { ...ANSWERED, class: 'ambiguous', status: 429, asAsked: null, tasks: null } as const
      await evaluations.settleAttempt(id, ambiguous)
      await evaluations.settleAttempt(id, { ...ambiguous, class: 'account_minute' })
      expect(await evaluations.attemptsSince(NOW)).toMatchObject([
        { end: { class: 'account_minute', status: 429 } },
      ])
    })

    test("no attempt is counted beyond the account's daily limit, including the chat", async () => {
      const { evaluations, allowance, another, token, run } = await begun(open)
      const count = (model: string): Promise<CountedAttempt> =>
        evaluations.countAttempt(
          { run, model, kind: 'text', sentAt: NOW },
          { ...guardOf(token), maxCountedBefore: 2 },
        )
      expect(await another().allowance.countChatRequest(MODEL, NOW, 50)).toBe(true)
      expect(await allowance.countChatRequest(MODEL, NOW - DAY_MS, 50)).toBe(true)
      expect(await count('a/1:free')).toHaveProperty('counted')
      expect(await count('a/2:free')).toHaveProperty('counted')
      expect(await count('a/3:free')).toEqual({ refused: 'day_spent' })
      expect(await evaluations.chatRequestsSince(NOW)).toEqual([NOW])
    })

    test('no request of the chat is counted once both have reached the limit less the reserve', async () => {
      const { evaluations, allowance, another, token, run } = await begun(open)
      const attempt = { run, model: MODEL, kind: 'text' as const, sentAt: NOW }
      numberOf(await evaluations.countAttempt(attempt, guardOf(token)))
      expect(await allowance.countChatRequest(MODEL, NOW, RESERVED_REQUESTS)).toBe(false)
      const chat = (at: number): Promise<boolean> =>
        another().allowance.countChatRequest(MODEL, at, RESERVED_REQUESTS + 3)
      expect(await Promise.all([chat(NOW + 1), chat(NOW + 2), chat(NOW + 3)])).toEqual(
        expect.arrayContaining([true, true, false]),
      )
      expect(await chat(NOW + 4)).toBe(false)
      expect(await chat(NOW + DAY_MS)).toBe(true)
      expect(await evaluations.chatRequestsSince(NOW)).toHaveLength(3)
    })

    test('no attempt is counted without the lease', async () => {
      const { evaluations, token, run } = await begun(open)
      const attempt = { run, model: MODEL, kind: 'text' as const, sentAt: NOW }
      const refused = { refused: 'lease_lost' }
      expect(await evaluations.countAttempt(attempt, guardOf('another'))).toEqual(refused)
      const late = { ...attempt, sentAt: NOW + 600_000 }
      expect(await evaluations.countAttempt(late, guardOf(token))).toEqual(refused)
    })

    test('a sweep ends the runs of killed processes, and nothing else', async () => {
      const { evaluations } = await open()
      const token = await leased(evaluations)
      const ended = await begin(evaluations)
      await evaluations.endRun(ended, END, [])
      const killed = await begin(evaluations)
      const guard = guardOf(token)
      await evaluations.countAttempt({ run: killed, model: MODEL, kind: 'tool', sentAt: NOW }, guard)
      expect(await evaluations.sweep(NOW + 5)).toBe(1)
      expect(await evaluations.attemptsSince(NOW)).toMatchObject([
        { end: { class: 'abandoned', settledAt: NOW + 5 } },
      ])
      expect(await evaluations.sweep(NOW + 6)).toBe(0)
      expect(await evaluations.versionsOf(DAY)).toEqual([`${DAY}.v1`])
    })

    test('a run that cannot continue is ended, and an ended one stays unchanged', async () => {
      const { evaluations, token, run } = await begun(open)
      await evaluations.countAttempt({ run, model: MODEL, kind: 'tool', sentAt: NOW }, guardOf(token))
      await evaluations.abandonRun(run, NOW + 5, 'interrupted')
      expect(await evaluations.attemptsSince(NOW)).toMatchObject([
        { end: { class: 'abandoned', settledAt: NOW + 5 } },
      ])
      expect(await evaluations.sweep(NOW + 6)).toBe(0)
      const ended = await begin(evaluations)
      await evaluations.endRun(ended, END, [])
      await evaluations.abandonRun(ended, NOW + 7, 'interrupted')
      expect(await evaluations.versionsOf(DAY)).toEqual([`${DAY}.v1`])
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

    test('the versions of a day and the learned rate are returned', async () => {
      const { evaluations } = await open()
      await leased(evaluations)
      for (const [index, rate] of [null, 14, 17].entries()) {
        const end = { ...END, rankingVersion: `${DAY}.v${index + 1}`, startsAMinute: rate }
        await evaluations.endRun(await begin(evaluations, NOW + index), end, [
          { id: 'a/b', reason: 'not_free' },
        ])
      }
      expect(await evaluations.versionsOf(DAY)).toEqual([`${DAY}.v1`, `${DAY}.v2`, `${DAY}.v3`])
      expect(await evaluations.lowestRateBetween(NOW, NOW + 2)).toBe(14)
      expect(await evaluations.lowestRateBetween(NOW + 2, NOW + 2)).toBe(17)
      expect(await evaluations.lowestRateBetween(NOW - 1, NOW)).toBeNull()
      expect(await evaluations.lowestRateBetween(NOW + 3, NOW + 4)).toBeNull()
    })

    test('one evaluation per model and day is kept: the last complete one, otherwise the last', async () => {
      const { evaluations } = await open()
      const score = (points: number, complete: boolean, day = DAY): DayScore => ({
        model: MODEL,
        day,
        evaluatedAt: NOW + points,
        complete,
        tasks: [task(points)],
      })
      await evaluations.saveScore(score(10, false))
      await evaluations.saveScore(score(20, true))
      await evaluations.saveScore(score(30, false))
      expect(await evaluations.scoresSince(DAY)).toEqual([score(20, true)])
      await evaluations.saveScore(score(40, true))
      await evaluations.saveScore(score(50, true, '2026-02-28'))
      expect(await evaluations.scoresSince('2026-02-28')).toEqual([
        score(50, true, '2026-02-28'),
        score(40, true),
      ])
      expect(await evaluations.scoresSince('2026-03-02')).toEqual([])
    })

    test(`the newest ${EVALUATIONS_KEPT_DAYS} days with a run are kept when another begins, whatever the clock says`, async () => {
      const { evaluations, allowance } = await open()
      const old = NOW - 365 * DAY_MS
      const token = await leased(evaluations, old)
      const run = await begin(evaluations, old)
      await evaluations.countAttempt({ run, model: MODEL, kind: 'tool', sentAt: old }, guardOf(token))
      await allowance.countChatRequest(MODEL, old, 50)
      await evaluations.saveEndpoints([{ model: MODEL, checkedAt: old, usable: true, latencyMs: null }])
      await evaluations.saveScore({
        model: MODEL,
        day: dayOf(old),
        evaluatedAt: old,
        complete: true,
        tasks: [],
      })
      await evaluations.endRun(run, { ...END, rankingVersion: `${dayOf(old)}.v1` }, [
        { id: 'a/b', reason: 'not_free' },
      ])
      const kept = async () => [
        await evaluations.attemptsSince(0),
        await evaluations.chatRequestsSince(0),
        await evaluations.endpointsSince(0),
        await evaluations.scoresSince('2025-01-01'),
        await evaluations.versionsOf(dayOf(old)),
      ]
      for (let day = 1; day <= EVALUATIONS_KEPT_DAYS; day += 1) await begin(evaluations, NOW + day * DAY_MS)
      for (const rows of await kept()) expect(rows).toHaveLength(1)
      await begin(evaluations, NOW)
      expect(await kept()).toEqual([[], [], [], [], []])
    })
  })
}
