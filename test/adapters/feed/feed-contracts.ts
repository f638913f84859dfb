import { describe, expect, test } from 'vitest'
import { articlesContract } from './articles-contract.ts'
import { importContract } from './import-contract.ts'
import { itemsContract, detailsContract, titlesContract } from './items-contract.ts'
import { liveFeedContract, snapshotContract } from './live-feed-contract.ts'
import { searchContract } from './search-contract.ts'
import { windowContract } from './window-contract.ts'
import type { KeptResponse } from '../../../src/domain/feed/live-source.ts'
import { DAMAGED } from '../../support/refusals.ts'
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

const URL_ASKED = 'https://example.org/list.json?q=created%3A%3E%3D2026'

const NOW = 10_000

function answer(changes: Partial<KeptResponse> = {}): KeptResponse {
  return { etag: 'W/"1"', lastModified: null, body: '["ä 😀 \u2028"]', keptAt: 1_000, ...changes }
}

/** What every engine of the feed remembers of sources. */
function sourceMemoryContract(name: string, engine: FeedOpener): void {
  describe(`kept answers in ${name}`, () => {
    test('come back as they were, by their URL alone', async () => {
      const { feed, another } = await engine.open()
      expect(await feed.keptResponse(URL_ASKED, 0, NOW)).toBeNull()
      const second = answer({ etag: null, lastModified: 'Sat, 21 Nov 2026 10:00:00 GMT', body: '{}' })
      await feed.keepResponse(URL_ASKED, answer(), 0)
      await feed.keepResponse(`${URL_ASKED}#2`, second, 0)
      expect(await another().feed.keptResponse(URL_ASKED, 0, NOW)).toEqual(answer())
      expect(await feed.keptResponse(`${URL_ASKED}#2`, 0, NOW)).toEqual(second)
      expect(await feed.keptResponse('https://example.org/', 0, NOW)).toBeNull()
    })

    test('are replaced by the next one', async () => {
      const { feed } = await engine.open()
      const next = answer({ etag: null, lastModified: 'x', body: '[2]', keptAt: 2_000 })
      await feed.keepResponse(URL_ASKED, answer(), 0)
      await feed.keepResponse(URL_ASKED, next, 0)
      expect(await feed.keptResponse(URL_ASKED, 0, NOW)).toEqual(next)
    })

    test('are not given once they are too old, and dropped when the next is kept', async () => {
      const { feed, raw } = await engine.open()
      await feed.keepResponse(URL_ASKED, answer(), 0)
      expect(await feed.keptResponse(URL_ASKED, 999, NOW)).toEqual(answer())
      expect(await feed.keptResponse(URL_ASKED, 1_000, NOW)).toBeNull()
      await feed.keepResponse('https://example.org/other', answer({ keptAt: 5_000 }), 1_000)
      const { rows } = await raw().execute('SELECT count(*) AS n FROM kept_answers')
      expect(rows[0]?.['n']).toBe(1)
    })

    test('are not given before they were kept, as after a clock was set back', async () => {
      const { feed } = await engine.open()
      await feed.keepResponse(URL_ASKED, answer({ keptAt: 2_000 }), 0)
      expect(await feed.keptResponse(URL_ASKED, 0, 1_999)).toBeNull()
      expect(await feed.keptResponse(URL_ASKED, 0, 2_000)).toEqual(answer({ keptAt: 2_000 }))
    })

    test('may be a million characters long', async () => {
      const { feed } = await engine.open()
      const long = answer({ body: JSON.stringify('漢"'.repeat(300_000)) })
      await feed.keepResponse(URL_ASKED, long, 0)
      expect(await feed.keptResponse(URL_ASKED, 0, NOW)).toEqual(long)
    })

    test('are refused when one is not valid UTF-8', async () => {
      const { feed, raw } = await engine.open()
      await feed.keepResponse(URL_ASKED, answer(), 0)
      await raw().execute("UPDATE kept_answers SET body = CAST(x'ff' AS TEXT)")
      await expect(feed.keptResponse(URL_ASKED, 0, NOW)).rejects.toMatchObject(DAMAGED)
    })
  })

  describe(`pauses of sources in ${name}`, () => {
    test('are none before a host asked for one, and the latest of each host after', async () => {
      const { feed, another } = await engine.open()
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
}
