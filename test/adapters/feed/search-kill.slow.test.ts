import { describe, expect, test } from 'vitest'
import { builtModule, runScript } from '../../support/compiled-sources.ts'
import { asking, rebuild, refresh } from '../../support/indexing.ts'
import { signal } from '../../support/signals.ts'
import { openFeed } from './open-feed.ts'

/** Refreshes or rebuilds in another process, and says each step it has taken. */
const INDEXER = `
  import { database } from '${builtModule('adapters/sqlite/database.js')}'
  import { migrationsOf } from '${builtModule('adapters/sqlite/migrate.js')}'
  import { libsqlSearchIndex } from '${builtModule('adapters/feed/search-index.js')}'
  const [, url, what] = process.argv
  const location = { url, authToken: null }
  const opened = database({ location, store: 'feed', migrationsFolder: migrationsOf('feed'), nativeBusyMs: 5000, retryMs: 5000 })
  const index = libsqlSearchIndex(opened)
  const build = what === 'rebuild' ? await index.beginRebuild() : null
  console.log('begun')
  for (let done = false; !done; ) {
    ;({ done } = build === null ? await index.refresh() : await index.rebuild(build))
    console.log('step')
  }
  console.log('done')`

/** More than one step takes in. */
const EVENTS = 4_500

describe.each(['refresh', 'rebuild'])('a %s that is killed', (what) => {
  test.each([0, 1])('after %i steps leaves an index that the next refresh makes right', async (steps) => {
    const { feed, search, index, raw, path } = await openFeed()
    const signals = Array.from({ length: EVENTS }, (_, at) =>
      signal({ sourceId: `${at}`, title: `number ${at} of many` }),
    )
    await feed.importSignals(signals)
    if (what === 'rebuild') await refresh(index)
    const child = runScript(INDEXER, [`file:${path}`, what])
    for (let at = 0; at <= steps; at += 1) await child.line()
    child.kill()
    expect((await child.ended).signal).toBe('SIGKILL')
    await feed.importSignals([signal({ sourceId: '7', title: 'changed since' })])
    await refresh(index)
    const counted = async (): Promise<unknown> => {
      const { rows } = await raw().execute('SELECT active FROM search_state')
      const set = rows[0]?.[0] === 'b' ? 'b' : 'a'
      const tables = [`search_documents_${set}`, `search_titles_${set}`]
      const counts = tables.map((table) => `(SELECT count(*) FROM ${table})`).join(', ')
      return Object.values(
        (await raw().execute(`SELECT ${counts}, (SELECT count(*) FROM search_pending)`)).rows[0] ?? {},
      )
    }
    expect(await counted()).toEqual([EVENTS, EVENTS, 0])
    expect((await search.search(asking('changed since'))).items).toMatchObject([{ key: 'hn-7' }])
    expect((await search.termTrend({ term: 'many', from: null, to: null })).mentions).toBe(EVENTS - 1)
    await rebuild(index)
    expect(await counted()).toEqual([EVENTS, EVENTS, 0])
  })
})
