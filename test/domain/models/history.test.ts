import { describe, expect, test } from 'vitest'
import { CLOCK_TOLERANCE_MS } from '../../../src/domain/clock-check.ts'
import type { AttemptEnd, EndpointRecord, ModelAttempt } from '../../../src/domain/models/evaluation.ts'
import { FAILURES_MS, historyOf, summaryOfRecord, trackRecords } from '../../../src/domain/models/history.ts'
import { unansweredTasks } from '../../../src/domain/models/lite/suite.ts'
import { DAY_MS, dayOf } from '../../../src/domain/time.ts'
import { evaluation, task } from './free-models.ts'

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
  return { id: (attempts += 1), model, kind, sentAt, day: dayOf(sentAt), end: whole }
}

const reply = (asAsked: boolean, latencyMs: number): Partial<AttemptEnd> => ({
  asAsked,
  latencyMs,
  tasks: [],
})

/** The attempts of an evaluation of an earlier day, or of one that lacks the response to a prompt. */
function evaluated(daysAgo: number, isComplete = true): ModelAttempt[] {
  const sentAt = NOW - daysAgo * DAY_MS
  const [files, ...others] = evaluation(sentAt).tasks
  const text = isComplete ? { tasks: others } : failure('text', { class: 'timeout' })
  return [attempt('tool', sentAt, { tasks: files ? [files] : [] }), attempt('text', sentAt, text)]
}

/** A failure of the model. */
const failure = (kind: 'tool' | 'text', end: Partial<AttemptEnd>, details = {}): Partial<AttemptEnd> => ({
  ...end,
  tasks: unansweredTasks(kind, dayOf(NOW), details),
})

const known = (...made: ModelAttempt[]): ReturnType<typeof historyOf> =>
  historyOf(MODEL, { attempts: made, endpoints: [] }, NOW)

