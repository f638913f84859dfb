import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Signal } from '../../../src/domain/feed/signal.ts'
import { hasTerms, parseSearchText } from '../../../src/domain/feed/search/search-terms.ts'
import { indexedWords } from '../../../src/domain/feed/search/tokenize.ts'
import { formatInstant, startOfDay } from '../../../src/domain/time.ts'
import type { Day } from '../../../src/domain/time.ts'
import { quiet, searchQuery } from '../../support/signals.ts'
import { DAMAGED, UNAVAILABLE } from '../../support/refusals.ts'
import type { FeedOpener, OpenFeed } from './open-feed.ts'
import { filled, titled, titlesOf } from './filled-search.ts'
import { searchSortContract } from './search-sort-contract.ts'
import { anyText } from '../../support/any-text.ts'

async function saveText({ feed }: OpenFeed, sourceId: string, text: string): Promise<void> {
  await feed.saveArticles([{ source: 'hn', sourceId, text, provenance: 'hn:test', fetchedAt: 1 }])
}

/** Titles whose words readers see otherwise than by spaces: one of each script and each sign. */
const TITLES: Signal[] = [
  'クラウドサーバーの作り方',
  '半角ｻｰﾊﾞｰ運用',
  '서버를 운영하다',
  'ภาษาไทยกับคอมพิวเตอร์',
  '深度学习模型训练',
  "Google's new phone",
  'Google’s old phone',
  'C++20 and C++ modules',
  'C for fun',
  'Node.js 22',
  'GPT-5.5 is out',
  'Micro\u00adservices guide',
  'Iğdır ve İstanbul',
].map((title) => titled(title))

const READERS_WORDS = [
  'サーバー',
  '서버',
  'คอมพิวเตอร์',
  '学习',
  "google's phone",
  'c++',
  'c',
  'nodejs',
  'gpt-5.5',
  'microservices',
  'istanbul igdir',
  '"new phone"',
  'phon*',
  '训',
]

const LONG_TITLE = Array.from({ length: 40 }, (_, at) => `word${at}`).join(' ')

/** Contract of every feed engine: search, similar items and trends. */
export function searchContract(name: string, engine: FeedOpener): void {
  queryContract(name, engine)
  searchSortContract(name, engine)
  relationContract(name, engine)
  indexContract(name, engine)
}

