import { describe, expect, test } from 'vitest'
import { PAGED_ITEMS_MAX } from '../../../src/domain/feed/search/search.ts'
import { DAY_MS, startOfDay } from '../../../src/domain/time.ts'
import { searchQuery } from '../../support/signals.ts'
import { filled, titled, titlesOf, walk } from './filled-search.ts'
import type { FeedOpener } from './open-feed.ts'

const HOUR_MS = DAY_MS / 24
const DAY = '2026-03-01'
const MORNING = startOfDay(DAY) + HOUR_MS

/** Contract of every feed engine: the orders and the number of the items of a search. */
export function searchSortContract(name: string, engine: FeedOpener): void {
  describe(`the order of a search in ${name}`, () => {
    test('the newest items come first, by their time and without one by their day, and only those with all words', async () => {
      const { search } = await filled(engine, [
        titled('rust at noon', { publishedAt: MORNING + 11 * HOUR_MS, points: 1 }),
        titled('rust of no time', { publishedAt: null, points: 5_000 }),
        titled('rust', { publishedAt: MORNING - DAY_MS, points: null }),
        titled('rustic in the morning', { publishedAt: MORNING, points: 7 }),
        titled('rust of the day after', { publishedAt: MORNING + DAY_MS, points: 6 }),
        titled('cooks', { publishedAt: MORNING + 2 * DAY_MS }),
      ])
      const newest = [
        'rust of the day after',
        'rust at noon',
        'rustic in the morning',
        'rust of no time',
        'rust',
      ]
      expect(await titlesOf(search, 'rust', { sort: 'newest' })).toEqual(newest)
      expect(await titlesOf(search, 'rust', { sort: 'newest', from: DAY, to: DAY })).toEqual(
        newest.slice(1, 4),
      )
      expect(await titlesOf(search, 'rust cooks', { sort: 'newest' })).toEqual([])
      expect(await titlesOf(search, '', { sort: 'newest' })).toEqual([])
    })

    test('the items with most points come first, the newest of equal ones, and unknown points last', async () => {
      const { search } = await filled(engine, [
        titled('rust one', { points: 10 }),
        titled('rust two', { points: null, day: '2026-03-09' }),
        titled('rust three', { points: 10, day: '2026-03-02' }),
        titled('rust four', { points: -3, source: 'lesswrong' }),
        titled('rusty five', { points: 900 }),
        titled('rust', { points: 0 }),
      ])
      const query = searchQuery('rust', { sort: 'points' })
      expect((await search.search(query)).items.map(({ title, match }) => [title, match])).toEqual([
        ['rusty five', 'prefix'],
        ['rust three', 'all'],
        ['rust one', 'all'],
        ['rust', 'all'],
        ['rust four', 'all'],
        ['rust two', 'all'],
      ])
      expect(await titlesOf(search, 'rust', { sort: 'points', sources: ['lesswrong'] })).toEqual([
        'rust four',
      ])
    })

    test('every order is the same by pages of every size, and a cursor belongs to one order', async () => {
      const opened = await filled(
        engine,
        Array.from({ length: 230 }, (_, at) =>
          titled(`${at % 3 === 0 ? 'rusty' : 'rust'} ${'filler '.repeat(at % 7)}`, {
            points: at % 5 === 0 ? null : at % 11,
            publishedAt: at % 4 === 0 ? null : MORNING + (at % 13) * HOUR_MS,
          }),
        ),
      )
      const { feed, search } = opened
      const texts = Array.from({ length: 60 }, (_, at) => titled(`other ${at}`, { points: at % 7 }))
      await feed.importSignals(texts)
      await feed.saveArticles(
        texts.map(({ sourceId }, at) => ({
          source: 'hn',
          sourceId,
          text: `${'rust '.repeat(1 + (at % 9))}${'filler '.repeat(at % 40)}`,
          provenance: 'hn:test',
          fetchedAt: 1,
        })),
      )
      for (const sort of ['relevance', 'newest', 'points'] as const) {
        const ranking = await walk(search, 'rust', 100, { sort })
        expect(ranking).toHaveLength(290)
        expect(new Set(ranking).size).toBe(290)
        for (const limit of [7, 50]) expect(await walk(search, 'rust', limit, { sort })).toEqual(ranking)
        const { cursor } = await search.search(searchQuery('rust', { sort }))
        const other = sort === 'newest' ? 'points' : 'newest'
        const refused = search.search(searchQuery('rust', { sort: other, cursor }))
        await expect(refused).rejects.toMatchObject({ code: 'invalid_cursor' })
      }
    })

    test('a search counts the items with all words, in titles and texts, up to those that its pages reach', async () => {
      const { feed, search } = await filled(engine, [
        ...Array.from({ length: PAGED_ITEMS_MAX }, (_, at) => titled(`rust ${at}`, { points: at })),
        titled('cooks at sea', { sourceId: 'text' }),
      ])
      const totalOf = async (query: string, overrides = {}): Promise<number | null> =>
        (await search.search(searchQuery(query, { limit: 1, ...overrides }))).total
      expect(await totalOf('rust')).toBe(PAGED_ITEMS_MAX)
      const text = { text: 'rust rust', provenance: 'hn:test', fetchedAt: 1 }
      await feed.saveArticles(['text', '1'].map((sourceId) => ({ source: 'hn', sourceId, ...text })))
      expect(await totalOf('rust')).toBe(null)
      for (const sort of ['relevance', 'newest', 'points'] as const) {
        expect(await totalOf('rust', { sort, minPoints: 990 })).toBe(10)
        expect(await totalOf('rust cooks', { sort })).toBe(1)
        expect(await totalOf('rust zebra', { sort })).toBe(0)
        expect(await totalOf('ru', { sort, minPoints: 995 })).toBe(5)
      }
    })

    test('for one word the known story comes first, by the points of its source; for more words the closer title does', async () => {
      const { search } = await filled(engine, [
        titled('Postgres', { points: 1 }),
        titled('Postgres tips', { points: 30 }),
        titled('How the postgres of a bank went down', { points: 5_000 }),
        titled('Tips after a postgres outage by those who watched', { points: 200 }),
        titled('A postgres outage told by those who mended', { points: 150, source: 'lobsters' }),
        titled('Postgres below zero', { points: -9, source: 'lesswrong' }),
        titled('Postgres of an unknown source', { points: 9_999, source: 'hype:other' }),
        titled('Postgres of unknown points', { points: null }),
      ])
      const found = await titlesOf(search, 'postgres')
      expect(found).toHaveLength(8)
      expect(found.slice(0, 5)).toEqual([
        'Postgres',
        'How the postgres of a bank went down',
        'A postgres outage told by those who mended',
        'Tips after a postgres outage by those who watched',
        'Postgres tips',
      ])
      expect((await titlesOf(search, 'tips postgres'))[0]).toBe('Postgres tips')
    })
  })
}
