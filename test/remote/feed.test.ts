import { afterAll, beforeAll } from 'vitest'
import { FEED_CONTRACTS } from '../adapters/feed/feed-contracts.ts'
import { connectFeed, storeAt } from '../adapters/feed/open-feed.ts'
import type { FeedOpener } from '../adapters/feed/open-feed.ts'
import { startSqld } from '../support/sqld.ts'
import type { Sqld } from '../support/sqld.ts'

let sqld: Sqld

beforeAll(async () => {
  sqld = await startSqld()
})
afterAll(() => sqld.stop())

const feedOnServer: FeedOpener = {
  async open() {
    await sqld.empty()
    return connectFeed(sqld.url)
  },
  factory: () =>
    Promise.resolve(async () => {
      await sqld.empty()
      return storeAt(sqld.url)
    }),
}

for (const contract of FEED_CONTRACTS) {
  contract('a libSQL server', feedOnServer)
}
