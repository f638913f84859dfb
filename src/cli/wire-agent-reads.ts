import { openFeedSearch } from '../adapters/feed/feed-search.ts'
import { libsqlFeed } from '../adapters/feed/feed.ts'
import { libsqlLedger } from '../adapters/ledger/ledger.ts'
import { readOnlyDatabase } from '../adapters/sqlite/database.ts'
import type { Database } from '../adapters/sqlite/database.ts'
import { yearReader } from '../adapters/objects/objects.ts'
import type { PlaceBounds } from '../domain/fair-queue.ts'
import { QUERY_TIMEOUT_MS } from '../domain/feed/search.ts'
import type { Objects } from '../domain/ports.ts'
import type { DatabaseLocation } from '../domain/refusal.ts'
import type { AgentReads } from '../server/agent/tool-answers.ts'
import type { Config } from './settings/config.ts'

/** The stores as they are opened for everything else; they create and migrate what is read here. */
export interface Owners {
  ledger: Database
  feed: Database
  archive: Objects
}

interface ReadOptions {
  /** As for any database. */
  nativeBusyMs: number
  retryMs: number
  /** Of open queries; those of the chat and those of MCP clients are counted separately. */
  searchBounds: PlaceBounds
  /** The program of the search process; that of the build when it is absent. */
  searchScript?: URL
}

/**
 * What the agent reads, through handles of its own that cannot write (docs/agent-tools.md). Nothing is opened before its
 * first use; `close` closes what was.
 */
export function openAgentReads(
  config: Pick<Config, 'ledger' | 'feed' | 'databaseReadToken'>,
  owners: Owners,
  { nativeBusyMs, retryMs, searchBounds, searchScript }: ReadOptions,
): Omit<AgentReads, 'clock'> & { close: () => Promise<void> } {
  const readLocation = (location: DatabaseLocation): DatabaseLocation => ({
    ...location,
    authToken: config.databaseReadToken ?? location.authToken,
  })
  const waiting = { nativeBusyMs, retryMs }
  const feedLocation = readLocation(config.feed)
  const feed = readOnlyDatabase({ location: feedLocation, ...waiting }, owners.feed)
  const ledgerDatabase = readOnlyDatabase(
    { location: readLocation(config.ledger), ...waiting },
    owners.ledger,
  )
  const search = openFeedSearch({
    location: feedLocation,
    database: feed,
    bounds: searchBounds,
    timeoutMs: QUERY_TIMEOUT_MS,
    ...(searchScript ? { script: searchScript } : {}),
  })
  const ledger = libsqlLedger(ledgerDatabase)
  const archive: AgentReads['archive'] = {
    get: (sha256) => owners.archive.get(sha256),
    newestHead: () => owners.archive.newestHead(),
    objectWitness: (sha256) => owners.archive.objectWitness(sha256),
    headWitness: (newest) => owners.archive.headWitness(newest),
  }
  return {
    feed: libsqlFeed(feed),
    search,
    ledger: { witness: () => ledger.witness() },
    archive,
    year: yearReader(ledger, archive),
    async close() {
      await search.close()
      feed.close()
      ledgerDatabase.close()
    },
  }
}
