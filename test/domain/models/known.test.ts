import { describe, expect, test } from 'vitest'
import type { AttemptEnd, DayScore, ModelAttempt } from '../../../src/domain/models/evaluation-ledger.ts'
import { FAILURES_MS, knownModel } from '../../../src/domain/models/known.ts'
import { DAY_MS, dayOf } from '../../../src/domain/time.ts'

const NOW = Date.UTC(2026, 2, 4, 12)
const MODEL = 'example/model-1:free'
const HOUR_MS = 3_600_000

let attempts = 0

function attempt(
  kind: 'tool' | 'text',
  sentAt: number,
  end: Partial<AttemptEnd> | null,
  model = MODEL,
): ModelAttempt {
  const settled = { settledAt: sentAt + 900, status: null, latencyMs: null, asAsked: null, tasks: null }
  const whole = end && { ...settled, class: 'answered' as const, ...end }
  return { id: (attempts += 1), run: 1, model, kind, sentAt, day: dayOf(sentAt), end: whole }
}

const reply = (asAsked: boolean, latencyMs: number): Partial<AttemptEnd> => ({
  asAsked,
  latencyMs,
  tasks: [],
})

const score = (daysAgo: number, complete = true): DayScore => {
  const evaluatedAt = NOW - daysAgo * DAY_MS
  return { model: MODEL, day: dayOf(evaluatedAt), evaluatedAt, complete, tasks: [] }
}

const known = (...made: ModelAttempt[]): ReturnType<typeof knownModel> => knownModel(MODEL, made, [], NOW)

describe('what is known of a model', () => {
  test('is nothing without attempts and scores', () => {
    expect(known()).toEqual({
      sentToday: 0,
      answers: {},
      health: { status: 'not_probed', latencyMs: null, rateLimitKind: 'none', checkedAt: null },
      failuresIn72h: 0,
      today: null,
      evaluation: null,
      lastEvaluatedAt: null,
    })
  })

  test('counts what was sent on this UTC day, open and abandoned attempts too, and no other model', () => {
    const midnight = Date.UTC(2026, 2, 4)
    const made = [
      attempt('tool', midnight - 1, reply(true, 1)),
      attempt('tool', midnight, { class: 'abandoned' }),
      attempt('text', midnight + 1, null),
      attempt('text', midnight + 2, reply(true, 1), 'another/model:free'),
    ]
    expect(known(...made)).toMatchObject({ sentToday: 2, answers: {}, failuresIn72h: 0 })
  })

  test('is passed when both questions were answered as asked, with the latency of the text', () => {
    const made = [
      attempt('tool', NOW - 5000, reply(true, 700)),
      attempt('text', NOW - 3000, reply(true, 400)),
    ]
    const { health, answers } = known(...made)
    expect(health).toMatchObject({ status: 'passed', latencyMs: 400, checkedAt: NOW - 2100 })
    expect(Object.keys(answers).sort()).toEqual(['text', 'tool'])
  })

  test('is imperfect when one was answered in another form, or not at all', () => {
    const tool = attempt('tool', NOW - 5000, reply(false, 700))
    expect(known(tool, attempt('text', NOW - 3000, reply(true, 400))).health.status).toBe('imperfect')
    const down = attempt('text', NOW - 3000, { class: 'provider_down', status: 502 })
    const asked = attempt('tool', NOW - 5000, reply(true, 700))
    expect(known(asked, down).health).toMatchObject({ status: 'imperfect', latencyMs: 700 })
  })

  test('is the failure when neither was answered, and what a retry answered counts', () => {
    const limited = attempt('tool', NOW - 5000, { class: 'model_rate_limit', status: 429 })
    expect(known(limited).health).toMatchObject({ status: 'http_429', rateLimitKind: 'model' })
    const retried = attempt('tool', NOW - 1000, reply(true, 300))
    expect(known(limited, retried).health).toMatchObject({ status: 'passed', rateLimitKind: 'none' })
  })

  test("says nothing by what was the account's", () => {
    const daily = attempt('tool', NOW - 5000, { class: 'account_daily', status: 429 })
    expect(known(daily)).toMatchObject({
      health: { status: 'not_probed', rateLimitKind: 'account' },
      failuresIn72h: 0,
    })
  })

  test('forgets health after a day and failures after three', () => {
    const old = attempt('text', NOW - 25 * HOUR_MS, { class: 'timeout' })
    const older = attempt('text', NOW - FAILURES_MS - 1, { class: 'timeout' })
    expect(known(older, old)).toMatchObject({ health: { status: 'not_probed' }, failuresIn72h: 1 })
  })

  test('takes the newest complete evaluation, and one without an answer only when there is no other', () => {
    const of = (...scores: DayScore[]) => knownModel(MODEL, [], scores, NOW)
    expect(of(score(2), score(1), score(0, false))).toMatchObject({
      evaluation: { updatedAt: NOW - DAY_MS },
      today: { updatedAt: NOW },
      lastEvaluatedAt: NOW,
    })
    expect(of(score(1, false))).toMatchObject({ evaluation: { updatedAt: NOW - DAY_MS }, today: null })
  })
})
