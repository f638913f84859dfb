import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { searchIndex } from '../../../src/adapters/feed/search-index.ts'
import type { Database } from '../../../src/adapters/sqlite/database.ts'
import { signal, searchQuery, refresh } from '../../support/signals.ts'
import { openStore } from '../sqlite/lock-holder.ts'
import { openFeed } from './open-feed.ts'

/** A database that lets `before` happen once, right before its first batch. */
function interrupted(real: Database, before: () => Promise<unknown>): Database {
  let happened = false
  return {
    ...real,
    use: (work) =>
      real.use((client) => {
        const batch: typeof client.batch = async (...args) => {
          if (!happened) {
            happened = true
            await before()
          }
          return client.batch(...args)
        }
        return work({ ...client, batch })
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
  expect((await search.search(searchQuery('before'))).items).toHaveLength(0)
  expect((await search.search(searchQuery('after'))).items).toHaveLength(20)
})

test('a refresh that cannot write fails with the cause, even if it resembles a concurrent write', async () => {
  const { feed, index, raw } = await openFeed()
  await feed.importSignals([signal()])
  await raw().execute("CREATE TRIGGER broken BEFORE INSERT ON search_documents_a BEGIN SELECT json('{'); END")
  await expect(refresh(index)).rejects.toThrow(/malformed JSON/)
})

/** A database whose steps of merging each change as many rows as `changes` says in turn, then none. */
function merging(real: Database, changes: number[], merged: string[]): Database {
  return {
    ...real,
    use: (work) =>
      real.use((client) => {
        const batch: typeof client.batch = async (statements, mode) => {
          const results = await client.batch(statements, mode)
          const command = statements[1]
          if (typeof command !== 'string' || !command.includes("VALUES ('merge'")) return results
          merged.push(/search_[a-z]+/.exec(command)?.[0] ?? command)
          const counts = [0, null, changes.shift() ?? 0]
          return results.map((result, at) => {
            const count = counts[at] ?? null
            return count === null ? result : { ...result, rows: [{ 0: count, changes: count, length: 1 }] }
          })
        }
        return work({ ...client, batch })
      }),
  }
}

test('a rebuild merges a table until a step changes fewer than two rows', async () => {
  const { feed, path } = await openFeed()
  await feed.importSignals([signal()])
  const merged: string[] = []
  const index = searchIndex(merging(openStore('feed', pathToFileURL(path).href), [2, 1], merged))
  const build = await index.beginRebuild()
  while (!(await index.rebuild(build)).done) continue
  expect(merged).toEqual(['search_titles', 'search_titles', 'search_texts'])
})
