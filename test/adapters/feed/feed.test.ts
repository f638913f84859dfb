import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import { signal } from '../../support/signals.ts'
import { holdLock } from '../sqlite/lock-holder.ts'
import { UNAVAILABLE } from '../../support/refusals.ts'
import { FEED_CONTRACTS } from './feed-contracts.ts'
import { feedInMemory, openFeed } from './open-feed.ts'

for (const contract of FEED_CONTRACTS) contract('memory', feedInMemory)

describe('a feed file', () => {
  test('a feed file is reachable once its folder exists, and unavailable after the folder disappears', async () => {
    const { feed, path } = await openFeed()
    await expect(feed.ping()).resolves.toBeUndefined()
    await rm(dirname(path), { recursive: true })
    await expect(feed.ping()).rejects.toMatchObject(UNAVAILABLE)
    await expect(feed.verifiedTitles([])).rejects.toMatchObject(UNAVAILABLE)
  })

  test('a feed file waits for another process that writes', async () => {
    const { feed, path, another } = await openFeed()
    await feed.ping()
    const release = await holdLock(`file:${path}`, 'writing')
    const importing = feed.importSignals([signal()])
    await release()
    expect(await importing).toEqual({ inserted: 1, replaced: 0, unchanged: 0 })
    expect((await another().feed.readWindow(windowEnding('2026-03-01'))).events).toHaveLength(1)
  })
})