function queryContract(name: string, engine: FeedOpener): void {
  describe(`the search in ${name}`, () => {
    test('the search finds nothing in an empty feed, and no item', async () => {
      const { search } = await engine()
      expect(await search.search(searchQuery('rust'))).toEqual({ items: [], cursor: null, total: 0 })
      const trend = await search.termTrend({ term: 'rust', from: null, to: null })
      expect(trend).toEqual({ mentions: 0, days: [] })
      const missing = { code: 'item_not_found' }
      await expect(search.similar('hn-1', 5)).rejects.toMatchObject(missing)
      await expect(search.similar('?', 5)).rejects.toMatchObject(missing)
      await expect(search.itemTrend('hn-1')).rejects.toMatchObject(missing)
    })

    test('the search returns items with every word first, then those with the last word as a prefix, then those with some', async () => {
      const titles = ['Postgres index scans', 'Postgres indexing', 'Postgres vacuum', 'Index cards']
      const { search } = await filled(
        engine,
        titles.map((title) => titled(title)),
      )
      const { items } = await search.search(searchQuery('postgres index'))
      expect(items.map(({ title, match }) => [title, match])).toEqual([
        ['Postgres index scans', 'all'],
        ['Postgres indexing', 'prefix'],
        ['Index cards', 'some'],
      ])
      // A phrase that no item has may be found by its words; a repeated word counts once, and a single word has no alternatives.
      expect(await titlesOf(search, '"scans postgres"')).toEqual(['Postgres index scans'])
      expect(await titlesOf(search, '"postgres index"')).toEqual(['Postgres index scans'])
      expect(await titlesOf(search, '"scans scans"')).toEqual([])
    })

    test('the search returns items with two words as one after those with the words', async () => {
      const { search } = await filled(engine, [
        titled('Opensource', { points: 900 }),
        titled('Open the source'),
        titled('The source is open'),
      ])
      const titles = await titlesOf(search, 'open source')
      expect(titles).toHaveLength(3)
      expect(titles.at(-1)).toBe('Opensource')
    })

    test('the search filters by sources and days', async () => {
      const { search } = await filled(engine, [
        titled('rust one', { day: '2026-02-01' }),
        titled('rust two', { day: '2026-02-02' }),
        titled('rust three', { day: '2026-02-03', source: 'lobsters' }),
        titled('rust four', { day: '2026-02-04', publishedAt: null }),
        titled('rust old', { day: '2026-02-04', publishedAt: startOfDay('2020-01-01') }),
      ])
      const among = async (overrides: object) => (await titlesOf(search, 'rust', overrides)).sort()
      expect(await among({ sources: ['lobsters'] })).toEqual(['rust three'])
      expect(await among({ sources: ['lobsters', 'hn'], from: '2026-02-02' })).toEqual([
        'rust four',
        'rust three',
        'rust two',
      ])
      expect(await among({ from: '2026-02-01', to: '2026-02-01' })).toEqual(['rust one'])
      expect(await among({ to: '2020-12-31' })).toEqual(['rust old'])
      expect(await among({ from: '0000-01-01', to: '9999-12-31' })).toHaveLength(5)
    })

    test('the search filters by least points and comments, on every page and in every group', async () => {
      const { search } = await filled(engine, [
        ...Array.from({ length: 30 }, (_, at) => titled(`rust ${at}`, { points: at, comments: 30 - at })),
        titled('rust unknown', { points: null, comments: null }),
        titled('rustic and crab', { points: 500, comments: 0 }),
      ])
      expect(await titlesOf(search, 'rust', { minPoints: 28 })).toEqual([
        'rust 29',
        'rust 28',
        'rustic and crab',
      ])
      expect(await titlesOf(search, 'rust', { minPoints: 1, minComments: 29 })).toEqual(['rust 1'])
      expect(await titlesOf(search, 'crab unknown')).toHaveLength(2)
      expect(await titlesOf(search, 'crab unknown', { minPoints: 1 })).toEqual(['rustic and crab'])
      expect(await titlesOf(search, 'unknown', { minPoints: 0 })).toEqual(['rust unknown'])
      expect(await titlesOf(search, 'unknown', { minComments: 1 })).toEqual([])
      const first = await search.search(searchQuery('rust', { minPoints: 20, limit: 5 }))
      const rest = await search.search(searchQuery('rust', { minPoints: 20, cursor: first.cursor }))
      expect([first.items.length, rest.items.length, rest.cursor]).toEqual([5, 6, null])
    })

    test('the search refuses a cursor of another query', async () => {
      const titles = Array.from({ length: 25 }, (_, at) => titled(`rust number ${at}`))
      const { search } = await filled(engine, titles)
      const { cursor: other } = await search.search(searchQuery('number', { limit: 10 }))
      const digest = (await search.search(searchQuery('rust', { limit: 10 }))).cursor?.split('.')[0]
      expect((await search.search(searchQuery('rust', { cursor: `${digest}.999` }))).items).toEqual([])
      for (const wrong of [other, 'x', '', 'AAAAAAAAAAAAAAAA.1', `${digest}.1000`, `${digest}.9999`]) {
        const refused = search.search(searchQuery('rust', { cursor: wrong }))
        await expect(refused).rejects.toMatchObject({ code: 'invalid_cursor' })
      }
    })

    test('searches and trends find the titles that have the terms of a query', async () => {
      const { search } = await filled(engine, TITLES)
      for (const query of READERS_WORDS) {
        const titles = TITLES.map(({ title }) => title)
        const expected = titles.filter((title) => hasTerms(indexedWords(title), parseSearchText(query)))
        const { items } = await search.search(searchQuery(query))
        const found = items.filter(({ match }) => match === 'all').map(({ title }) => title)
        expect(found.sort(), query).toEqual(expected.sort())
        expect(expected, query).not.toEqual([])
        const { mentions } = await search.termTrend({ term: query, from: null, to: null })
        expect(mentions, query).toBe(expected.length)
      }
    })

    test('the search finds the item first whose title is the text, before titles that repeat its words', async () => {
      const others = ['Google phone', 'Google’s phone', 'phone, Google phone, phone']
      const signals = [
        ...TITLES,
        ...others.map((title, at) => titled(title, { points: 500 - at })),
        titled(LONG_TITLE, { points: 1 }),
        ...[9, 5].map((points) => titled('Told twice', { points })),
        titled(`${LONG_TITLE} and one more`, { points: 900 }),
      ]
      const { search } = await filled(engine, signals)
      const firstOf = async (title: string): Promise<string | undefined> => (await titlesOf(search, title))[0]
      for (const { title } of signals) expect(await firstOf(title)).toBe(title)
      expect(await firstOf('google phone')).toBe('Google phone')
      expect(await titlesOf(search, 'google phone', { limit: 2 })).toEqual(others.slice(0, 2))
      const { items } = await search.search(searchQuery('told twice'))
      expect(items.map(({ points }) => points)).toEqual([9, 5])
    })

    test('the search accepts every text as a query', async () => {
      const { search } = await filled(engine, [titled('Robert"); DROP TABLE signals;--'), titled('plain')])
      const signs = ['"', '""', '*', ' AND ', ' OR ', ' NOT ', 'NEAR(', ')', '{title}:', '^', '-', '\0', 'a']
      const syntax = fc.constantFrom(...signs, '\u{10FFFF}', '\ud800')
      const text = fc.oneof(
        anyText({ maxLength: 80 }),
        fc.array(syntax, { maxLength: 30 }).map((parts) => parts.join('')),
        fc.constantFrom(...['"', 'a', 'a b ', '漢', '*'].map((sign) => sign.repeat(10_240 / sign.length))),
      )
      await fc.assert(
        fc.asyncProperty(text, async (query) => {
          const { items, total } = await search.search(searchQuery(query))
          expect(total).toBe(items.filter(({ match }) => match !== 'some').length)
          const { mentions } = await search.termTrend({ term: query, from: null, to: null })
          expect(Math.max(items.length, mentions)).toBeLessThanOrEqual(2)
        }),
        { numRuns: 60 },
      )
      expect(await titlesOf(search, 'robert drop table')).toEqual(['Robert"); DROP TABLE signals;--'])
    })

    test('the search finds words of the text, after those of titles, until a rebuild without the text', async () => {
      const opened = await engine()
      const { feed, search, index, raw } = opened
      const [withText, withTitle] = [titled('An article'), titled('Quicksort revisited')]
      await feed.importSignals([withText, withTitle])
      await saveText(opened, withText.sourceId, 'It explains quicksort and mergesort at length. '.repeat(50))
      expect(await titlesOf(search, 'quicksort')).toEqual(['Quicksort revisited', 'An article'])
      expect(await titlesOf(search, 'article mergesort')).toEqual(['An article'])
      expect((await search.termTrend({ term: 'quicksort', from: null, to: null })).mentions).toBe(2)
      await saveText(opened, withText.sourceId, 'It explains heapsort.')
      expect(await titlesOf(search, 'quicksort')).toEqual(['Quicksort revisited'])
      expect(await index.rebuild(quiet)).toBe(2)
      expect(await titlesOf(search, 'quicksort')).toEqual(['Quicksort revisited'])
      expect(await titlesOf(search, 'heapsort')).toEqual(['An article'])
      await raw().execute('DELETE FROM articles')
      expect(await index.rebuild(quiet)).toBe(2)
      expect(await titlesOf(search, 'heapsort')).toEqual([])
    })

    test('the search follows changes of titles, points and days', async () => {
      const { feed, search } = await engine()
      const first = titled('Old name', { points: 1 })
      await feed.importSignals([first])
      await feed.importSignals([{ ...first, day: '2026-03-02', title: 'New name', points: 9 }])
      expect(await titlesOf(search, 'old')).toEqual([])
      const { items } = await search.search(searchQuery('new name'))
      expect(items).toMatchObject([
        { title: 'New name', points: 9, day: '2026-03-01', firstDay: '2026-03-01', lastDay: '2026-03-02' },
      ])
      await feed.importSignals([
        { ...first, day: '2026-03-02', title: 'New name', publishedAt: startOfDay('2026-01-05') },
      ])
      expect((await search.search(searchQuery('new name', { to: '2026-01-31' }))).items).toHaveLength(1)
      expect((await search.search(searchQuery('new name', { from: '2026-02-01' }))).items).toHaveLength(0)
    })
  })
}

