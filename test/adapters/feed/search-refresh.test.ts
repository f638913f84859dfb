import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { searchIndex } from '../../../src/adapters/feed/search-index.ts'
import type { Database } from '../../../src/adapters/sqlite/database.ts'
import { signal, searchFor, refresh } from '../../support/signals.ts'
import { openStore } from '../sqlite/lock-holder.ts'
import { openFeed } from './open-feed.ts'

/** A database that lets `before` happen once, right before its first batch. */
function interrupted(real: Database, before: () => Promise<unknown>): Database {
  let happened = false
  return {
    ...real,
    use: (work) =>
      real.use((opened) => {
        const { client } = opened
        const batch: typeof client.batch = async (...args) => {
          if (!happened) {
            happened = true
            await before()
          }
          return client.batch(...args)
        }
        return work({ ...opened, client: { ...client, batch } })
      }),
  }
}

test('a change between the read and the write of a refresh is indexed by the next step', async () => {
  const { feed, search, path } = await openFeed()
  const before = Array.from({ length: 20 }, (_, at) => signal({ sourceId: `${at}`, title: `before ${at}` }))
  await feed.importSignals(before)
  const real = openStore('feed', pathToFileURL(path).href)
  const after = before.map((each, at) => ({ ...each, title: `after ${at}` }))
  const index = searchIndex(interrupted(real, () => feed.importSignals(after)))
  expect(await refresh(index)).toBe(40)
  expect((await search.search(searchFor('before'))).items).toHaveLength(0)
  expect((await search.search(searchFor('after'))).items).toHaveLength(20)
})

test('a refresh that cannot write fails with the cause, even if it resembles a concurrent write', async () => {
  const { feed, index, raw } = await openFeed()
  await feed.importSignals([signal()])
  await raw().execute("CREATE TRIGGER broken BEFORE INSERT ON search_documents_a BEGIN SELECT json('{'); END")
  await expect(refresh(index)).rejects.toThrow(/malformed JSON/)
})