describe('the history of a model', () => {
  test('the history counts the requests of this UTC day, including open and abandoned ones, of this model alone', () => {
    const midnight = Date.UTC(2026, 2, 4)
    const made = [
      attempt('tool', midnight - 1, reply(true, 1)),
      attempt('tool', midnight, { class: 'abandoned' }),
      attempt('text', midnight + 1, null),
      attempt('text', midnight + 2, reply(true, 1), 'another/model:free'),
    ]
    expect(known(...made)).toMatchObject({ sentToday: 2, tasksToday: {}, failuresIn72h: 0 })
    expect(known()).toMatchObject({
      toolUse: 'unknown',
      gone: false,
      evaluation: null,
      lastEvaluatedAt: null,
    })
  })

  const tool = (end: Partial<AttemptEnd>, sentAt = NOW - 5000) => attempt('tool', sentAt, end)
  const answer = (asAsked: boolean) => attempt('text', NOW - 3000, reply(asAsked, 400))
  const limited = tool({ class: 'model_rate_limit', status: 429 })
  const daily = tool({ class: 'account_daily', status: 429 })
  const down = attempt('text', NOW - 3000, { class: 'provider_down', status: 502 })

  test.each<[string, ModelAttempt[], object]>([
    [
      'passed when both responses had the requested form, with the latency of the text',
      [tool(reply(true, 700)), answer(true)],
      { status: 'passed', latencyMs: 400, checkedAt: NOW - 2100 },
    ],
    [
      'imperfect when one response had another form',
      [tool(reply(false, 700)), answer(true)],
      { status: 'imperfect' },
    ],
    [
      'imperfect when one is missing',
      [tool(reply(true, 700)), down],
      { status: 'imperfect', latencyMs: 700 },
    ],
    ['the failure without any response', [limited], { status: 'http_429', rateLimitKind: 'model' }],
    [
      'that of a retry',
      [limited, tool(reply(true, 300), NOW - 1000)],
      { status: 'passed', rateLimitKind: 'none' },
    ],
    ['not that of the account', [daily], { status: 'not_probed', rateLimitKind: 'account' }],
    ['the time limit', [tool({ class: 'timeout' })], { status: 'timeout' }],
    ['the status of an error', [tool({ class: 'refused', status: 400 })], { status: 'http_400' }],
    ['a failure within a success', [tool({ class: 'invalid_answer', status: 200 })], { status: 'failed' }],
    ['that of 24 hours ago', [tool(reply(true, 700), NOW - DAY_MS - 900)], { status: 'passed' }],
  ])('the health of a model is %s', (_what, made, health) => {
    expect(known(...made).health).toMatchObject(health)
  })

  test('failures of the account do not count for the model', () => {
    expect([known(daily).failuresIn72h, known(limited).failuresIn72h]).toEqual([0, 1])
  })

  test('health expires after a day and failures after three', () => {
    const old = attempt('text', NOW - 25 * HOUR_MS, { class: 'timeout' })
    const older = attempt('text', NOW - FAILURES_MS - 1, { class: 'timeout' })
    const third = attempt('text', NOW - FAILURES_MS, { class: 'timeout' })
    expect(known(older, third, old)).toMatchObject({ health: { status: 'not_probed' }, failuresIn72h: 2 })
  })

  test('rows of later days, which a clock that was ahead recorded, change nothing', () => {
    const checkedAt = NOW + CLOCK_TOLERANCE_MS
    const record = { model: MODEL, checkedAt, usable: true, latencyMs: 700 }
    const earlier = evaluated(1)
    const failed = tool({ class: 'provider_down', status: 502 })
    const ahead = {
      attempts: [
        ...earlier,
        failed,
        ...evaluated(-365),
        attempt('tool', NOW + DAY_MS, { class: 'timeout' }),
        attempt('text', NOW + DAY_MS, reply(true, 1)),
      ],
      endpoints: [{ ...record, checkedAt: checkedAt + 1 }],
    }
    expect(historyOf(MODEL, ahead, NOW)).toEqual(known(...earlier, failed))
    // A run whose clock went back a little still has its own.
    const own = { attempts: [failed, ...evaluated(0)], endpoints: [record] }
    expect(historyOf(MODEL, own, NOW - 5000)).toMatchObject({
      failuresIn72h: 1,
      evaluation: { updatedAt: NOW + 900 },
    })
    const probed = { attempts: [failed], endpoints: [record] }
    expect(historyOf(MODEL, probed, NOW - 5000).health).toMatchObject({ latencyMs: null })
    expect(historyOf(MODEL, probed, NOW).health).toMatchObject({ latencyMs: 700, checkedAt })
  })

  test('the newest complete evaluation counts, and an incomplete one only without another', () => {
    expect(known(...evaluated(2), ...evaluated(1), ...evaluated(0, false))).toMatchObject({
      evaluation: { updatedAt: NOW - DAY_MS + 900 },
      lastEvaluatedAt: NOW + 900,
    })
    const failed = (['tool', 'text'] as const).map((kind) =>
      attempt(kind, NOW - 1000, failure(kind, { class: 'timeout' })),
    )
    expect(known(...failed).evaluation).toMatchObject({ updatedAt: NOW - 100 })
    for (const later of [[], failed])
      expect(known(...evaluated(1, false), ...later)).toMatchObject({
        evaluation: { updatedAt: NOW - DAY_MS + 900 },
      })
  })
  const text = [task('task_shell_command_lite', 300), task('babylonian_clock_lite', 100)]
  const answeredText = { asAsked: true, latencyMs: 400, tasks: text }

  test('a model is gone by its last probe alone, whatever it responded before', () => {
    const before = attempt('text', NOW - 20 * HOUR_MS, answeredText)
    const gone = attempt('tool', NOW - 1000, { class: 'model_gone', status: 404 })
    expect(known(...evaluated(1), before, gone)).toMatchObject({
      gone: true,
      health: { status: 'http_404', latencyMs: null },
      evaluation: null,
      toolUse: 'unknown',
    })
    const back = attempt('text', NOW - 10, answeredText)
    expect(known(before, gone, back)).toMatchObject({ gone: false, health: { status: 'imperfect' } })
  })

  test("a model is not evaluated by one prompt while the account's limits block the other", () => {
    const response = attempt('text', NOW - 1000, answeredText)
    for (const made of [[daily, response], [response]]) {
      expect(known(...made).evaluation).toBeNull()
      expect(Object.keys(known(...made).tasksToday)).toEqual(['text'])
      expect(known(...evaluated(1), ...made).evaluation).toMatchObject({ updatedAt: NOW - DAY_MS + 900 })
    }
  })

  test('the tool use is that of the newest response, although it is no evaluation by itself', () => {
    const tasks = [task('task_files_lite', 0, { usedTool: false })]
    expect(known(...evaluated(1), tool({ tasks }))).toMatchObject({ toolUse: 'disproven' })
  })

  test('the end of a model is the result of both prompts, of which one is sent', () => {
    const details = { responseStatus: 404 }
    const end = failure('tool', { class: 'model_gone', status: 404 }, details)
    const tasks = known(attempt('tool', NOW - 500, end)).evaluation?.tasks ?? []
    const ends = ['task_files_lite', 'task_shell_command_lite', 'babylonian_clock_lite'].map((id) => ({
      id,
      details,
    }))
    expect(tasks).toMatchObject(ends)
  })

  test('the evaluation includes both responses of a day', () => {
    const files = [task('task_files_lite', 350)]
    const made = [tool({ asAsked: true, tasks: files }), attempt('text', NOW - 1000, answeredText)]
    expect(known(...made).evaluation).toEqual({ updatedAt: NOW - 100, tasks: [...files, ...text] })
  })

  test('the health follows the latest endpoint data until the next probe', () => {
    const at = (endpoints: Partial<EndpointRecord>, ...probes: ModelAttempt[]) => {
      const record = { model: MODEL, checkedAt: NOW - 5000, usable: true, latencyMs: 700, ...endpoints }
      const { health, tested } = historyOf(MODEL, { attempts: probes, endpoints: [record] }, NOW)
      return { ...health, tested }
    }
    expect(at({})).toMatchObject({
      status: 'imperfect',
      latencyMs: 700,
      checkedAt: NOW - 5000,
      tested: false,
    })
    expect(at({ usable: false, latencyMs: null })).toMatchObject({ status: 'failed', latencyMs: null })
    expect(at({ checkedAt: NOW - DAY_MS })).toMatchObject({ status: 'imperfect' })
    expect(at({ checkedAt: NOW - DAY_MS - 1 })).toMatchObject({ status: 'not_probed' })
    const probe = attempt('text', NOW - 9000, reply(true, 400))
    expect(at({}, probe)).toMatchObject({ status: 'passed', latencyMs: 700, tested: true })
    expect(at({ usable: false }, probe)).toMatchObject({ status: 'failed', tested: false })
    expect(at({ checkedAt: NOW - 9000 + 900 }, probe)).toMatchObject({ status: 'passed', latencyMs: 700 })
    expect(at({ checkedAt: NOW - 9000 }, probe)).toMatchObject({ status: 'passed', latencyMs: 400 })
  })
})