function relationContract(name: string, engine: FeedOpener): void {
  describe(`the search in ${name}`, () => {
    test('similar items are those of the same page first, then near-duplicates, then those that share two rare words', async () => {
      const { feed, search } = await engine()
      const target = titled('Understanding the Kalman filter', {
        url: 'https://www.example.com/kalman/?utm_source=hn',
      })
      const related = [
        titled('A picture book of estimation', { source: 'lobsters', url: 'http://example.com/kalman' }),
        titled('Understanding a Kalman filter'),
        titled('Kalman smoothing, understanding robots and particle methods in one evening'),
        titled('Kalman meets particles in robotics'),
      ]
      const noise = Array.from({ length: 20 }, (_, at) => titled(`The story of thing ${at}`))
      await feed.importSignals([target, ...related, ...noise])
      const similar = await search.similar(`hn-${target.sourceId}`, 10)
      expect(similar.map(({ title, reasons }) => [title, reasons])).toEqual([
        ['A picture book of estimation', ['same-discussion']],
        ['Understanding a Kalman filter', ['near-duplicate-title']],
        ['Kalman smoothing, understanding robots and particle methods in one evening', ['same-subject']],
      ])
      expect(similar[2]?.sharedWords).toEqual(['understanding', 'kalman'])
      expect(similar.map(({ score }) => score)).toEqual([0, 0.792, 0.195])
      expect(await search.similar(`hn-${target.sourceId}`, 1)).toHaveLength(1)
      expect(await search.similar(`hn-${related[2]?.sourceId}`, 1)).toHaveLength(1)
    })

    test("the item trend has points and rank by day, within the item's source", async () => {
      const { feed, search } = await engine()
      const item = titled('watched', { points: 5 })
      await feed.importSignals([
        item,
        titled('more', { points: 9 }),
        titled('equal', { points: 5 }),
        titled('unknown', { points: null }),
        titled('elsewhere', { points: 99, source: 'lobsters' }),
        { ...item, day: '2026-03-02', points: 7, comments: null },
        { ...item, day: '2026-03-03', points: null },
      ])
      expect(await search.itemTrend(`hn-${item.sourceId}`)).toEqual({
        key: `hn-${item.sourceId}`,
        title: 'watched',
        url: item.url,
        publishedAt: item.publishedAt === null ? null : formatInstant(item.publishedAt),
        days: [
          { day: '2026-03-01', points: 5, comments: 3, rank: 2, of: 3 },
          { day: '2026-03-02', points: 7, comments: null, rank: 1, of: 1 },
          { day: '2026-03-03', points: null, comments: 3, rank: null, of: 0 },
        ],
      })
    })

    test('the term trend has mentions by day', async () => {
      const { search } = await filled(engine, [
        titled('Rust one', { day: '2026-02-01' }),
        titled('Rust two, rust again', { day: '2026-02-01' }),
        titled('More rust', { day: '2026-02-03' }),
        titled('Trust', { day: '2026-02-03' }),
      ])
      const daysOf = async (term: string, from: Day | null, to: Day | null): Promise<unknown[]> => {
        const { mentions, days } = await search.termTrend({ term, from, to })
        return [mentions, ...days.map((each) => [each.day, each.mentions])]
      }
      const [first, third] = ['2026-02-01', '2026-02-03']
      expect(await daysOf('RUST', null, null)).toEqual([3, [first, 2], [third, 1]])
      expect(await daysOf('rust', '2026-02-02', null)).toEqual([1, [third, 1]])
      expect(await daysOf('"rust again"', null, '2026-02-02')).toEqual([1, [first, 1]])
    })
  })
}

