import { describe, expect, test } from 'vitest'
import {
  planCalls,
  REQUESTS_PER_MODEL,
  requestsLeft,
  requestsLeftOfModel,
  RESERVED_REQUESTS,
} from '../../../src/domain/models/quota.ts'
import type { QuotaClaim } from '../../../src/domain/models/quota.ts'

const BOTH = ['tool', 'text'] as const

const claim = (model: string, changes: Partial<QuotaClaim> = {}): QuotaClaim => ({
  model,
  openKinds: BOTH,
  left: REQUESTS_PER_MODEL,
  canWin: false,
  lastEvaluatedAt: null,
  ...changes,
})

describe('the requests of a key', () => {
  test.each([
    ['nothing where more is spent', { limit: 50, used: 52 }, 20, 0, 0],
    ['what a large account has', { limit: 1000, used: 0 }, 36, 0, 954],
    ['those of an account without credits where none is told', null, 0, 0, 50 - RESERVED_REQUESTS],
    ['less that of either', { limit: 50, used: 20 }, 10, 10, 10],
  ])('the requests of a key leave %s', (_what, told, sent, lately, left) => {
    expect(requestsLeft(told, sent, lately)).toBe(left)
  })
})

test.each([
  ['fullEval', 'on a UTC day', [3, 1, 0, 0]],
  ['forceEval', 'in each forced run', [3, 3, 3, 3]],
] as const)('the requests of a model in %s are three %s', (mode, _when, left) => {
  expect([0, 2, 3, 9].map((sent) => requestsLeftOfModel(mode, sent))).toEqual(left)
})

describe('the plan of calls', () => {
  test('the plan starts with models that can still win, then with the oldest evaluation', () => {
    const claims = [
      claim('a/fresh', { lastEvaluatedAt: 900 }),
      claim('b/old', { lastEvaluatedAt: 100 }),
      claim('c/never'),
      claim('d/winner', { lastEvaluatedAt: 950, canWin: true }),
    ]
    const { calls, postponed } = planCalls(claims, 4)
    expect(calls).toEqual([
      { model: 'd/winner', kind: 'tool' },
      { model: 'd/winner', kind: 'text' },
      { model: 'c/never', kind: 'tool' },
      { model: 'c/never', kind: 'text' },
    ])
    expect(postponed).toEqual(['b/old', 'a/fresh'])
    const tied = planCalls([claim('b/x'), claim('a/x', { left: 2 }), claim('c/x')], 40)
    expect(tied.spent).toEqual([])
    expect(tied.calls.map(({ model }) => model)).toEqual(['a/x', 'a/x', 'b/x', 'b/x', 'c/x', 'c/x'])
  })

  test('the plan has both prompts of a model or none, and only open ones', () => {
    const claims = [
      claim('a/one', { openKinds: ['text'], left: 2 }),
      claim('b/two'),
      claim('c/done', { openKinds: [] }),
    ]
    expect(planCalls(claims, 2)).toEqual({
      calls: [{ model: 'a/one', kind: 'text' }],
      postponed: ['b/two'],
      spent: [],
      budget: 2,
    })
  })

  test('the plan leaves out a model without requests left today, and does not postpone it', () => {
    const claims = [claim('a/one', { left: 1 }), claim('b/two', { openKinds: ['text'], left: 0 })]
    expect(planCalls(claims, 40)).toEqual({ calls: [], postponed: [], spent: ['a/one', 'b/two'], budget: 40 })
  })
})