const run = (checkedAt: string | null, healthStatus: string, latencyMs: number | null = null) => ({
  updatedAt: checkedAt ?? '2026-08-22T03:00:00.000Z',
  models: [{ id: 'a', healthStatus, latencyMs, checkedAt }],
  probeMode: 'active' as const,
})

test('a track record has the last test of each of the last days, on the day of the test', () => {
  const recordOf = trackRecords(
    [
      run('2026-08-01T03:00:00.000Z', 'passed', 100),
      run('2026-08-20T03:00:00.000Z', 'timeout', 9_000),
      run('2026-08-21T03:00:00.000Z', 'passed', 300),
      run('2026-08-21T09:00:00.000Z', 'imperfect', 200),
      // A run that repeats an earlier test adds none.
      run('2026-08-21T09:00:00.000Z', 'imperfect', 200),
      run('2026-08-22T03:00:00.000Z', 'not_probed'),
      run(null, 'failed'),
      // Data of endpoints are no test.
      { ...run('2026-08-22T04:00:00.000Z', 'passed', 90), probeMode: 'passive' },
      run('2026-08-22T04:00:00.000Z', 'passed', 90),
      { ...run('2026-08-22T05:00:00.000Z', 'imperfect', 90), untested: ['a'] },
    ],
    '2026-08-22',
  )
  const record = recordOf('a')
  expect(record).toEqual([
    ...Array<null>(11).fill(null),
    { day: '2026-08-20', answered: false, latencyMs: null },
    { day: '2026-08-21', answered: true, latencyMs: 200 },
    null,
  ])
  const times = { fastestMs: 200, slowestMs: 200 }
  expect(summaryOfRecord(record)).toEqual({ tested: 2, answered: 1, ...times, failedDays: ['2026-08-20'] })
  expect(summaryOfRecord(recordOf('b'))).toMatchObject({ tested: 0, fastestMs: null, slowestMs: null })
})
