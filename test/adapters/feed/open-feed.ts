import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { onTestFinished } from 'vitest'
import { openFeedSearch } from '../../../src/adapters/feed/feed-search.ts'
import { libsqlFeed } from '../../../src/adapters/feed/feed.ts'
import { searchIndex } from '../../../src/adapters/feed/search-documents.ts'
import type { Database } from '../../../src/adapters/sqlite/database.ts'
import type { CallerSearch, FeedSearch, FeedStore } from '../../../src/domain/ports.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { LONG_MS, SEARCH_WORKER } from '../../support/workspace.ts'
import { openStore, rawClient } from '../sqlite/lock-holder.ts'
import type { RawClient } from '../ledger/open-ledger.ts'

/** Everything that is kept in one feed database. */
interface FeedStores {
  feed: FeedStore
  index: Omit<FeedSearch, 'by'>
}

export interface OpenFeed extends FeedStores {
  search: CallerSearch
  /** A client that bypasses the store, to change its database as another program could. */
  raw: () => RawClient
  /** The same feed as another process sees it; in memory there is but one. */
  another(): OpenFeed
}

/** How a contract is run against an engine. */
export interface FeedOpener {
  /** An empty store of the test's own. */
  open: () => Promise<OpenFeed>
}

interface FeedFile extends OpenFeed {
  path: string
}

export const feedInFile: FeedOpener = { open: openFeed }

export const feedInMemory: FeedOpener = {
  async open() {
    const store = openStore('feed', ':memory:')
    const client = await store.use((own) => Promise.resolve(own as typeof own & RawClient))
    const search = searchOf(store, ':memory:')
    const same: OpenFeed = { ...storesIn(store), search, raw: () => client, another: () => same }
    return same
  },
}

/** A feed store in a folder of the test's own, closed and removed when it ends. */
export async function openFeed(): Promise<FeedFile> {
  const path = join(temporaryFolder(), 'feed.db')
  return { ...connectFeed(pathToFileURL(path).href), path }
}

/** Opens the feed at a URL through a separate connection. */
export function connectFeed(url: string): OpenFeed {
  const store = openStore('feed', url)
  const search = searchOf(store, url)
  return { ...storesIn(store), search, raw: () => rawClient(url), another: () => connectFeed(url) }
}

export function storeAt(url: string): FeedStores & { close: () => void } {
  const store = openStore('feed', url)
  return { ...storesIn(store), close: () => store.close() }
}

function storesIn(store: Database): FeedStores {
  return { feed: libsqlFeed(store), index: searchIndex(store) }
}

function searchOf(store: Database, url: string): CallerSearch {
  const search = openFeedSearch({
    location: { url, authToken: null },
    database: store,
    timeoutMs: LONG_MS,
    startTimeoutMs: LONG_MS,
    script: SEARCH_WORKER,
  })
  onTestFinished(() => search.close())
  return search.by({ group: 'others', signal: null })
}
