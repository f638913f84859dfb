import { describe, expect, test } from 'vitest'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import { countLeftOut, describeCauses, rowCausesOf } from '../../../src/domain/year/left-out.ts'

const WINDOW = windowEnding('2026-03-01')
const row = { source: 'hn', points: 1, publishedAt: WINDOW.windowStart, titleProvenance: null }

describe('a row', () => {
  test.each([
    ['hn', []],
    ['hype:github', ['noTitleProvenance']],
    ['midjourney', ['noTitleProvenance']],
  ])('a row of %s without provenance lacks %j, since titles of news are fetched', (source, lacks) => {
    expect(rowCausesOf({ ...row, source })).toEqual(lacks)
    expect(rowCausesOf({ ...row, source, titleProvenance: `${source}:x` })).toEqual([])
  })
})

test('events are counted by each cause, and described in a fixed order', () => {
  const groups = [
    { ...row, points: 0, events: 9 },
    { ...row, points: null, events: 1 },
    { ...row, points: null, publishedAt: WINDOW.windowStart - 1, events: 2 },
    { ...row, publishedAt: WINDOW.windowEnd, events: 4 },
    { ...row, publishedAt: null, events: 8 },
    { ...row, source: 'midjourney', events: 16 },
  ]
  const cohorts = [3, 1, 0].map((eligibleEvents) => ({ provider: 'x', eligibleEvents }))
  const counts = countLeftOut(groups, WINDOW, cohorts)
  expect(describeCauses(counts)).toBe(
    '16 without title provenance, 8 without a publication time, 3 without points, 6 published outside the 365 days, 4 in hype sources that are unknown or have fewer than 5 events',
  )
  expect(countLeftOut([], WINDOW, [])).toEqual({})
})
