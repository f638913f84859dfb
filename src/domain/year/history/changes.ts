import { COLUMN_NAMES } from '../../feed/columns.ts'
import type { ColumnName } from '../../feed/columns.ts'
import { ruleTest } from '../../feed/subscription.ts'
import type { FeedRule, RuledItem } from '../../feed/subscription.ts'
import type { Day } from '../../time.ts'
import type { TimelineItem } from '../chain.ts'
import { compareLists } from './calendar.ts'
import type { Comparison, GapStop, TimelineStop } from './calendar.ts'

/** Changes of a list from one publication of the Year to the next (docs/api.md). */

/** Least number of ranks by which a named item moved. */
const MOVED_MIN = 10

export interface YearChanges<T> extends Pick<Comparison<T>, 'entered' | 'left' | 'moved'> {
  /** The first item if another one was first before; else null. */
  newFirst: T | null
}

/** The changes between two lists: what entered, left, or moved by ten ranks or more, largest moves first. */
export function changesBetween<T extends { key: string; rank: number }>(
  earlier: readonly T[],
  later: readonly T[],
): YearChanges<T> {
  const { entered, left, moved } = compareLists(earlier, later)
  const [first] = later
  return {
    entered,
    left,
    moved: moved
      .filter(({ rose }) => Math.abs(rose) >= MOVED_MIN)
      .sort((a, b) => Math.abs(b.rose) - Math.abs(a.rose)),
    newFirst: first && first.key !== earlier[0]?.key ? first : null,
  }
}

/** The changes of the items that a rule selects, at most its `top` of each kind. */
export function applyRuleToChanges<T extends RuledItem>(
  { entered, left, moved, newFirst }: YearChanges<T>,
  rule: FeedRule,
): YearChanges<T> {
  const matches = ruleTest(rule)
  const firstOf = <Change>(changes: Change[], itemOf: (change: Change) => T): Change[] =>
    changes.filter((change) => matches(itemOf(change))).slice(0, rule.top ?? undefined)
  return {
    entered: firstOf(entered, (item) => item),
    left: firstOf(left, (item) => item),
    moved: firstOf(moved, ({ after }) => after),
    newFirst: newFirst && matches(newFirst) ? newFirst : null,
  }
}

/** A publication, the one before it, and the gaps between them. */
export interface PublicationStep {
  item: TimelineItem
  /** null for the first publication. */
  previous: TimelineItem | null
  gaps: readonly GapStop[]
}

/** Every selectable publication as a step from the one before, by as-of day. */
export function publicationSteps(stops: readonly TimelineStop[]): PublicationStep[] {
  const steps: PublicationStep[] = []
  let gaps: GapStop[] = []
  for (const stop of stops) {
    if (stop.kind === 'gap') gaps.push(stop)
    else {
      steps.push({ item: stop.item, previous: steps.at(-1)?.item ?? null, gaps })
      gaps = []
    }
  }
  return steps
}

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
