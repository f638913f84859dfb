import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Signal } from '../../../src/domain/feed/signal.ts'
import { addDays, DAY_MS } from '../../../src/domain/time.ts'
import type { YearEvent, SourceObservation } from '../../../src/domain/year/rank.ts'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import { countLeftOut } from '../../../src/domain/year/left-out.ts'
import type { EventGroup } from '../../../src/domain/year/left-out.ts'
import { signal, tripleOf } from '../../support/signals.ts'
import { DAMAGED } from '../../support/refusals.ts'
import type { FeedOpener } from './open-feed.ts'
import type { YearWindow } from '../../../src/domain/year/ledger.ts'

const AS_OF = '2026-03-01'
const WINDOW = windowEnding(AS_OF)
/** Days and times at both ends of the window, and far from it. */
const DAYS = [
  ...[-401, -1, 0, 1].map((days) => addDays(WINDOW.firstDay, days)),
  ...[-1, 0, 1, 401].map((days) => addDays(AS_OF, days)),
]
const TIMES = [WINDOW.windowStart, WINDOW.windowEnd].flatMap((time) => [time - 1, time, time + DAY_MS])

const inOrder = (events: readonly YearEvent[]): YearEvent[] =>
  [...events].sort((a, b) => (a.source + a.sourceId < b.source + b.sourceId ? -1 : 1))

/** Contract of every feed engine: the window. */
export function windowContract(name: string, engine: FeedOpener): void {
  describe(`the window of a Year in ${name}`, () => {
    test('the window agrees with a plain reading of all signals, in any order of arrival', async () => {
      const row = fc
        .record({
          source: fc.constantFrom('hn', 'lobsters', 'hype:github'),
          sourceId: fc.constantFrom('1', '2', '10'),
          day: fc.constantFrom(...DAYS),
          title: fc.constantFrom('a title', 'another title'),
          points: fc.constantFrom(null, 0, 7),
          comments: fc.constantFrom(null, 3),
          publishedAt: fc.constantFrom(null, 0, ...TIMES),
          titleProvenance: fc.constantFrom(null, 'x:y'),
        })
        .map((values) => signal(values))
      const batched = fc.array(fc.array(row, { maxLength: 6 }), { maxLength: 4 })
      await fc.assert(
        fc.asyncProperty(batched, async (batches) => {
          const { feed } = await engine()
          for (const batch of batches) await feed.importSignals(batch)
          const { events, observed } = await feed.readWindow(WINDOW)
          const stored = naiveStore(batches.flat())
          expect(inOrder(events)).toEqual(inOrder(naiveEvents(stored, WINDOW)))
          expect(observed).toEqual(naiveObserved(stored, WINDOW))
          const causes = causesOf(await feed.eventGroups(WINDOW))
          expect(causes).toEqual(causesOf(naiveObservedEvents(stored, WINDOW)))
          expect(await feed.newestNewsDay(AS_OF)).toBe(naiveNewestNews(stored))
        }),
        { numRuns: 40 },
      )
    }, 60_000)

    test('the window contains every event, for any number with the same publication time', async () => {
      const { feed } = await engine()
      const many = Array.from({ length: 9_001 }, (_, index) =>
        signal({ sourceId: String(index), points: index }),
      )
      for (let start = 0; start < many.length; start += 5_000)
        await feed.importSignals(many.slice(start, start + 5_000))
      const { events, observed } = await feed.readWindow(WINDOW)
      expect(new Set(events.map(({ sourceId }) => sourceId)).size).toBe(9_001)
      expect(events).toHaveLength(9_001)
      expect(events.reduce((sum, { points }) => sum + points, 0)).toBe((9_000 * 9_001) / 2)
      expect(observed).toEqual([{ source: 'hn', days: [AS_OF], events: 9_001 }])
    })

    test('the window is read at one moment, during imports through another connection', async () => {
      const { feed, another } = await engine()
      const rows = Array.from({ length: 4_500 }, (_, index) => signal({ sourceId: String(index) }))
      await feed.importSignals(rows)
      const other = another().feed
      await other.ping()
      const changed = rows.map((row) => ({ ...row, points: 77 }))
      const [read, imported] = await Promise.all([feed.readWindow(WINDOW), other.importSignals(changed)])
      expect(new Set(read.events.map(({ points }) => points)).size).toBe(1)
      expect(imported.replaced).toBe(rows.length)
      expect((await feed.readWindow(WINDOW)).events.every(({ points }) => points === 77)).toBe(true)
    })

    test.each([
      ['text', 'signals SET title'],
      ['source of a day', 'source_days SET source'],
    ])('the window is refused if a stored %s is not valid UTF-8', async (_what, cell) => {
      const { feed, raw } = await engine()
      await feed.importSignals([signal()])
      await raw().execute(`UPDATE ${cell} = CAST(x'c328' AS TEXT)`)
      await expect(feed.readWindow(WINDOW)).rejects.toMatchObject(DAMAGED)
    })
  })
}

