import { COLUMN_NAMES } from '../../feed/columns.ts'
import type { ColumnName } from '../../feed/columns.ts'
import type { Day } from '../../time.ts'

/** Ranks of a list that count as its top. */
export const TOP_LENGTH = 20

/** The top of each list of a publication. */
export interface YearTops<T> {
  asOfDay: Day
  tops: Readonly<Record<ColumnName, readonly T[]>>
}

/** An item that was at the top of a list. */
export interface TopItem<T> {
  /** As its last publication has it. */
  item: T
  /** Its best rank, and the list that had it there. */
  best: number
  column: ColumnName
  /** As-of days on which it was at the top of any list. */
  days: readonly Day[]
}

/**
 * Every item that was at the top of any list in some publications, once: by its best rank, then by its number of days.
 *
 * @param years publications by as-of day
 */
export function topItems<T extends { key: string; rank: number }>(
  years: readonly YearTops<T>[],
): TopItem<T>[] {
  const found = new Map<string, TopItem<T>>()
  for (const { asOfDay, tops } of years) {
    for (const column of COLUMN_NAMES) {
      for (const item of tops[column]) {
        const { best = Infinity, column: bestColumn = column, days = [] } = found.get(item.key) ?? {}
        const isBetter = item.rank < best
        found.set(item.key, {
          item,
          best: isBetter ? item.rank : best,
          column: isBetter ? column : bestColumn,
          days: days.at(-1) === asOfDay ? days : [...days, asOfDay],
        })
      }
    }
  }
  return [...found.values()].sort((a, b) => a.best - b.best || b.days.length - a.days.length)
}
