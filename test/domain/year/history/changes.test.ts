import { expect, test } from 'vitest'
import { COLUMN_NAMES } from '../../../../src/domain/feed/columns.ts'
import type { ColumnName } from '../../../../src/domain/feed/columns.ts'
import { topItems } from '../../../../src/domain/year/history/changes.ts'

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
    year('2026-03-01', { popular: ['a', 'b'], lobsters: ['b'] }),
    year('2026-03-02', { popular: ['c', 'a'] }),
  ])
  expect(found.map(({ item, best, column, days }) => [item.key, best, column, days])).toEqual([
    ['a', 1, 'popular', ['2026-03-01', '2026-03-02']],
    ['b', 1, 'lobsters', ['2026-03-01']],
    ['c', 1, 'popular', ['2026-03-02']],
  ])
})