function indexContract(name: string, engine: FeedOpener): void {
  describe(`the search in ${name}`, () => {
    test('searches are refused until a rebuild has ended, also one that was interrupted between its steps', async () => {
      const many = Array.from({ length: 4_500 }, (_, at) => titled(`rust number ${at}`))
      const { feed, search, index, raw } = await filled(engine, many)
      const stop = new AbortController()
      const interrupted = index.rebuild({ signal: stop.signal, onProgress: () => stop.abort() })
      await expect(interrupted).rejects.toThrow(/aborted/)
      await expect(search.search(searchQuery('rust'))).rejects.toMatchObject(UNAVAILABLE)
      const changed = { ...(many[0] ?? titled('')), title: 'changed since' }
      await feed.importSignals([titled('late'), changed])
      expect(await index.repair(quiet)).toBe(500)
      expect(await index.repair(quiet)).toBe(0)
      const tables = ['events', 'search_documents', 'search_titles']
      const counts = tables.map((table) => `(SELECT count(*) FROM ${table})`).join(', ')
      const { rows } = await raw().execute(`SELECT ${counts}`)
      expect(Object.values(rows[0] ?? {})).toEqual([4_501, 4_501, 4_501])
      expect((await search.termTrend({ term: 'rust', from: null, to: null })).mentions).toBe(4_499)
      for (const title of ['late', 'changed since']) expect(await titlesOf(search, title)).toEqual([title])
    })

    test('the index loses and duplicates nothing when two rebuilds run during imports', async () => {
      const { feed, search, index, another } = await engine()
      const other = another()
      for (let round = 0; round < 5; round += 1) {
        const signals = Array.from({ length: 20 }, (_, at) => titled(`round ${round} number ${at}`))
        await Promise.all([feed.importSignals(signals), index.rebuild(quiet), other.index.rebuild(quiet)])
      }
      await index.repair(quiet)
      const found = await search.search(searchQuery('round', { limit: 100 }))
      expect(new Set(found.items.map(({ key }) => key)).size).toBe(100)
      expect(found).toMatchObject({ cursor: null })
    })

    test('the index of another release is refused until it is repaired', async () => {
      const { search, index, raw } = await filled(engine, [titled('rust')])
      await raw().execute('UPDATE search_state SET format = 99')
      await expect(search.search(searchQuery('rust'))).rejects.toMatchObject(UNAVAILABLE)
      await expect(search.similar('hn-1', 5)).rejects.toMatchObject(UNAVAILABLE)
      const trend = search.termTrend({ term: 'rust', from: null, to: null })
      await expect(trend).rejects.toMatchObject(UNAVAILABLE)
      expect(await index.repair(quiet)).toBe(1)
      expect(await titlesOf(search, 'rust')).toEqual(['rust'])
    })

    test('the index refuses a stored title that is not valid UTF-8', async () => {
      const { search, raw } = await filled(engine, [titled('rust')])
      await raw().execute("UPDATE search_documents SET title = CAST(x'c328' AS TEXT)")
      await expect(search.search(searchQuery('rust'))).rejects.toMatchObject(DAMAGED)
    })
  })
}
