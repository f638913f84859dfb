import { pathToFileURL } from 'node:url'
import { onTestFinished } from 'vitest'
import { database } from '../../src/adapters/sqlite/database.ts'
import type { Database } from '../../src/adapters/sqlite/database.ts'
import { migrationsOf } from '../../src/adapters/sqlite/migrate.ts'
import { openAgentReads } from '../../src/cli/wire-agent-reads.ts'
import { SEARCH_PLACES } from '../../src/domain/feed/search.ts'
import { rankPeriods } from '../../src/jobs/rank-periods.ts'
import { agentSources } from '../../src/server/agent/tool-answers.ts'
import type { AgentReads, AgentSources } from '../../src/server/agent/tool-answers.ts'
import type { Instant } from '../../src/domain/time.ts'
import { refresh } from './signals.ts'
import { SEARCH_WORKER } from './workspace.ts'
import type { Workspace } from './workspace.ts'

/** A workspace as the agent reads it, through its own handles. */
export function readAsAgent(
  { ledgerPath, feedPath, archive }: Workspace,
  now: Instant,
): { reads: AgentReads; sources: AgentSources } {
  const busy = { nativeBusyMs: 20, retryMs: 2_000 }
  const owner = (path: string, store: 'ledger' | 'feed'): Database => {
    const location = { url: pathToFileURL(path).href, authToken: null }
    const opened = database({ location, store, migrationsFolder: migrationsOf(store), ...busy })
    onTestFinished(() => opened.close())
    return opened
  }
  const locationOf = (path: string) => ({ url: pathToFileURL(path).href, authToken: null })
  const config = { ledger: locationOf(ledgerPath), feed: locationOf(feedPath), databaseReadToken: null }
  const owners = { ledger: owner(ledgerPath, 'ledger'), feed: owner(feedPath, 'feed'), archive }
  const opened = openAgentReads(config, owners, {
    ...busy,
    searchBounds: SEARCH_PLACES,
    searchScript: SEARCH_WORKER,
  })
  onTestFinished(() => opened.close())
  const reads = { ...opened, clock: () => now }
  return { reads, sources: agentSources(reads) }
}

/** Brings the index up to date and takes a snapshot. */
export async function settle({ index, live }: Workspace, now: Instant): Promise<void> {
  await refresh(index)
  const signal = new AbortController().signal
  await rankPeriods({ live, clock: () => now }, { signal, discardLater: false })
}
