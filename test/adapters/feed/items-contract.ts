import { describe, expect, test } from 'vitest'
import { feedEvent, feedEvents, signal } from '../../support/signals.ts'
import type { FeedOpener } from './open-feed.ts'
import type { ItemDetails } from '../../../src/domain/feed/live-source.ts'
import { DAMAGED } from '../../support/refusals.ts'

/** Contract of every feed engine: single items. */
export function itemsContract(name: string, engine: FeedOpener): void {
  describe(`single items in ${name}`, () => {
    test("an item is returned with its latest signal and its source's details", async () => {
      const { feed } = await engine()
      const item = { source: 'hype:github', sourceId: 'a/b' }
      const known = { author: 'a', tags: ['x', 'y'], description: 'd' }
      const latest = { title: 'new “漢” 😀', points: 5, comments: null }
      await feed.importSignals([
        signal({ ...item, day: '2026-03-01', title: 'old', points: 1, titleProvenance: null }),
        signal({ ...item, day: '2026-03-03', ...latest, titleProvenance: null }),
      ])
      await feed.saveDetails([{ ...item, ...known, collectedAt: 1 }])
      expect(await feed.item('hype-github-a/b')).toEqual({
        key: 'hype-github-a/b',
        ...item,
        ...latest,
        ...known,
        url: 'https://example.org/1',
        discussionUrl: null,
        day: '2026-02-28',
        publishedAt: '2026-02-28T12:00:00.000Z',
        firstDay: '2026-03-01',
        lastDay: '2026-03-03',
      })
      await feed.saveVerifiedTitle(item.source, item.sourceId, { title: 'verified', provenance: 'x:y' }, 1)
      expect((await feed.item('hype-github-a/b'))?.title).toBe('verified')
    })

    test('an item whose signal vouches for the title keeps it, and an unknown item has no details', async () => {
      const { feed } = await engine()
      await feed.importSignals([signal({ publishedAt: null, url: null, points: null })])
      await feed.saveVerifiedTitle('hn', '1', { title: 'another', provenance: 'hn:x' }, 1)
      expect(await feed.item('hn-1')).toMatchObject({
        title: 'a title',
        url: null,
        discussionUrl: 'https://news.ycombinator.com/item?id=1',
        day: '2026-03-01',
        publishedAt: null,
        points: null,
        author: null,
        tags: [],
        description: null,
      })
    })

    test.each(['hn-2', 'nonsense', '', 'hn-', `hn-${'1'.repeat(200)}`])(
      'no item has the key %j',
      async (key) => {
        const { feed } = await engine()
        await feed.importSignals([signal()])
        expect(await feed.item(key)).toBeNull()
      },
    )
  })
}

function details(changes: Partial<ItemDetails> = {}): ItemDetails {
  return {
    source: 'lobsters',
    sourceId: 'abc123',
    author: 'Größe “quoted” 漢字 😀',
    tags: ['programming', 'c++ "quoted", with commas', '漢'],
    description: 'One line \u2028 of text \\ and more',
    collectedAt: 1_000,
    ...changes,
  }
}

/** Contract of every feed engine: details of items. */
export function detailsContract(name: string, engine: FeedOpener): void {
  describe(`details of items in ${name}`, () => {
    test('details are returned as stored, for the requested items, by save key', async () => {
      const { feed, another } = await engine()
      const nothingKnown = details({ sourceId: 'c', author: null, tags: [], description: null })
      await feed.saveDetails([details(), details({ sourceId: 'b' }), nothingKnown])
      await feed.saveDetails([])
      const items = ['abc123', 'c', 'unknown'].map((sourceId) => ({ source: 'lobsters', sourceId }))
      expect(await another().feed.details(items)).toEqual(
        new Map([
          ['lobsters-abc123', details()],
          ['lobsters-c', nothingKnown],
        ]),
      )
      expect(await feed.details([])).toEqual(new Map())
    })

    test('details are replaced by a later or equal reading, also by one with less data, never by an earlier one', async () => {
      const { feed } = await engine()
      const stored = async (): Promise<ItemDetails[]> => [...(await feed.details([details()])).values()]
      await feed.saveDetails([details()])
      const same = details({ author: 'another' })
      await feed.saveDetails([same])
      expect(await stored()).toEqual([same])
      const later = details({ author: null, tags: [], description: null, collectedAt: 2_000 })
      await feed.saveDetails([later])
      await feed.saveDetails([details({ collectedAt: 1_999 })])
      expect(await stored()).toEqual([later])
    })

    test('details are returned in any number and of any length', async () => {
      const { feed } = await engine()
      const many = Array.from({ length: 1_200 }, (_, index) =>
        details({ sourceId: String(index), description: 'x'.repeat(10_000) }),
      )
      for (let start = 0; start < many.length; start += 200)
        await feed.saveDetails(many.slice(start, start + 200))
      const found = await feed.details(many)
      expect(found.size).toBe(1_200)
      expect(found.get('lobsters-1199')?.description).toHaveLength(10_000)
    })
  })
}

const ODD = 'Größe “quoted” \\ 漢字 😀 \u2028 \u0001 \uFEFF'

/** Contract of every feed engine: verified titles. */
export function titlesContract(name: string, engine: FeedOpener): void {
  describe(`verified titles in ${name}`, () => {
    test('verified titles are returned as verified last, by save key, for the requested events only', async () => {
      const { feed, another } = await engine()
      for (const requested of [3, 0])
        expect(await feed.verifiedTitles(feedEvents('hn', requested))).toEqual(new Map())
      const kept: [source: string, sourceId: string, title: string][] = [
        ['hn', '1', ODD],
        ['hn', '2', 'two'],
        ['lobsters', '1', 'lobsters one'],
        ['hype:github', 'owner/name', 'repo'],
      ]
      await feed.saveVerifiedTitle('hn', '1', { title: 'old', provenance: 'hn:old' }, 0)
      for (const [at, [source, sourceId, title]] of kept.entries())
        await feed.saveVerifiedTitle(source, sourceId, { title, provenance: `${source}:x` }, at)
      const requested = [...kept.filter((_, at) => at !== 1), ['hn', '3'] as const].map(
        ([source, sourceId]) => feedEvent({ source, sourceId }),
      )
      expect(await another().feed.verifiedTitles(requested)).toEqual(
        new Map([
          ['hn-1', { title: ODD, provenance: 'hn:x' }],
          ['lobsters-1', { title: 'lobsters one', provenance: 'lobsters:x' }],
          ['hype-github-owner/name', { title: 'repo', provenance: 'hype:github:x' }],
        ]),
      )
    })
  })

  describe(`the feed store in ${name}`, () => {
    test('the feed store is damaged if one of its tables is missing', async () => {
      const { feed, raw } = await engine()
      await feed.ping()
      await raw().execute('DROP TABLE verified_titles')
      await expect(feed.ping()).rejects.toMatchObject(DAMAGED)
      await expect(feed.verifiedTitles([])).rejects.toMatchObject(DAMAGED)
    })
  })
}
