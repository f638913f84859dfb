import { describe, expect, test } from 'vitest'
import type { ItemDetails } from '../../../src/domain/feed/live-source.ts'
import { DAY_MS, dayOf } from '../../../src/domain/time.ts'
import { HOUR_MS, NOW } from '../../support/feed-events.ts'
import { signal } from '../../support/signals.ts'
import { DAMAGED } from '../../support/refusals.ts'
import type { FeedOpener } from './open-feed.ts'

const TODAY = dayOf(NOW)
const YESTERDAY = dayOf(NOW - DAY_MS)

/** What every engine promises about what the live periods are ranked from. */
export function liveFeedContract(name: string, engine: FeedOpener): void {
  const recent = (overrides: Parameters<typeof signal>[0] = {}): ReturnType<typeof signal> =>
    signal({ day: TODAY, publishedAt: NOW - HOUR_MS, ...overrides })

  describe(`the events of the live periods in ${name}`, () => {
    test('are none in an empty store', async () => {
      const { live } = await engine.open()
      expect(await live.liveEvents(NOW)).toEqual([])
    })

    test('are those published in the 30 days that end with the instant, both ends included', async () => {
      const { feed, live } = await engine.open()
      const edges = { before: NOW - 30 * DAY_MS - 1, first: NOW - 30 * DAY_MS, last: NOW, future: NOW + 1 }
      await feed.importSignals([
        ...Object.entries(edges).map(([sourceId, publishedAt]) => recent({ sourceId, publishedAt })),
        recent({ sourceId: 'no time', publishedAt: null }),
        recent({ sourceId: 'no points', points: null }),
      ])
      const events = await live.liveEvents(NOW)
      expect(events.map(({ sourceId }) => sourceId).sort()).toEqual(['first', 'last'])
    })

    test('have the values of their latest signal of today or earlier', async () => {
      const { feed, live } = await engine.open()
      await feed.importSignals([
        recent({ day: YESTERDAY, points: 1 }),
        recent({ points: 2, comments: null, url: null }),
        recent({ day: dayOf(NOW + DAY_MS), points: 3 }),
      ])
      expect(await live.liveEvents(NOW)).toEqual([
        {
          source: 'hn',
          sourceId: '1',
          title: 'a title',
          url: null,
          points: 2,
          comments: null,
          publishedAt: NOW - HOUR_MS,
          titleProvenance: 'hn:firebase-item',
        },
      ])
    })

    test('have the title their source verified where the signal itself was not vouched for', async () => {
      const { feed, live } = await engine.open()
      await feed.importSignals([
        recent({ sourceId: '1', titleProvenance: null }),
        recent({ sourceId: '2', titleProvenance: null }),
        recent({ sourceId: '3' }),
      ])
      const verified = { title: 'as its source gives it', provenance: 'hn:asked' }
      await feed.saveVerifiedTitle('hn', '1', verified, NOW)
      await feed.saveVerifiedTitle('hn', '3', verified, NOW)
      const events = await live.liveEvents(NOW)
      const titles = events.map(({ sourceId, title, titleProvenance }) => [sourceId, title, titleProvenance])
      expect(titles.sort()).toEqual([
        ['1', 'as its source gives it', 'hn:asked'],
        ['2', 'a title', null],
        ['3', 'a title', 'hn:firebase-item'],
      ])
    })

    test('keep their own title where the one their source gives is longer than an event may have', async () => {
      const { feed, live, items } = await engine.open()
      await feed.importSignals([recent({ sourceId: '1', titleProvenance: null })])
      await feed.saveVerifiedTitle('hn', '1', { title: '😀'.repeat(1_001), provenance: 'hn:asked' }, NOW)
      const [event] = await live.liveEvents(NOW)
      expect(event).toMatchObject({ title: 'a title', titleProvenance: null })
      expect((await items.item('hn-1'))?.title).toBe('a title')
    })

    test('are all there however many they are', async () => {
      const { feed, live } = await engine.open()
      const many = Array.from({ length: 5_000 }, (_, index) =>
        recent({ sourceId: String(index), titleProvenance: null }),
      )
      await feed.importSignals(many)
      const events = await live.liveEvents(NOW)
      expect(new Set(events.map(({ sourceId }) => sourceId)).size).toBe(5_000)
    })

    test('are refused when a stored text is not valid UTF-8', async () => {
      const { feed, live, raw } = await engine.open()
      await feed.importSignals([recent()])
      await raw().execute("UPDATE signals SET title = CAST(x'c328' AS TEXT)")
      await expect(live.liveEvents(NOW)).rejects.toMatchObject(DAMAGED)
    })
  })

  describe(`the details of items in ${name}`, () => {
    const details = (sourceId: string): ItemDetails => ({
      source: 'lobsters',
      sourceId,
      author: 'Größe "x"',
      tags: ['c', 'a, b', '\u0001'],
      description: 'one\ntwo 😀',
      collectedAt: NOW,
    })

    test('are given for the events asked for, by save key, as they were stored', async () => {
      const { feed, live } = await engine.open()
      await feed.saveDetails([
        details('a'),
        details('b'),
        { ...details('c'), author: null, tags: [], description: null },
      ])
      const events = ['a', 'c', 'unknown'].map((sourceId) => ({ source: 'lobsters', sourceId }))
      expect(await live.details(events)).toEqual(
        new Map([
          ['lobsters-a', details('a')],
          ['lobsters-c', { ...details('c'), author: null, tags: [], description: null }],
        ]),
      )
      expect(await live.details([])).toEqual(new Map())
    })

    test('are given however many and however long they are', async () => {
      const { feed, live } = await engine.open()
      const many = Array.from({ length: 1_200 }, (_, index) => ({
        ...details(String(index)),
        description: 'x'.repeat(10_000),
      }))
      for (let start = 0; start < many.length; start += 200)
        await feed.saveDetails(many.slice(start, start + 200))
      const found = await live.details(many)
      expect(found.size).toBe(1_200)
      expect(found.get('lobsters-1199')?.description).toHaveLength(10_000)
    })
  })
}
