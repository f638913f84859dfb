import { ruleTest } from '../../feed/rule.ts'
import type { FeedRule, RuledItem } from '../../feed/rule.ts'
import { compareLists } from './calendar.ts'
import type { Comparison, GapStop, TimelineStop } from './calendar.ts'
import type { TimelineItem } from '../chain.ts'

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
