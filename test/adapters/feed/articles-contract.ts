import { describe, expect, test } from 'vitest'
import type { Article, ArticleQuery, FailedAttempt } from '../../../src/domain/feed/article.ts'
import { signal } from '../../support/signals.ts'
import { counts } from './import-contract.ts'
import type { FeedOpener, OpenFeed } from './open-feed.ts'

const NOW = Date.UTC(2026, 2, 2)

const WISH: ArticleQuery = {
  minPoints: { hn: 10, lobsters: 5 },
  seenSince: '2026-03-01',
  at: NOW,
  limit: 100,
}

const failedTry = (changes: Partial<FailedAttempt> = {}): FailedAttempt => ({
  source: 'hn',
  sourceId: '1',
  tries: 1,
  reason: 'it answered 500',
  triedAt: NOW - 1,
  nextTryAt: NOW + 1,
  ...changes,
})

const wantedIds = async ({ feed }: OpenFeed, changes: Partial<ArticleQuery> = {}): Promise<string[]> =>
  (await feed.itemsNeedingText({ ...WISH, ...changes })).map(
    ({ source, sourceId }) => `${source} ${sourceId}`,
  )

/** Contract of every feed engine: article texts. */
export function articlesContract(name: string, engine: FeedOpener): void {
  describe(`article texts in ${name}`, () => {
    test('the feed reports which items have article texts', async () => {
      const { feed } = await engine()
      expect(await feed.storedItems([])).toEqual([])
      const [one, two] = [
        { source: 'hype:hf-papers', sourceId: '1' },
        { source: 'hn', sourceId: 'ä "2"' },
      ]
      await feed.importSignals([signal(one), signal(two), signal({ sourceId: '3' })])
      const found = await feed.storedItems([one, two, { source: 'hype:hf', sourceId: 'papers-1' }])
      expect(found).toHaveLength(2)
      expect(found).toEqual(expect.arrayContaining([one, two]))
    })

    test('article texts are returned as stored, each by its own source and id', async () => {
      const { feed, another } = await engine()
      expect(await feed.article('hn', '1')).toBeNull()
      expect(await feed.saveArticles([])).toEqual(counts(0, 0, 0))
      const provenance = 'page:readability https://e.org/'
      const kept = [
        article({ text: 'Größe “quoted” \\ 漢字 😀\n\nb "x"' }),
        article({ source: 'lobsters', text: 'another', fetchedAt: 0 }),
        article({ source: 'hype:github', sourceId: 'owner/name', provenance }),
      ]
      expect(await feed.saveArticles(kept)).toEqual(counts(3, 0, 0))
      for (const each of kept) expect(await another().feed.article(each.source, each.sourceId)).toEqual(each)
      expect(await feed.article('lobsters', 'owner/name')).toBeNull()
    })

    test.each<[string, Partial<Article>]>([
      ['text', { text: 'another' }],
      ['letter case of the text', { text: 'A TEXT' }],
      ['provenance', { provenance: 'page:readability' }],
      ['fetchedAt, later', { fetchedAt: NOW }],
      ['fetchedAt, earlier', { fetchedAt: 1 }],
    ])('an article text is replaced in its row by a later one with another %s', async (_what, change) => {
      const { feed, raw } = await engine()
      await feed.saveArticles([article()])
      const { rows: before } = await raw().execute('SELECT id FROM articles')
      expect(await feed.saveArticles([article(change)])).toEqual(counts(0, 1, 0))
      expect(await feed.article('hn', '1')).toEqual(article(change))
      expect(await feed.saveArticles([article(change)])).toEqual(counts(0, 0, 1))
      expect((await raw().execute('SELECT id FROM articles')).rows).toEqual(before)
    })

    test('article texts of the largest size are stored, twenty at once', { timeout: 60_000 }, async () => {
      const { feed } = await engine()
      const text = '😀'.repeat(60_000)
      const batch = Array.from({ length: 20 }, (_, index) => article({ sourceId: String(index), text }))
      expect(await feed.saveArticles(batch)).toEqual(counts(20, 0, 0))
      expect((await feed.article('hn', '19'))?.text).toBe(text)
    })
  })

  describe(`items without a text in ${name}`, () => {
    test('an item without a text has the points of its latest signal, and was seen recently', async () => {
      const opened = await engine()
      await opened.feed.importSignals([
        signal({ sourceId: 'at', points: 10 }),
        signal({ sourceId: 'below', points: 9 }),
        signal({ sourceId: 'unknown', points: null }),
        signal({ sourceId: 'rose', points: 1, day: '2026-02-28' }),
        signal({ sourceId: 'rose', points: 30 }),
        signal({ sourceId: 'fell', points: 30, day: '2026-02-28' }),
        signal({ sourceId: 'fell', points: 1 }),
        signal({ source: 'lobsters', sourceId: 'own', points: 5 }),
        signal({ source: 'lesswrong', sourceId: 'not named', points: 500 }),
        signal({ sourceId: 'old', points: 10, day: '2026-02-28' }),
        signal({ sourceId: 'read', points: 10 }),
      ])
      await opened.feed.saveArticles([
        article({ sourceId: 'read' }),
        article({ source: 'lobsters', sourceId: 'at' }),
      ])
      expect((await wantedIds(opened)).sort()).toEqual(['hn at', 'hn rose', 'lobsters own'])
      expect(await wantedIds(opened, { minPoints: {} })).toEqual([])
      expect(await wantedIds(opened, { seenSince: '2026-02-28' })).toContain('hn old')
    })

    test('items without a text are listed best first, alternating between the sources, up to the limit', async () => {
      const opened = await engine()
      await opened.feed.importSignals([
        ...[11, 13, 12].map((points) => signal({ sourceId: String(points), points })),
        ...[6, 7].map((points) => signal({ source: 'lobsters', sourceId: String(points), points })),
      ])
      expect(await wantedIds(opened)).toEqual(['hn 13', 'lobsters 7', 'hn 12', 'lobsters 6', 'hn 11'])
      expect(await wantedIds(opened, { limit: 3 })).toEqual(['hn 13', 'lobsters 7', 'hn 12'])
    })

    test('items without a text are listed with their failed attempts and with their link unless it is too long', async () => {
      const { feed } = await engine()
      await feed.importSignals([
        signal({ sourceId: '1', points: 30 }),
        signal({ sourceId: '2', points: 20, url: null }),
        signal({ sourceId: '3', points: 10, url: `https://example.org/${'x'.repeat(2_048)}` }),
      ])
      await feed.recordFailedAttempt(failedTry({ tries: 3, nextTryAt: NOW }))
      expect(await feed.itemsNeedingText(WISH)).toEqual([
        { source: 'hn', sourceId: '1', url: 'https://example.org/1', tries: 3 },
        { source: 'hn', sourceId: '2', url: null, tries: 0 },
        { source: 'hn', sourceId: '3', url: null, tries: 0 },
      ])
    })

    test('an item is not listed after a failed attempt until the next one, which may be never; a text deletes its attempts', async () => {
      const opened = await engine()
      await opened.feed.importSignals(['1', '2', '3'].map((sourceId) => signal({ sourceId })))
      await opened.feed.recordFailedAttempt(failedTry())
      await opened.feed.recordFailedAttempt(failedTry({ sourceId: '2', nextTryAt: null }))
      expect(await wantedIds(opened)).toEqual(['hn 3'])
      expect(await wantedIds(opened, { at: NOW + 1 })).toEqual(['hn 1', 'hn 3'])
      await opened.feed.recordFailedAttempt(failedTry({ tries: 2, nextTryAt: null }))
      expect(await wantedIds(opened, { at: Number.MAX_SAFE_INTEGER })).toEqual(['hn 3'])
      await opened.feed.saveArticles([article()])
      const { rows } = await opened.raw().execute('SELECT source_id FROM article_tries')
      expect(rows.map((row) => row['source_id'])).toEqual(['2'])
    })
  })
}

/** An article text with default values. */
function article(overrides: Partial<Article> = {}): Article {
  return {
    source: 'hn',
    sourceId: '1',
    text: 'a text',
    provenance: 'hn:item-text',
    fetchedAt: Date.UTC(2026, 2, 1, 12),
    ...overrides,
  }
}
