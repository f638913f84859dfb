import { describe, expect, test } from 'vitest'
import { articlesContract } from './articles-contract.ts'
import { importContract } from './import-contract.ts'
import { itemsContract, detailsContract, titlesContract } from './items-contract.ts'
import { liveFeedContract, snapshotContract } from './live-feed-contract.ts'
import { searchContract } from './search-contract.ts'
import { windowContract } from './window-contract.ts'
import type { KeptResponse } from '../../../src/domain/feed/live-source.ts'
import type { FeedOpener } from './open-feed.ts'

/** Everything a feed database promises, whichever engine holds it. */
export const FEED_CONTRACTS = [
  titlesContract,
  importContract,
  windowContract,
  detailsContract,
  articlesContract,
  sourceMemoryContract,
  liveFeedContract,
  snapshotContract,
  searchContract,
  itemsContract,
]

const REQUEST_URL = 'https://example.org/list.json?q=created%3A%3E%3D2026'

const NOW = 10_000

function keptResponse(changes: Partial<KeptResponse> = {}): KeptResponse {
  return { etag: 'W/"1"', lastModified: null, body: '["ä 😀 \u2028"]', keptAt: 1_000, ...changes }
}

/** Contract of every feed engine: the memory of sources. */
function sourceMemoryContract(name: string, engine: FeedOpener): void {
  describe(`kept responses in ${name}`, () => {
    test('a kept response is returned unchanged, by its exact URL, until the next one', async () => {
      const { feed, another } = await engine()
      expect(await feed.keptResponse(REQUEST_URL, 0, NOW)).toBeNull()
      const second = keptResponse({ etag: null, lastModified: 'Sat, 21 Nov 2026 10:00:00 GMT', body: '{}' })
      await feed.keepResponse(REQUEST_URL, keptResponse(), 0)
      await feed.keepResponse(`${REQUEST_URL}#2`, second, 0)
      expect(await another().feed.keptResponse(REQUEST_URL, 0, NOW)).toEqual(keptResponse())
      expect(await feed.keptResponse(`${REQUEST_URL}#2`, 0, NOW)).toEqual(second)
      expect(await feed.keptResponse('https://example.org/', 0, NOW)).toBeNull()
      await feed.keepResponse(REQUEST_URL, second, 0)
      expect(await feed.keptResponse(REQUEST_URL, 0, NOW)).toEqual(second)
    })

    test('a kept response that is too old or of a later time is not returned; an old one is deleted with the next', async () => {
      const { feed, raw } = await engine()
      await feed.keepResponse(REQUEST_URL, keptResponse(), 0)
      expect(await feed.keptResponse(REQUEST_URL, 999, NOW)).toEqual(keptResponse())
      expect(await feed.keptResponse(REQUEST_URL, 1_000, NOW)).toBeNull()
      // As after a clock was set back.
      expect(await feed.keptResponse(REQUEST_URL, 0, 1_000)).toEqual(keptResponse())
      expect(await feed.keptResponse(REQUEST_URL, 0, 999)).toBeNull()
      await feed.keepResponse('https://example.org/other', keptResponse({ keptAt: 5_000 }), 1_000)
      const { rows } = await raw().execute('SELECT count(*) AS n FROM kept_answers')
      expect(rows[0]?.['n']).toBe(1)
    })
  })

  describe(`pauses of sources in ${name}`, () => {
    test('a host has no pause before it requested one, and its latest pause afterwards', async () => {
      const { feed, another } = await engine()
      expect(await feed.pausedUntil('api.example')).toBeNull()
      await feed.pauseUntil('api.example', 5_000)
      await feed.pauseUntil('api.example', 4_000)
      await feed.pauseUntil('127.0.0.1:8080', 1)
      expect(await another().feed.pausedUntil('api.example')).toBe(5_000)
      await another().feed.pauseUntil('api.example', 6_000)
      expect([await feed.pausedUntil('api.example'), await feed.pausedUntil('127.0.0.1:8080')]).toEqual([
        6_000, 1,
      ])
    })
  })

  describe(`the clock check in ${name}`, () => {
    test('the clock check is the one saved last, although its time is before that of the one before', async () => {
      const { feed, another } = await engine()
      expect(await feed.clockCheck()).toBeNull()
      await feed.saveClockCheck({ checkedAt: 94_608_000_000_000, aheadMs: 94_608_000_000, sources: 3 })
      const right = { checkedAt: 1_700_000_000_000, aheadMs: -12, sources: 7 }
      await another().feed.saveClockCheck(right)
      expect(await feed.clockCheck()).toEqual(right)
    })
  })
}
