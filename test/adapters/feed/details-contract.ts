import { describe, expect, test } from 'vitest'
import { asJsonRows, selectJsonRows } from '../../../src/adapters/sqlite/rows.ts'
import type { ItemDetails } from '../../../src/domain/feed/live-source.ts'
import type { FeedOpener, OpenFeed } from './open-feed.ts'

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

const ALL_COLUMNS = 'source, source_id, author, tags, description, collected_at'
const STORED = asJsonRows(ALL_COLUMNS, `SELECT ${ALL_COLUMNS} FROM item_details ORDER BY source, source_id`)

/** Every row, as the table holds it. */
async function stored({ raw }: OpenFeed): Promise<ItemDetails[]> {
  const rows = await selectJsonRows(raw(), STORED, [], 'the details')
  return rows.map((row) => {
    const [source, sourceId, author, tags, description, collectedAt] = row as [
      string,
      string,
      string | null,
      string,
      string | null,
      number,
    ]
    return { source, sourceId, author, tags: JSON.parse(tags) as string[], description, collectedAt }
  })
}

/** What every engine of the feed promises about details of items. */
export function detailsContract(name: string, engine: FeedOpener): void {
  describe(`details of items in ${name}`, () => {
    test('are stored as they are, each under its item', async () => {
      const open = await engine.open()
      const nothingKnown = details({ source: 'hn', sourceId: '1', author: null, tags: [], description: null })
      await open.feed.saveDetails([details(), nothingKnown])
      await open.feed.saveDetails([])
      expect(await stored(open)).toEqual([nothingKnown, details()])
    })

    test('are replaced by a later or equal reading, also by one that knows less, never by an earlier one', async () => {
      const open = await engine.open()
      await open.feed.saveDetails([details()])
      const same = details({ author: 'another' })
      await open.feed.saveDetails([same])
      expect(await stored(open)).toEqual([same])
      const later = details({ author: null, tags: [], description: null, collectedAt: 2_000 })
      await open.feed.saveDetails([later])
      await open.feed.saveDetails([details({ collectedAt: 1_999 })])
      expect(await stored(open)).toEqual([later])
    })

    test('can be stored by the thousand, from several sides at once', async () => {
      const open = await engine.open()
      const other = open.another()
      const many = (collectedAt: number): ItemDetails[] =>
        Array.from({ length: 2_500 }, (_, index) => details({ sourceId: `id${index}`, collectedAt }))
      await Promise.all([open.feed.saveDetails(many(1)), other.feed.saveDetails(many(2))])
      const rows = await stored(open)
      expect([rows.length, new Set(rows.map(({ collectedAt }) => collectedAt))]).toEqual([
        2_500,
        new Set([2]),
      ])
    })
  })
}
