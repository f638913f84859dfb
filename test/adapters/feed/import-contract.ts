import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Signal, ImportCounts } from '../../../src/domain/feed/signal.ts'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import { signal, tripleOf } from '../../support/signals.ts'
import type { FeedOpener, OpenFeed } from './open-feed.ts'
import { anyText } from '../../support/any-text.ts'

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

/** Stores a file row by row, by the rules in decisions.md part 2. */
function naiveCounts(stored: Map<string, Signal>, rows: readonly Signal[]): ImportCounts {
  const result = counts(0, 0, 0)
  for (const row of rows) {
    const before = stored.get(tripleOf(row))
    if (!before) result.inserted += 1
    else if (JSON.stringify(before) === JSON.stringify(row)) result.unchanged += 1
    else result.replaced += 1
    stored.set(tripleOf(row), row)
  }
  return result
}

/** Contract of every feed engine: imports. */
export function importContract(name: string, engine: FeedOpener): void {
  describe(`the import of daily signals into ${name}`, () => {
    test('an import counts another value in any column of a stored row as replaced', async () => {
      const { feed } = await engine.open()
      await feed.importSignals([signal()])
      for (const change of OTHER_VALUES) {
        expect(await feed.importSignals([signal(change)]), JSON.stringify(change)).toEqual(counts(0, 1, 0))
        expect(await feed.importSignals([signal(change)])).toEqual(counts(0, 0, 1))
        expect(await feed.importSignals([signal()])).toEqual(counts(0, 1, 0))
      }
    })

    test('an import counts the same for any batches', async () => {
      const next = await engine.factory()
      const row = fc
        .record({
          source: fc.constantFrom('hn', 'lobsters'),
          sourceId: fc.constantFrom('1', '2'),
          day: fc.constantFrom('2026-03-01', '2026-03-02'),
          points: fc.constantFrom(null, 0, 1),
          publishedAt: fc.constantFrom(null, 5),
        })
        .map((values) => signal(values))
      const batches = fc.array(fc.array(row, { maxLength: 5 }), { maxLength: 4 })
      await fc.assert(
        fc.asyncProperty(batches, async (imports) => {
          const { feed, close } = await next()
          const stored = new Map<string, Signal>()
          try {
            for (const batch of imports)
              expect(await feed.importSignals(batch)).toEqual(naiveCounts(stored, batch))
          } finally {
            close()
          }
        }),
        { numRuns: 30 },
      )
    })

    test('an import keeps text of any script and integers of any safe size', async () => {
      const next = await engine.factory()
      const text = anyText({ minLength: 1 }).filter((value) => !value.includes('\0'))
      const count = fc.option(fc.maxSafeInteger())
      const event = fc.record({
        sourceId: text,
        title: text,
        url: fc.option(text),
        points: fc.maxSafeInteger(),
        comments: count,
      })
      await fc.assert(
        fc.asyncProperty(event, async (values) => {
          const { feed, close } = await next()
          try {
            await feed.importSignals([signal(values)])
            const { events } = await feed.readWindow(WINDOW)
            expect(events).toEqual([expect.objectContaining(values)])
            expect(await feed.importSignals([signal(values)])).toEqual(counts(0, 0, 1))
          } finally {
            close()
          }
        }),
        {
          numRuns: 30,
          examples: [
            [{ sourceId: '007', title: '1e3', url: 'null', points: LARGEST, comments: -LARGEST }],
            [{ sourceId: '\uFEFF', title: '\uFEFFx\u2028\u0001"\\', url: '😀', points: 0, comments: 0 }],
          ],
        },
      )
    })

    test('an import distinguishes keys that differ in case, in width or in a trailing space', async () => {
      const { feed } = await engine.open()
      const idsOfOneLook = ['a', 'A', 'a ', '\u00e9', 'e\u0301', '1', '01', '1.0']
      const rows = idsOfOneLook.map((sourceId) => signal({ sourceId }))
      expect(await feed.importSignals(rows)).toEqual(counts(idsOfOneLook.length, 0, 0))
      expect((await feed.readWindow(WINDOW)).events).toHaveLength(idsOfOneLook.length)
    })

    test('an import stores a batch with its index as a whole or not at all', async () => {
      const { feed, raw } = await engine.open()
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
      const opened = await engine.open()
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
        const { feed } = await engine.open()
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
      const { feed, raw } = await engine.open()
      await feed.importSignals([signal(), signal({ day: '2026-03-02' })])
      const sql = "DELETE FROM signals WHERE day = '2026-03-01'"
      await expect(raw().execute(sql)).rejects.toThrow('daily signals are kept for ever')
    })
  })
}
