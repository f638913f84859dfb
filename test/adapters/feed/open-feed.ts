import { onTestFinished } from 'vitest'
import { openFeedSearch } from '../../../src/adapters/feed/feed-search.ts'
import { libsqlFeed } from '../../../src/adapters/feed/feed.ts'
import { searchIndex } from '../../../src/adapters/feed/search-documents.ts'
import type { Database } from '../../../src/adapters/sqlite/database.ts'
import type { CallerSearch, FeedSearch, FeedStore } from '../../../src/domain/ports.ts'
import { LONG_MS, SEARCH_WORKER } from '../../support/workspace.ts'
import { newDatabase, openStore, rawClient } from '../sqlite/lock-holder.ts'
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
  /** The same feed as another process sees it. */
  another(): OpenFeed
}

/** An empty feed of the test's own; how a contract is run against an engine. */
export type FeedOpener = () => Promise<OpenFeed>

/** A feed in a file, closed and removed when the test ends. */
export async function openFeed(): Promise<OpenFeed & { path: string }> {
  const { path, url } = newDatabase()
  return { ...connectFeed(url), path }
}

/** The same, whose search runs in the test's process, as for a server. */
export const openFeedWithoutProcess: FeedOpener = async () => connectFeed(newDatabase().url, 'direct:')

/**
 * Opens the feed at a URL through a separate connection.
 *
 * @param searched the URL by which the search decides whether a process reads the database
 */
export function connectFeed(url: string, searched = url): OpenFeed {
  const store = openStore('feed', url)
  const search = openFeedSearch({
    location: { url: searched, authToken: null },
    database: store,
    timeoutMs: LONG_MS,
    startTimeoutMs: LONG_MS,
    script: SEARCH_WORKER,
  })
  onTestFinished(() => search.close())
  return {
    ...storesIn(store),
    search: search.by({ group: 'others', signal: null }),
    raw: () => rawClient(url),
    another: () => connectFeed(url, searched),
  }
}

export function storeAt(url: string): FeedStores & { close: () => void } {
  const store = openStore('feed', url)
  return { ...storesIn(store), close: () => store.close() }
}

function storesIn(store: Database): FeedStores {
  return { feed: libsqlFeed(store), index: searchIndex(store) }
}
