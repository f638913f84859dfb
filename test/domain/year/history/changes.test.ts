import { expect, test } from 'vitest'
import { COLUMN_NAMES } from '../../../../src/domain/feed/columns.ts'
import type { ColumnName } from '../../../../src/domain/feed/columns.ts'
import { changesBetween, topItems } from '../../../../src/domain/year/history/changes.ts'

type Lists = Partial<Record<ColumnName, readonly string[]>>

/** The tops of a publication, from the keys of its lists by rank. */
const year = (asOfDay: string, lists: Lists) => ({
  asOfDay,
  tops: Object.fromEntries(
    COLUMN_NAMES.map((name) => [name, (lists[name] ?? []).map((key, index) => ({ key, rank: index + 1 }))]),
  ) as Record<ColumnName, { key: string; rank: number }[]>,
})

test('an item of several lists and days is found once, with its best rank, its list and its days', () => {
  const found = topItems([
    year('2026-03-01', { popular: ['a', 'd', 'b'], lobsters: ['b'] }),
    year('2026-03-02', { popular: ['c', 'a'] }),
    year('2026-03-03', { popular: ['c'] }),
  ])
  expect(found.map(({ item, best, column, days }) => [item.key, best, column, days])).toEqual([
    ['a', 1, 'popular', ['2026-03-01', '2026-03-02']],
    ['c', 1, 'popular', ['2026-03-02', '2026-03-03']],
    ['b', 1, 'lobsters', ['2026-03-01']],
    ['d', 2, 'popular', ['2026-03-01']],
  ])
})

test('moves of ten ranks or more are changes, the largest first', () => {
  const list = (ranks: Record<string, number>) => Object.entries(ranks).map(([key, rank]) => ({ key, rank }))
  const { moved } = changesBetween(list({ a: 1, b: 20, c: 30 }), list({ a: 11, b: 8, c: 21 }))
  expect(moved.map(({ after }) => after)).toEqual(list({ b: 8, a: 11 }))
})
