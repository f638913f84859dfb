import { existsSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openFeedSearch } from '../../../src/adapters/feed/feed-search.ts'
import { searchQuery, signal } from '../../support/signals.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { holdLock, openStore } from '../sqlite/lock-holder.ts'
import { UNAVAILABLE } from '../../support/refusals.ts'
import { openFeed } from './open-feed.ts'

const FAULT = { name: 'StorageFault' }

/** The message of every worker after its start. */
const READY = "process.send({ outcome: 'ready' });"

interface ScriptedSearch {
  /** Sends a query that names a key. */
  run: (key?: string) => Promise<unknown>
  close: () => Promise<void>
}

/** Opens a search whose process has the given script as its program. */
async function scripted(script: string, timeoutMs = 30_000, starting = READY): Promise<ScriptedSearch> {
  const path = join(temporaryFolder(), 'worker.mjs')
  await writeFile(path, `${script};${starting}`)
  const url = pathToFileURL(join(temporaryFolder(), 'feed.db')).href
  const searching = openFeedSearch({
    location: { url, authToken: null },
    database: openStore('feed', url),
    timeoutMs,
    startTimeoutMs: 30_000,
    script: pathToFileURL(path),
  })
  onTestFinished(() => searching.close())
  const { itemTrend } = searching.by({ group: 'others', signal: null })
  return { run: (key = 'hn-1') => itemTrend(key), close: () => searching.close() }
}

const ANSWER = { kind: 'item-trend', key: 'hn-1' }
const ECHO = "process.send({ outcome: 'answer', value: asked })"
const STUCK = "process.on('message', () => undefined)"
const DYING = (how: string): string =>
  `process.on('message', (asked) => { if (asked.key === 'die') { ${how} } else ${ECHO} })`

describe('the search process', () => {
  test.each([
    ['throws', "throw new Error('boom')"],
    ['exits', 'process.exit(3)'],
    ['runs out of memory', 'const all = []; for (;;) all.push(new Array(1e6).fill(asked))'],
  ])('a process that %s fails only the current query, and is started again', async (_how, code) => {
    const searching = await scripted(DYING(code))
    const dying = searching.run('die')
    const next = searching.run()
    await expect(dying).rejects.toMatchObject(FAULT)
    expect(await next).toEqual(ANSWER)
    expect(await searching.run()).toEqual(ANSWER)
  })

  test('a process that exceeds the time limit is ended', async () => {
    const searching = await scripted(DYING('for (;;);'), 5_000)
    await expect(searching.run('die')).rejects.toThrow(/did not respond within 5000 ms/)
    expect(await searching.run()).toEqual(ANSWER)
  })

  test('each query has its own time limit from its turn on', async () => {
    const slow = `process.on('message', (asked) => setTimeout(() => ${ECHO}, 2_000))`
    const searching = await scripted(slow, 3_500)
    const queries = [searching.run(), searching.run()]
    expect(await Promise.all(queries)).toEqual([ANSWER, ANSWER])
  })

  test('a slow start of the process does not count against the time of a query', async () => {
    const late = `setTimeout(() => { process.on('message', (asked) => ${ECHO}); ${READY} }, 2_000)`
    const searching = await scripted(late, 1_000, '')
    expect(await searching.run()).toEqual(ANSWER)
  })

  test('every open query fails when the process is closed, and later ones are rejected', async () => {
    const searching = await scripted(STUCK)
    const queries = [searching.run(), searching.run()]
    const settled = Promise.allSettled(queries)
    await searching.close()
    for (const each of await settled) expect(each).toMatchObject({ status: 'rejected', reason: FAULT })
    await expect(searching.run()).rejects.toMatchObject(FAULT)
  })
})

describe('the search in a file', () => {
  test('the search reads the current file, also after it was replaced, and none after it was removed', async () => {
    const one = await openFeed()
    const other = await openFeed()
    await one.feed.importSignals([signal({ title: 'one' })])
    await other.feed.importSignals([signal({ title: 'other' })])
    expect((await one.search.search(searchQuery('one'))).items).toHaveLength(1)
    expect((await one.search.itemTrend('hn-1')).title).toBe('one')
    await expect(one.search.similar('hn-2', 5)).rejects.toMatchObject({ code: 'item_not_found' })
    await rename(other.path, one.path)
    expect((await one.search.search(searchQuery('one'))).items).toHaveLength(0)
    expect((await one.search.search(searchQuery('other'))).items).toHaveLength(1)
    await rm(one.path)
    await expect(one.search.search(searchQuery('other'))).rejects.toMatchObject(UNAVAILABLE)
    expect(existsSync(one.path)).toBe(false)
  })

  test('the search responds during a write, and waits for a commit', async () => {
    const { feed, search, path } = await openFeed()
    await feed.importSignals([signal({ title: 'rust' })])
    const finish = await holdLock(`file:${path}`, 'writing')
    expect((await search.search(searchQuery('rust'))).items).toHaveLength(1)
    await finish()
    const release = await holdLock(`file:${path}`, 'committing')
    const queries = search.search(searchQuery('rust'))
    await release()
    expect((await queries).items).toHaveLength(1)
  })
})
