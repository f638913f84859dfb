import { describe, expect, test } from 'vitest'
import type { Signal } from '../../../src/domain/feed/signal.ts'
import { addDays } from '../../../src/domain/time.ts'
import type { Day } from '../../../src/domain/time.ts'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import { countLeftOut } from '../../../src/domain/year/left-out.ts'
import { signal } from '../../support/signals.ts'
import { DAMAGED } from '../../support/refusals.ts'
import type { FeedOpener } from './open-feed.ts'

const AS_OF = '2026-03-01'
const WINDOW = windowEnding(AS_OF)
const FIRST = WINDOW.firstDay
const BEFORE = addDays(FIRST, -1)
const AFTER = addDays(AS_OF, 1)

/** A signal of an event that was published when the window begins. */
const observedAs = (sourceId: string, day: Day, changes: Partial<Signal> = {}): Signal =>
  signal({ sourceId, day, points: 5, publishedAt: WINDOW.windowStart, ...changes })

const LATEST = { points: 7, title: 'another title', comments: null, titleProvenance: null }

const SIGNALS = [
  observedAs('latest', BEFORE),
  observedAs('latest', AS_OF, LATEST),
  observedAs('latest', AFTER, { points: 9, publishedAt: WINDOW.windowEnd }),
  observedAs('first', FIRST, { publishedAt: WINDOW.windowEnd - 1 }),
  observedAs('before', BEFORE),
  observedAs('around', BEFORE),
  observedAs('around', AFTER),
  observedAs('after', AFTER),
  observedAs('published before', AS_OF, { publishedAt: WINDOW.windowStart - 1 }),
  observedAs('published after', BEFORE),
  observedAs('published after', AS_OF, { publishedAt: WINDOW.windowEnd }),
  observedAs('moved out', BEFORE),
  observedAs('moved out', AS_OF, { publishedAt: 0 }),
  observedAs('moved in', AFTER, { publishedAt: 0 }),
  observedAs('moved in', AS_OF),
  observedAs('no points', BEFORE),
  observedAs('no points', AS_OF, { points: null }),
  observedAs('no time', BEFORE),
  observedAs('no time', AS_OF, { publishedAt: null }),
  observedAs('1', FIRST, { source: 'hype:github', titleProvenance: null }),
  observedAs('2', addDays(AS_OF, -1), { source: 'hype:github' }),
  observedAs('1', AS_OF, { source: 'lobsters' }),
]

/** Earlier values of some of them, on the same days. */
const REPLACED = [
  observedAs('latest', AS_OF, { points: 1 }),
  observedAs('first', FIRST, { publishedAt: 0 }),
  observedAs('1', FIRST, { source: 'hype:github', publishedAt: WINDOW.windowEnd }),
  observedAs('1', AS_OF, { source: 'lobsters', publishedAt: null }),
]

/** Contract of every feed engine: the window. */
export function windowContract(name: string, engine: FeedOpener): void {
  describe(`the window of a Year in ${name}`, () => {
    test.each([
      ['in one import', [SIGNALS]],
      ['one by one', SIGNALS.map((each) => [each])],
      ['the other way round', SIGNALS.toReversed().map((each) => [each])],
    ])(
      'the window has the latest signals of its events, whatever arrives first: %s',
      async (_how, batches) => {
        const { feed } = await engine()
        await feed.importSignals(REPLACED)
        for (const batch of batches) await feed.importSignals(batch)
        const window = await feed.readWindow(WINDOW)
        const points = window.events.map((each) => `${each.source} ${each.sourceId}: ${each.points}`)
        expect(points.sort()).toEqual([
          'hn around: 5',
          'hn before: 5',
          'hn first: 5',
          'hn latest: 7',
          'hn moved in: 5',
          'hype:github 1: 5',
          'hype:github 2: 5',
          'lobsters 1: 5',
        ])
        const { day: _day, ...latest } = observedAs('latest', AS_OF, LATEST)
        expect(window.events).toContainEqual(latest)
        expect(window.observed).toEqual([
          { source: 'hn', days: [FIRST, AS_OF], events: 8 },
          { source: 'hype:github', days: [FIRST, addDays(AS_OF, -1)], events: 2 },
          { source: 'lobsters', days: [AS_OF], events: 1 },
        ])
        const groups = await feed.eventGroups(WINDOW)
        const ofSource = (source: string) => groups.filter((group) => group.source === source)
        const causes = { outsideYear: 3, noPoints: 1, noPublicationTime: 1 }
        expect(countLeftOut(ofSource('hn'), WINDOW, [])).toEqual(causes)
        expect(countLeftOut(ofSource('hype:github'), WINDOW, [])).toEqual({ noTitleProvenance: 1 })
        expect(ofSource('hn').reduce((sum, { events }) => sum + events, 0)).toBe(8)
        const newest = [AS_OF, addDays(AS_OF, -1), addDays(BEFORE, -1)].map((day) => feed.newestNewsDay(day))
        expect(await Promise.all(newest)).toEqual([AS_OF, FIRST, null])
      },
    )

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