/** A second reading of a window, written from decisions.md part 3 alone: every rule looks at every signal. */

/** The rows stored after an import of the signals in this order. */
function naiveStore(signals: readonly Signal[]): Signal[] {
  return [...new Map(signals.map((row) => [tripleOf(row), row])).values()]
}

/** Rules 1 and 2: the latest row of each event up to the as-of day, if it is eligible. */
function naiveEvents(stored: readonly Signal[], window: YearWindow): YearEvent[] {
  return stored.flatMap((row) => {
    const { source, sourceId, day, title, url, points, comments, publishedAt, titleProvenance } = row
    const events = stored.filter((each) => each.source === source && each.sourceId === sourceId)
    const isLatest = !events.some((each) => each.day > day && each.day <= window.asOfDay)
    if (day > window.asOfDay || !isLatest || points === null || publishedAt === null) return []
    if (publishedAt < window.windowStart || publishedAt >= window.windowEnd) return []
    return [{ source, sourceId, title, url, points, comments, publishedAt, titleProvenance }]
  })
}

/** The latest rows of the events observed inside the window. */
function naiveObservedEvents(stored: readonly Signal[], { firstDay, asOfDay }: YearWindow): EventGroup[] {
  const before = stored.filter(({ day }) => day <= asOfDay)
  const events = new Map<string, Signal[]>()
  for (const row of before) {
    const key = `${row.source} ${row.sourceId}`
    events.set(key, [...(events.get(key) ?? []), row])
  }
  return [...events.values()].flatMap((rows) => {
    const latest = rows.toSorted((a, b) => (a.day < b.day ? 1 : -1))[0]
    return latest && rows.some(({ day }) => day >= firstDay) ? [{ ...latest, events: 1 }] : []
  })
}

/** The numbers of left-out events by source and cause, and of all events. */
function causesOf(groups: readonly EventGroup[]): unknown {
  return ['hn', 'lobsters', 'hype:github'].map((source) => {
    const own = groups.filter((group) => group.source === source)
    return [countLeftOut(own, WINDOW, []), own.reduce((sum, { events }) => sum + events, 0)]
  })
}

function naiveNewestNews(stored: readonly Signal[]): string | null {
  const news = stored.filter(({ source, day }) => source !== 'hype:github' && day <= AS_OF)
  const days = news.map(({ day }) => day)
  return days.toSorted().at(-1) ?? null
}

/** The days and the distinct events each source was observed with inside the window. */
function naiveObserved(stored: readonly Signal[], window: YearWindow): SourceObservation[] {
  const inside = stored.filter(({ day }) => day >= window.firstDay && day <= window.asOfDay)
  return [...new Set(inside.map(({ source }) => source))].sort().map((source) => {
    const own = inside.filter((row) => row.source === source)
    return {
      source,
      days: [...new Set(own.map(({ day }) => day))].sort(),
      events: new Set(own.map(({ sourceId }) => sourceId)).size,
    }
  })
}
