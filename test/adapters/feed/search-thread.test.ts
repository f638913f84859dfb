import { existsSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { searchThread } from '../../../src/adapters/feed/search-thread.ts'
import type { SearchThread } from '../../../src/adapters/feed/search-thread.ts'
import type { Question } from '../../../src/adapters/feed/search-questions.ts'
import { asking, refresh } from '../../support/indexing.ts'
import { signal } from '../../support/signals.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { SEARCH_WORKER } from '../../support/workspace.ts'
import { holdLock } from '../libsql/lock-holder.ts'
import { UNAVAILABLE } from '../refusals.ts'
import { openFeed } from './open-feed.ts'

const FAULT = { name: 'StorageFault' }
const QUESTION: Question = { ask: 'item-trend', key: 'hn-1' }

/** A thread whose program is the given script; it answers with what it is asked unless the script does otherwise. */
async function scripted(script: string, timeoutMs = 30_000): Promise<SearchThread> {
  const path = join(await temporaryFolder(), 'worker.mjs')
  await writeFile(path, `import { parentPort } from 'node:worker_threads'\n${script}`)
  const data = { url: 'file:///nowhere', nativeBusyMs: 1, retryMs: 1 }
  const thread = searchThread(pathToFileURL(path), data, timeoutMs)
  onTestFinished(() => thread.close())
  return thread
}

const ECHO = "parentPort.postMessage({ outcome: 'answer', value: asked })"
const DYING = (how: string): string =>
  `parentPort.on('message', (asked) => { if (asked.key === 'die') { ${how} } else ${ECHO} })`

describe('the search thread', () => {
  test.each([
    ['throws', "throw new Error('boom')"],
    ['exits', 'process.exit(3)'],
    ['runs out of memory', 'const all = []; for (;;) all.push(new Array(1e6).fill(asked))'],
  ])('that %s fails the question in hand alone, and is started again', async (_how, code) => {
    const thread = await scripted(DYING(code))
    const dying = thread.ask({ ...QUESTION, key: 'die' })
    const next = thread.ask(QUESTION)
    await expect(dying).rejects.toMatchObject(FAULT)
    expect(await next).toEqual(QUESTION)
    expect(await thread.ask(QUESTION)).toEqual(QUESTION)
  })

  test('that does not answer in time is ended', async () => {
    const thread = await scripted(DYING('for (;;);'), 5_000)
    await expect(thread.ask({ ...QUESTION, key: 'die' })).rejects.toThrow(/no answer within 5000 ms/)
    expect(await thread.ask(QUESTION)).toEqual(QUESTION)
  })

  test('refuses what waited too long for another, which goes on', async () => {
    const thread = await scripted("parentPort.on('message', () => undefined)", 300)
    const [first, second] = await Promise.allSettled([thread.ask(QUESTION), thread.ask(QUESTION)])
    expect(first).toMatchObject({ status: 'rejected', reason: FAULT })
    expect(second).toMatchObject({ status: 'rejected' })
  })

  test('fails every open question when it is closed, and takes no more', async () => {
    const thread = await scripted("parentPort.on('message', () => undefined)")
    const asked = [thread.ask(QUESTION), thread.ask(QUESTION)]
    const settled = Promise.allSettled(asked)
    await thread.close()
    for (const each of await settled) expect(each).toMatchObject({ status: 'rejected', reason: FAULT })
    await expect(thread.ask(QUESTION)).rejects.toMatchObject(FAULT)
  })

  test('creates no database where there is none', async () => {
    const path = join(await temporaryFolder(), 'feed.db')
    const data = { url: pathToFileURL(path).href, nativeBusyMs: 1, retryMs: 1 }
    const thread = searchThread(SEARCH_WORKER, data, 30_000)
    onTestFinished(() => thread.close())
    await expect(thread.ask(QUESTION)).rejects.toMatchObject(UNAVAILABLE)
    expect(existsSync(path)).toBe(false)
  })
})

describe('the search in a file', () => {
  test('reads the file that is there: another one put in its place too, and none that went away', async () => {
    const one = await openFeed()
    const other = await openFeed()
    await one.feed.importSignals([signal({ title: 'one' })])
    await other.feed.importSignals([signal({ title: 'other' })])
    await refresh(one.index)
    await refresh(other.index)
    expect((await one.search.search(asking('one'))).items).toHaveLength(1)
    await rename(other.path, one.path)
    expect((await one.search.search(asking('one'))).items).toHaveLength(0)
    expect((await one.search.search(asking('other'))).items).toHaveLength(1)
    await rm(one.path)
    await expect(one.search.search(asking('other'))).rejects.toMatchObject(UNAVAILABLE)
    expect(existsSync(one.path)).toBe(false)
  })

  test('answers while somebody writes, and waits for a commit', async () => {
    const { feed, search, index, path } = await openFeed()
    await feed.importSignals([signal({ title: 'rust' })])
    await refresh(index)
    const finish = await holdLock(`file:${path}`, 'writing')
    expect((await search.search(asking('rust'))).items).toHaveLength(1)
    await finish()
    const release = await holdLock(`file:${path}`, 'committing')
    const asked = search.search(asking('rust'))
    await release()
    expect((await asked).items).toHaveLength(1)
  })

  test('refuses one question more than it takes at once', async () => {
    const { feed, search } = await openFeed()
    await feed.importSignals([signal()])
    const asked = await Promise.allSettled(Array.from({ length: 9 }, () => search.itemTrend('hn-1')))
    const refused = asked.filter((each) => each.status === 'rejected')
    expect(refused).toMatchObject([{ reason: { code: 'search_busy' } }])
  })
})
