import type { Signal } from '../../../src/domain/feed/signal.ts'
import type { SourceObservation, YearEvent } from '../../../src/domain/year/rank.ts'
import type { YearWindow } from '../../../src/domain/year/ledger.ts'
import { tripleOf } from '../../support/signals.ts'

/** A second reading of a window, written from decisions.md part 3 alone: every rule looks at every signal. */

/** What is stored after the signals were imported in this order. */
export function naiveStore(signals: readonly Signal[]): Signal[] {
  return [...new Map(signals.map((signal) => [tripleOf(signal), signal])).values()]
}

/** Rules 1 and 2: the latest signal of each event up to the as-of day, if it is eligible. */
export function naiveEvents(stored: readonly Signal[], window: YearWindow): YearEvent[] {
  return stored.flatMap((signal) => {
    const { source, sourceId, day, title, url, points, comments, publishedAt, titleProvenance } = signal
    const isLatest = !stored.some(
      (other) =>
        other.source === source &&
        other.sourceId === sourceId &&
        other.day > day &&
        other.day <= window.asOfDay,
    )
    if (day > window.asOfDay || !isLatest || points === null || publishedAt === null) return []
    if (publishedAt < window.windowStart || publishedAt >= window.windowEnd) return []
    return [{ source, sourceId, title, url, points, comments, publishedAt, titleProvenance }]
  })
}

/** The days and the distinct events each source was observed with inside the window. */
export function naiveObserved(stored: readonly Signal[], window: YearWindow): SourceObservation[] {
  const inside = stored.filter(({ day }) => day >= window.firstDay && day <= window.asOfDay)
  return [...new Set(inside.map(({ source }) => source))].sort().map((source) => {
    const own = inside.filter((signal) => signal.source === source)
    return {
      source,
      days: [...new Set(own.map(({ day }) => day))].sort(),
      events: new Set(own.map(({ sourceId }) => sourceId)).size,
    }
  })
}
