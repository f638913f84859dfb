import { rankPeriods } from '../../../src/jobs/snapshot.ts'
import { agentSources } from '../../../src/server/agent/tools.ts'
import type { AgentSources } from '../../../src/server/agent/tools.ts'
import type { Signal } from '../../../src/domain/feed/signal.ts'
import type { FeedSearch } from '../../../src/domain/ports.ts'
import type { Instant } from '../../../src/domain/time.ts'
import { searchQuery } from '../../support/signals.ts'
import { openWorkspace } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

/** What the agent reads of a workspace. */
export const sourcesOf = (workspace: Workspace, now: Instant): AgentSources =>
  agentSources({ ...workspace, clock: () => now })

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
