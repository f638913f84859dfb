import { afterAll, beforeAll } from 'vitest'
import { importContract } from '../adapters/feed/import-contract.ts'
import { connectFeed, storeAt } from '../adapters/feed/open-feed.ts'
import type { FeedOpener } from '../adapters/feed/open-feed.ts'
import { searchContract } from '../adapters/feed/search-contract.ts'
import { titlesContract } from '../adapters/feed/titles-contract.ts'
import { windowContract } from '../adapters/feed/window-contract.ts'
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

for (const contract of [titlesContract, importContract, windowContract, searchContract]) {
  contract('a libSQL server', feedOnServer)
}
