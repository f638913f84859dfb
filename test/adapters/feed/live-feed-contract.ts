import { describe, expect, test } from 'vitest'
import { DAY_MS, dayOf } from '../../../src/domain/time.ts'
import { signal, HOUR_MS, NOW, feedEvents } from '../../support/signals.ts'
import { DAMAGED } from '../../support/refusals.ts'
import type { FeedOpener, OpenFeed } from './open-feed.ts'
import type { LiveSort } from '../../../src/domain/feed/live-sort.ts'
import { proveFeed, sealSnapshot } from '../../../src/domain/feed/snapshot.ts'
import { rankLivePeriods } from '../../../src/domain/feed/live-sort.ts'
import type { SealedSnapshot } from '../../../src/domain/feed/snapshot.ts'
import type { FeedStore } from '../../../src/domain/ports.ts'

const TODAY = dayOf(NOW)
const YESTERDAY = dayOf(NOW - DAY_MS)

/** Contract of every feed engine: the events that the live periods are ranked from. */
export function liveFeedContract(name: string, engine: FeedOpener): void {
  const recent = (overrides: Parameters<typeof signal>[0] = {}): ReturnType<typeof signal> =>
    signal({ day: TODAY, publishedAt: NOW - HOUR_MS, ...overrides })

  describe(`the events of the live periods in ${name}`, () => {
    test('live events are those published in the 30 days that end with the instant, including both ends', async () => {
      const { feed } = await engine()
      expect(await feed.liveEvents(NOW)).toEqual([])
      const edges = { before: NOW - 30 * DAY_MS - 1, first: NOW - 30 * DAY_MS, last: NOW, future: NOW + 1 }
      await feed.importSignals([
        ...Object.entries(edges).map(([sourceId, publishedAt]) => recent({ sourceId, publishedAt })),
        recent({ sourceId: 'no time', publishedAt: null }),
        recent({ sourceId: 'no points', points: null }),
      ])
      const events = await feed.liveEvents(NOW)
      expect(events.map(({ sourceId }) => sourceId).sort()).toEqual(['first', 'last'])
    })

    test('live events have the values of their latest signal of today or earlier', async () => {
      const { feed } = await engine()
      await feed.importSignals([
        recent({ day: YESTERDAY, points: 1 }),
        recent({ points: 2, comments: null, url: null }),
        recent({ day: dayOf(NOW + DAY_MS), points: 3 }),
      ])
      const { day: _day, ...latest } = recent({ points: 2, comments: null, url: null })
      expect(await feed.liveEvents(NOW)).toEqual([latest])
    })

    test('a live event has the title verified by its source if the signal does not vouch for its own, unless it is too long for an event', async () => {
      const { feed } = await engine()
      await feed.importSignals([
        recent({ sourceId: '1', titleProvenance: null }),
        recent({ sourceId: '2', titleProvenance: null }),
        recent({ sourceId: '3' }),
        recent({ sourceId: '4', titleProvenance: null }),
      ])
      const verified = { title: 'as its source gives it', provenance: 'hn:asked' }
      for (const id of ['1', '3']) await feed.saveVerifiedTitle('hn', id, verified, NOW)
      await feed.saveVerifiedTitle('hn', '4', { ...verified, title: '😀'.repeat(1_001) }, NOW)
      const events = await feed.liveEvents(NOW)
      const titles = events.map(({ sourceId, title, titleProvenance }) => [sourceId, title, titleProvenance])
      expect(titles.sort()).toEqual([
        ['1', 'as its source gives it', 'hn:asked'],
        ['2', 'a title', null],
        ['3', 'a title', 'hn:firebase-item'],
        ['4', 'a title', null],
      ])
      expect((await feed.item('hn-4'))?.title).toBe('a title')
    })
  })
}

const MINUTE_MS = 60_000

const sealed = (at = NOW, events = 2): SealedSnapshot =>
  sealSnapshot(rankLivePeriods(feedEvents('hn', events), at), new Map(), at)

