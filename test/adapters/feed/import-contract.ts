import { describe, expect, test } from 'vitest'
import type { Signal, ImportCounts } from '../../../src/domain/feed/signal.ts'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import { signal } from '../../support/signals.ts'
import type { FeedOpener, OpenFeed } from './open-feed.ts'

const WINDOW = windowEnding('2026-03-01')

const LARGEST = Number.MAX_SAFE_INTEGER

export const counts = (inserted: number, replaced: number, unchanged: number): ImportCounts => ({
  inserted,
  replaced,
  unchanged,
})

/** Every value but the key, changed one at a time. */
const OTHER_VALUES: Partial<Signal>[] = [
  { title: 'A TITLE' },
  { url: 'https://example.org/2' },
  { url: null },
  { points: null },
  { points: 0 },
  { comments: 4 },
  { comments: null },
  { publishedAt: 1 },
  { publishedAt: null },
  { titleProvenance: 'hn:other' },
  { titleProvenance: null },
]

/** Contract of every feed engine: imports. */
export function importContract(name: string, engine: FeedOpener): void {
  describe(`the import of daily signals into ${name}`, () => {
    test('an import counts another value in any column of a stored row as replaced', async () => {
      const { feed } = await engine()
      await feed.importSignals([signal()])
      for (const change of OTHER_VALUES) {
        expect(await feed.importSignals([signal(change)]), JSON.stringify(change)).toEqual(counts(0, 1, 0))
        expect(await feed.importSignals([signal(change)])).toEqual(counts(0, 0, 1))
        expect(await feed.importSignals([signal()])).toEqual(counts(0, 1, 0))
      }
    })

    test('an import counts the rows of a batch one after the other, also those of one key', async () => {
      const { feed } = await engine()
      const [row, changed, nextDay] = [signal(), signal({ points: 0 }), signal({ day: '2026-03-02' })]
      const others = [signal({ source: 'lobsters' }), signal({ sourceId: '2' })]
      expect(await feed.importSignals([row, row, changed, nextDay, ...others])).toEqual(counts(4, 1, 1))
      expect(await feed.importSignals([changed, row, row, changed, nextDay])).toEqual(counts(0, 2, 3))
    })

    test('an import keeps text of any script and integers of any safe size', async () => {
      const { feed } = await engine()
      const values = [
        { sourceId: '007', title: '1e3', url: 'null', points: LARGEST, comments: -LARGEST },
        { sourceId: '\uFEFF', title: '\uFEFFx\u2028\u0001"\\', url: '😀', points: 0, comments: 0 },
        { sourceId: '{"a":[1]}', title: "Größe '漢字' \u202e", url: null, points: -LARGEST, comments: null },
      ]
      const rows = values.map((each) => signal(each))
      await feed.importSignals(rows)
      const { events } = await feed.readWindow(WINDOW)
      expect(events).toHaveLength(3)
      for (const each of values) expect(events).toContainEqual(expect.objectContaining(each))
      expect(await feed.importSignals(rows)).toEqual(counts(0, 0, 3))
    })

    test('an import distinguishes keys that differ in case, in width or in a trailing space', async () => {
      const { feed } = await engine()
      const idsOfOneLook = ['a', 'A', 'a ', '\u00e9', 'e\u0301', '1', '01', '1.0']
      const rows = idsOfOneLook.map((sourceId) => signal({ sourceId }))
      expect(await feed.importSignals(rows)).toEqual(counts(idsOfOneLook.length, 0, 0))
      expect((await feed.readWindow(WINDOW)).events).toHaveLength(idsOfOneLook.length)
    })

    test('an import stores a batch with its index as a whole or not at all', async () => {
      const { feed, raw } = await engine()
      await feed.ping()
      await raw().execute(`CREATE TRIGGER refuse BEFORE INSERT ON search_documents WHEN NEW.source_id = 'bad'
      BEGIN SELECT RAISE(ABORT, 'refused by the test'); END`)
      const importing = feed.importSignals([signal(), signal({ sourceId: 'bad' })])
      await expect(importing).rejects.toThrow('refused by the test')
      expect(await feed.readWindow(WINDOW)).toEqual({ events: [], observed: [] })
      expect(await feed.importSignals([signal()])).toEqual(counts(1, 0, 0))
    })
  })

  describe(`the revision of the feed in ${name}`, () => {
    const revisionOf = async ({ raw }: OpenFeed): Promise<number> =>
      Number((await raw().execute('SELECT number FROM revision')).rows[0]?.['number'])

    test('the revision grows with every import that changes something, and with no other', async () => {
      const opened = await engine()
      await opened.feed.ping()
      const rows = [signal(), signal({ sourceId: '2' })]
      const changes: [string, Signal[], boolean][] = [
        ['new rows', rows, true],
        ['the same rows', rows, false],
        ['a changed row', [signal({ points: 99 })], true],
        ['a change that is taken back at once', [signal({ points: 1 }), signal({ points: 99 })], false],
        ['nothing', [], false],
        ['another day', [signal({ day: '2026-02-28' })], true],
      ]
      for (const [what, batch, grows] of changes) {
        const before = await revisionOf(opened)
        await opened.feed.importSignals(batch)
        expect((await revisionOf(opened)) > before, what).toBe(grows)
      }
      const revision = await opened.feed.revision()
      const text = { text: 'text', provenance: 'test:test', fetchedAt: 1 }
      await opened.feed.saveArticles([{ source: 'hn', sourceId: '1', ...text }])
      expect(await opened.feed.revision()).not.toBe(revision)
    })
  })

  describe(`a large batch into ${name}`, () => {
    test(
      'a large batch is stored and read completely, with texts of any length',
      { timeout: 60_000 },
      async () => {
        const { feed } = await engine()
        // 6 MB in total: more than a server accepts in one parameter or returns in one cell.
        const rows = Array.from({ length: 400 }, (_, index) =>
          signal({ sourceId: String(index), title: `${index} ${'é'.repeat(7_500)}` }),
        )
        expect(await feed.importSignals(rows)).toEqual(counts(400, 0, 0))
        expect(await feed.importSignals([...rows, signal({ sourceId: 'x' })])).toEqual(counts(1, 0, 400))
        const { events } = await feed.readWindow(WINDOW)
        expect(new Set(events.map(({ title }) => title)).size).toBe(401)
      },
    )
  })

  describe(`stored signals in ${name}`, () => {
    test('stored signals are permanent: the database refuses to delete them', async () => {
      const { feed, raw } = await engine()
      await feed.importSignals([signal(), signal({ day: '2026-03-02' })])
      const sql = "DELETE FROM signals WHERE day = '2026-03-01'"
      await expect(raw().execute(sql)).rejects.toThrow('daily signals are kept for ever')
    })
  })
}
