import { describe, expect, test } from 'vitest'
import { addDays } from '../../../../src/domain/time.ts'
import type { Day } from '../../../../src/domain/time.ts'
import type { TimelineStop } from '../../../../src/domain/year/history/calendar.ts'
import {
  bumpColumns,
  bumpLines,
  lastStops,
  periodWith,
  stayOf,
  turnoverBetween,
} from '../../../../src/domain/year/history/rank-history.ts'
import type { RankedYear } from '../../../../src/domain/year/history/rank-history.ts'
import { manifest } from '../ledger-rows.ts'

const FIRST = '2026-03-01'
const day = (number: number): Day => addDays(FIRST, number)

/** The ranks of keys in their order. */
const ranked = (keys: string): ReadonlyMap<string, number> =>
  new Map(keys.split('').map((key, index) => [key, index + 1]))

const year = (number: number, keys: string | null): RankedYear => ({
  asOfDay: day(number),
  ranks: keys === null ? null : ranked(keys),
})

function published(number: number): TimelineStop {
  const asOfDay = day(number)
  return {
    kind: 'publication',
    item: { manifest: manifest(asOfDay, { sha256: asOfDay }), ledger: 'versioned', seq: number + 1 },
  }
}

const gap = (first: number, last: number): TimelineStop => ({
  kind: 'gap',
  firstDay: day(first),
  lastDay: day(last),
  recorded: null,
})

describe('the stay of an item', () => {
  test('has the best rank of the unbroken presence, and its days, gaps included', () => {
    const years = [year(0, 'ab'), year(1, 'b'), year(2, 'ba'), year(5, 'xba')]
    expect(stayOf('a', years, true)).toEqual({ peak: 2, entered: day(2), days: 4, before: 'absent' })
    expect(stayOf('b', years, true)).toEqual({ peak: 1, entered: day(0), days: 6, before: 'none' })
    expect(stayOf('x', years, true)).toEqual({ peak: 1, entered: day(5), days: 1, before: 'absent' })
  })

  test('may be longer if it reaches to the first known publication of a longer history, or to an older layout', () => {
    expect(stayOf('a', [year(0, 'a'), year(1, 'a')], false)?.before).toBe('unknown')
    const stay = stayOf('a', [year(0, 'a'), year(1, null), year(2, 'a')], true)
    expect(stay).toEqual({ peak: 1, entered: day(2), days: 1, before: 'unknown' })
  })

  test('does not exist without a known list, or if the last list does not have the item', () => {
    expect(stayOf('a', [], true)).toBe(null)
    expect(stayOf('a', [year(0, 'a'), year(1, null)], true)).toBe(null)
    expect(stayOf('a', [year(0, 'a'), year(1, 'b')], true)).toBe(null)
  })
})

test('the turnover counts the items that the earlier list lacks, and is unknown without one', () => {
  expect(turnoverBetween(ranked('abc'), ranked('cde'))).toBe(2)
  expect(turnoverBetween(ranked('abc'), ranked('cba'))).toBe(0)
  expect(turnoverBetween(null, ranked('a'))).toBe(null)
  expect(turnoverBetween(ranked('a'), null)).toBe(null)
})

test('the lines of a chart are the first items of the last publication, broken at gaps and outside of the top', () => {
  const lists: Record<string, string> = { [day(0)]: 'abc', [day(2)]: 'cab', [day(3)]: 'ca' }
  const stops = [published(0), gap(1, 1), published(2), published(3), gap(4, 4)]
  const columns = bumpColumns(stops, (sha256) => ranked(lists[sha256] ?? ''))
  expect(bumpLines(columns, 2)).toEqual([
    { key: 'c', ranks: [null, null, 1, 1, null] },
    { key: 'a', ranks: [1, null, 2, 2, null] },
  ])
})

test('the last stops have at most the given number of publications, and begin with one', () => {
  const stops = [published(0), gap(1, 2), published(3), gap(4, 4), published(5)]
  expect(lastStops(stops, 4, 2)).toEqual(stops.slice(2))
  expect(lastStops(stops, 3, 1)).toEqual(stops.slice(2, 4))
  expect(lastStops(stops, 4, 9)).toEqual(stops)
  expect(lastStops([gap(0, 0), published(1)], 1, 5)).toEqual([published(1)])
  expect(lastStops(stops, -1, 3)).toEqual([])
  expect(lastStops([gap(0, 0)], 0, 1)).toEqual([])
})

describe('a period of the timeline', () => {
  const long = Array.from({ length: 200 }, (_, number) => published(number))

  test('has 90 days counted back from the newest one, the first period the rest', () => {
    const periods = [199, 110, 109, 19, -1].map((index) => periodWith(long, index))
    expect(periods.map(({ firstDay, lastDay, stops }) => [firstDay, lastDay, stops.length])).toEqual([
      [day(110), day(199), 90],
      [day(110), day(199), 90],
      [day(20), day(109), 90],
      [day(0), day(19), 20],
      [day(0), day(19), 20],
    ])
  })

  test('leads to the stops before and after it', () => {
    const { before, after } = periodWith(long, 50)
    expect([before, after]).toEqual([long[19], long[110]])
    expect(periodWith(long, 199).after).toBe(undefined)
    expect(periodWith(long, 0).before).toBe(undefined)
  })

  test('contains a gap that reaches over its end', () => {
    const stops = [published(0), gap(1, 99), published(100)]
    const { firstDay, lastDay, stops: inside, before } = periodWith(stops, 2)
    expect([firstDay, lastDay, inside, before]).toEqual([day(11), day(100), stops.slice(1), stops[0]])
    expect(periodWith(stops, 0)).toMatchObject({
      firstDay: day(0),
      lastDay: day(10),
      stops: stops.slice(0, 2),
    })
  })
})