/** Contract of every feed engine: stored snapshots. */
export function snapshotContract(name: string, engine: FeedOpener): void {
  const keep = (
    store: FeedStore,
    one: SealedSnapshot,
    discardLater = false,
  ): ReturnType<FeedStore['saveSnapshot']> => store.saveSnapshot(one, { discardLater })

  const expectServed = async (store: FeedStore, { snapshot, payloads }: SealedSnapshot): Promise<void> => {
    expect(await store.newestSnapshot()).toEqual(snapshot)
    for (const feed of snapshot.feeds) {
      const bytes = proveFeed(snapshot.id, feed, await store.snapshotFeed(snapshot.id, feed))
      expect(Buffer.from(bytes).equals(payloads.get(feed.sort) ?? new Uint8Array())).toBe(true)
    }
  }

  /** How many payloads are stored, and of how many snapshots. */
  const partsOf = async (client: ReturnType<OpenFeed['raw']>): Promise<unknown[]> => {
    const sql = 'SELECT count(*), count(DISTINCT snapshot_id) FROM snapshot_feeds'
    return Array.from((await client.execute(sql)).rows[0] ?? [])
  }

  describe(`snapshots in ${name}`, () => {
    test('a snapshot is read back byte for byte, also through another connection, and stored once', async () => {
      const { feed: store, another, raw } = await engine()
      const [feed] = sealed().snapshot.feeds
      expect(await store.newestSnapshot()).toBeNull()
      expect(feed && (await store.snapshotFeed(sealed().snapshot.id, feed))).toBeNull()
      expect(await keep(store, sealed())).toEqual({ saved: true, removed: 0 })
      expect(await keep(store, sealed())).toEqual({ saved: true, removed: 0 })
      await expectServed(another().feed, sealed())
      expect(await partsOf(raw())).toEqual([4, 1])
    })

    test('a snapshot with long payloads is stored in parts', async () => {
      const { feed: store } = await engine()
      const one = sealed()
      const payloads = new Map<LiveSort, Uint8Array>()
      const feeds = one.snapshot.feeds.map((feed, index) => {
        const bytes = Buffer.alloc(index * 1024 * 1024 + (index % 2), `${index}abc`)
        payloads.set(feed.sort, index === 0 ? Buffer.from('x') : bytes)
        return { ...feed, byteSize: payloads.get(feed.sort)?.byteLength ?? 0 }
      })
      await keep(store, { ...one, snapshot: { ...one.snapshot, feeds }, payloads })
      for (const feed of feeds) {
        const bytes = await store.snapshotFeed(one.snapshot.id, feed)
        expect(Buffer.from(bytes ?? []).equals(payloads.get(feed.sort) ?? new Uint8Array())).toBe(true)
      }
    })

    test('the ten newest snapshots are kept with all parts, and the newest is the one of the latest instant', async () => {
      const { feed: store, raw } = await engine()
      const all = Array.from({ length: 13 }, (_, index) => sealed(NOW + index * MINUTE_MS))
      for (const [index, one] of all.entries())
        expect(await keep(store, one)).toEqual({ saved: true, removed: index < 10 ? 0 : 1 })
      await expectServed(store, all.at(-1) ?? sealed())
      expect(await partsOf(raw())).toEqual([40, 10])
    })

    test.each([0, 1, 5 * MINUTE_MS + 1])(
      'a snapshot must be later than the stored ones: the newest is %i ms ahead, and is deleted only on demand',
      async (ahead) => {
        const { feed: store, raw } = await engine()
        const later = sealed(NOW + ahead, 3)
        const newest = { id: later.snapshot.id, generatedAt: NOW + ahead }
        await keep(store, later)
        expect(await keep(store, sealed())).toEqual({ saved: false, newest })
        await expectServed(store, later)
        expect(await partsOf(raw())).toEqual([4, 1])
        if (ahead === 0) return
        expect(await keep(store, sealed(), true)).toEqual({ saved: true, removed: 1 })
        await expectServed(store, sealed())
      },
    )

    test.each(['9007199254740991', '9223372036854775807', 'generated_at + 1', '8640000000000000'])(
      'a snapshot with a damaged time (%s) is refused and reported until it is discarded',
      async (damage) => {
        const { feed: store, raw } = await engine()
        const { id } = sealed().snapshot
        await keep(store, sealed())
        await raw().execute(`UPDATE snapshots SET generated_at = ${damage}`)
        await expect(store.newestSnapshot()).rejects.toMatchObject(DAMAGED)
        const damaged = { saved: false, newest: { id, generatedAt: null } }
        expect(await keep(store, sealed())).toEqual(damaged)
        expect(await keep(store, sealed(NOW + 1, 3))).toEqual(damaged)
        expect(await keep(store, sealed(), true)).toEqual({ saved: true, removed: 1 })
        await expectServed(store, sealed())
      },
    )

    test('a snapshot has no bytes if a part is missing, and is refused if its row is damaged', async () => {
      const { feed: store, raw } = await engine()
      await keep(store, sealed())
      const [feed] = sealed().snapshot.feeds
      await raw().execute("DELETE FROM snapshot_feeds WHERE sort = 'trending'")
      expect(feed && (await store.snapshotFeed(sealed().snapshot.id, feed))).toBeNull()
      const texts = ['[]', 'nonsense', `[["day","${'0'.repeat(64)}",-1]]`].map((text) => `'${text}'`)
      for (const damage of [...texts, "CAST(x'c328' AS TEXT)"]) {
        await raw().execute(`UPDATE snapshots SET feeds = ${damage}`)
        await expect(store.newestSnapshot()).rejects.toMatchObject(DAMAGED)
      }
      const next = sealed(NOW + 1)
      expect(await keep(store, next)).toMatchObject({ saved: true })
      await expectServed(store, next)
    })
  })
}
