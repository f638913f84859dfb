import { pathToFileURL } from 'node:url'
import { onTestFinished } from 'vitest'
import { openFeedSearch } from '../../../src/adapters/feed/feed-search.ts'
import { libsqlFeed } from '../../../src/adapters/feed/feed.ts'
import { libsqlLedger, yearReader } from '../../../src/adapters/ledger/ledger.ts'
import { database, readOnlyDatabase } from '../../../src/adapters/sqlite/database.ts'
import type { Database } from '../../../src/adapters/sqlite/database.ts'
import { rankPeriods } from '../../../src/jobs/snapshot.ts'
import { agentSources } from '../../../src/server/agent/tools.ts'
import type { AgentStores, AgentSources } from '../../../src/server/agent/tools.ts'
import type { Signal } from '../../../src/domain/feed/signal.ts'
import type { FeedSearch } from '../../../src/domain/ports.ts'
import type { Instant } from '../../../src/domain/time.ts'
import { searchQuery } from '../../support/signals.ts'
import { LONG_MS, openWorkspace, SEARCH_WORKER } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

/** Opens a workspace for the agent, through read-only handles. */
export function readAsAgent(
  { ledgerPath, feedPath, objects, recommendations }: Workspace,
  now: Instant,
): { stores: AgentStores; sources: AgentSources } {
  const busy = { nativeBusyMs: 20, retryMs: 2_000 }
  const locationOf = (path: string) => ({ url: pathToFileURL(path).href, authToken: null })
  const readOnly = (path: string, store: 'ledger' | 'feed'): Database => {
    const location = locationOf(path)
    const owner = database({ location, store, ...busy })
    onTestFinished(() => owner.close())
    const readOnlyHandle = readOnlyDatabase({ location, ...busy }, owner)
    onTestFinished(() => readOnlyHandle.close())
    return readOnlyHandle
  }
  const ledger = libsqlLedger(readOnly(ledgerPath, 'ledger'))
  const feed = readOnly(feedPath, 'feed')
  const search = openFeedSearch({
    location: locationOf(feedPath),
    database: feed,
    timeoutMs: LONG_MS,
    startTimeoutMs: LONG_MS,
    script: SEARCH_WORKER,
  })
  onTestFinished(() => search.close())
  const stores = {
    recommendations,
    feed: libsqlFeed(feed),
    search,
    ledger,
    objects,
    year: yearReader(ledger, objects),
    clock: () => now,
  }
  return { stores, sources: agentSources(stores) }
}

/** Starts the search process in advance: on a busy machine the start can exceed the timeouts of a tool and of a query. */
export async function startSearchProcess(search: Pick<FeedSearch, 'by'>): Promise<void> {
  const { search: runSearch } = search.by({ group: 'chat', signal: null })
  while (!(await runSearch(searchQuery('x', { limit: 1 })).catch(() => null)));
}

/** A workspace with signals, their search index and a snapshot. */
export async function settledWorkspace(signals: readonly Signal[], now: Instant): Promise<Workspace> {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(signals)
  await settle(workspace, now)
  return workspace
}

/** Takes a snapshot. */
export async function settle({ feed }: Workspace, now: Instant): Promise<void> {
  const signal = new AbortController().signal
  await rankPeriods({ feed, clock: () => now }, { signal, discardLater: false })
}
