import { describe, expect, test } from 'vitest'
import type { LiveSort } from '../../../src/domain/feed/columns.ts'
import { proveFeed, rankLivePeriods, sealSnapshot } from '../../../src/domain/feed/snapshot.ts'
import type { SealedSnapshot } from '../../../src/domain/feed/snapshot.ts'
import type { LiveFeedStore } from '../../../src/domain/ports.ts'
import { feedEvents, NOW } from '../../support/feed-events.ts'
import { DAMAGED } from '../../support/refusals.ts'
import type { FeedOpener } from './open-feed.ts'

const MINUTE_MS = 60_000

const sealed = (at = NOW, events = 2): SealedSnapshot =>
  sealSnapshot(rankLivePeriods(feedEvents('hn', events), at), new Map(), at)

/** What every engine promises about the snapshots it keeps. */
export function snapshotContract(name: string, engine: FeedOpener): void {
  const keep = (
    live: LiveFeedStore,
    one: SealedSnapshot,
    discardLater = false,
  ): ReturnType<LiveFeedStore['saveSnapshot']> => live.saveSnapshot(one, { discardLater })

  const expectServed = async (live: LiveFeedStore, { snapshot, payloads }: SealedSnapshot): Promise<void> => {
    expect(await live.newestSnapshot()).toEqual(snapshot)
    for (const feed of snapshot.feeds) {
      const bytes = proveFeed(snapshot.id, feed, await live.snapshotFeed(snapshot.id, feed))
      expect(Buffer.from(bytes).equals(payloads.get(feed.sort) ?? new Uint8Array())).toBe(true)
    }
  }

  describe(`snapshots in ${name}`, () => {
    test('are none at first', async () => {
      const { live } = await engine.open()
      const [feed] = sealed().snapshot.feeds
      expect(await live.newestSnapshot()).toBeNull()
      expect(feed && (await live.snapshotFeed(sealed().snapshot.id, feed))).toBeNull()
    })

    test('are read back byte for byte, also through another connection, and stored once', async () => {
      const { live, another, raw } = await engine.open()
      expect(await keep(live, sealed())).toEqual({ saved: true, removed: 0 })
      expect(await keep(live, sealed())).toEqual({ saved: true, removed: 0 })
      await expectServed(another().live, sealed())
      const { rows } = await raw().execute('SELECT count(*) AS n FROM snapshot_feeds')
      expect(rows[0]?.['n']).toBe(4)
    })

    test('are kept in parts when their payloads are long', async () => {
      const { live } = await engine.open()
      const one = sealed()
      const payloads = new Map<LiveSort, Uint8Array>()
      const feeds = one.snapshot.feeds.map((feed, index) => {
        const bytes = Buffer.alloc(index * 1024 * 1024 + (index % 2), `${index}abc`)
        payloads.set(feed.sort, index === 0 ? Buffer.from('x') : bytes)
        return { ...feed, byteSize: payloads.get(feed.sort)?.byteLength ?? 0 }
      })
      await keep(live, { ...one, snapshot: { ...one.snapshot, feeds }, payloads })
      for (const feed of feeds) {
        const bytes = await live.snapshotFeed(one.snapshot.id, feed)
        expect(Buffer.from(bytes ?? []).equals(payloads.get(feed.sort) ?? new Uint8Array())).toBe(true)
      }
    })

    test('are the newest ten, parts and all, and the newest is the one of the latest instant', async () => {
      const { live, raw } = await engine.open()
      const all = Array.from({ length: 13 }, (_, index) => sealed(NOW + index * MINUTE_MS))
      const removed: unknown[] = []
      for (const one of all) removed.push(await keep(live, one))
      expect(removed.slice(9)).toEqual([
        { saved: true, removed: 0 },
        ...Array.from({ length: 3 }, () => ({ saved: true, removed: 1 })),
      ])
      const last = all.at(-1) ?? sealed()
      await expectServed(live, last)
      const { rows } = await raw().execute(
        'SELECT count(*) AS n, count(DISTINCT snapshot_id) AS ids FROM snapshot_feeds',
      )
      expect([rows[0]?.['n'], rows[0]?.['ids']]).toEqual([40, 10])
    })

    test.each([0, 1, 5 * MINUTE_MS + 1])(
      'are not stored unless they are later: the newest is %i ms ahead, and goes only on demand',
      async (ahead) => {
        const { live, raw } = await engine.open()
        const later = sealed(NOW + ahead, 3)
        const newest = { id: later.snapshot.id, generatedAt: NOW + ahead }
        await keep(live, later)
        expect(await keep(live, sealed())).toEqual({ saved: false, newest })
        await expectServed(live, later)
        const { rows } = await raw().execute('SELECT count(*) AS n FROM snapshot_feeds')
        expect(rows[0]?.['n']).toBe(4)
        if (ahead === 0) return
        expect(await keep(live, sealed(), true)).toEqual({ saved: true, removed: 1 })
        await expectServed(live, sealed())
      },
    )

    test('do not take the place of one of ten later ones', async () => {
      const { live, raw } = await engine.open()
      for (let index = 1; index <= 10; index += 1) await keep(live, sealed(NOW + index))
      expect(await keep(live, sealed())).toMatchObject({ saved: false, newest: { generatedAt: NOW + 10 } })
      const { rows } = await raw().execute('SELECT count(*) AS n, min(generated_at) AS first FROM snapshots')
      expect([rows[0]?.['n'], rows[0]?.['first']]).toEqual([10, NOW + 1])
      expect(await keep(live, sealed(), true)).toEqual({ saved: true, removed: 10 })
    })

    test.each(['9007199254740991', '9223372036854775807', 'generated_at + 1', '8640000000000000'])(
      'are refused and told of when their time is damaged (%s), until they are discarded',
      async (damage) => {
        const { live, raw } = await engine.open()
        const { id } = sealed().snapshot
        await keep(live, sealed())
        await raw().execute(`UPDATE snapshots SET generated_at = ${damage}`)
        await expect(live.newestSnapshot()).rejects.toMatchObject(DAMAGED)
        const damaged = { saved: false, newest: { id, generatedAt: null } }
        expect(await keep(live, sealed())).toEqual(damaged)
        expect(await keep(live, sealed(NOW + 1, 3))).toEqual(damaged)
        expect(await keep(live, sealed(), true)).toEqual({ saved: true, removed: 1 })
        await expectServed(live, sealed())
      },
    )

    test('have no bytes where a part is gone, and refuse where the row that describes them is damaged', async () => {
      const { live, raw } = await engine.open()
      await keep(live, sealed())
      const [feed] = sealed().snapshot.feeds
      await raw().execute("DELETE FROM snapshot_feeds WHERE sort = 'trending'")
      expect(feed && (await live.snapshotFeed(sealed().snapshot.id, feed))).toBeNull()
      for (const damage of [
        "'[]'",
        "'nonsense'",
        `'[["day","${'0'.repeat(64)}",-1]]'`,
        "CAST(x'c328' AS TEXT)",
      ]) {
        await raw().execute(`UPDATE snapshots SET feeds = ${damage}`)
        await expect(live.newestSnapshot()).rejects.toMatchObject(DAMAGED)
      }
      const next = sealed(NOW + 1)
      expect(await keep(live, next)).toMatchObject({ saved: true })
      await expectServed(live, next)
    })
  })
}
