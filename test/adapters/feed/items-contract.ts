import { describe, expect, test } from 'vitest'
import { refresh } from '../../support/indexing.ts'
import { signal } from '../../support/signals.ts'
import type { FeedOpener } from './open-feed.ts'

/** What every engine of the feed promises about single items. */
export function itemsContract(name: string, engine: FeedOpener): void {
  describe(`single items in ${name}`, () => {
    test('are given at their latest signal, with what their source says of them', async () => {
      const { feed } = await engine.open()
      await feed.importSignals([
        signal({
          source: 'hype:github',
          sourceId: 'a/b',
          day: '2026-03-01',
          title: 'old',
          points: 1,
          titleProvenance: null,
        }),
        signal({
          source: 'hype:github',
          sourceId: 'a/b',
          day: '2026-03-03',
          title: 'new “漢” 😀',
          points: 5,
          comments: null,
          titleProvenance: null,
        }),
      ])
      await feed.saveDetails([
        {
          source: 'hype:github',
          sourceId: 'a/b',
          author: 'a',
          tags: ['x', 'y'],
          description: 'd',
          collectedAt: 1,
        },
      ])
      expect(await feed.item('hype-github-a/b')).toEqual({
        key: 'hype-github-a/b',
        source: 'hype:github',
        sourceId: 'a/b',
        title: 'new “漢” 😀',
        url: 'https://example.org/1',
        discussionUrl: null,
        day: '2026-02-28',
        publishedAt: '2026-02-28T12:00:00.000Z',
        firstDay: '2026-03-01',
        lastDay: '2026-03-03',
        points: 5,
        comments: null,
        author: 'a',
        tags: ['x', 'y'],
        description: 'd',
      })
      await feed.saveVerifiedTitle(
        'hype:github',
        'a/b',
        { title: 'verified', provenance: 'hype:github:search' },
        1,
      )
      expect((await feed.item('hype-github-a/b'))?.title).toBe('verified')
    })

    test('that vouch for their own title keep it, and those nothing is known of have nothing', async () => {
      const { feed } = await engine.open()
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
      'are none under the key %j',
      async (key) => {
        const { feed } = await engine.open()
        await feed.importSignals([signal()])
        expect(await feed.item(key)).toBeNull()
      },
    )

    test('change the revision with every signal and every text, once the index has them', async () => {
      const { feed, index } = await engine.open()
      const seen: (string | null)[] = []
      const look = async (): Promise<void> => {
        seen.push(await feed.revision())
        await refresh(index)
        seen.push(await feed.revision())
      }
      await look()
      await feed.importSignals([signal()])
      await look()
      await feed.saveArticles([
        { source: 'hn', sourceId: '1', text: 'text', provenance: 'test:test', fetchedAt: 1 },
      ])
      await look()
      await feed.saveArticles([
        { source: 'hn', sourceId: '1', text: 'another', provenance: 'test:test', fetchedAt: 1 },
      ])
      await look()
      const [first, , imported, indexed, textStored, textIndexed, textChanged, changeIndexed] = seen
      expect([imported, textStored, textChanged]).toEqual([null, null, null])
      expect(new Set([first, indexed, textIndexed, changeIndexed]).size).toBe(4)
      expect(seen.at(-1)).toBe(await feed.revision())
    })
  })
}
