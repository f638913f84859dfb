import type { IndexProgress } from '../domain/feed/search/search.ts'
import type { FeedSearch } from '../domain/ports.ts'

/** The JSON result of `reindex` (docs/api.md). */
export interface IndexReport {
  job: 'reindex' | 'refresh-index'
  /** Number of indexed events. */
  indexed: number
}

export interface IndexPorts {
  search: Omit<FeedSearch, 'by'>
  /** Called after each step with the number of indexed events. */
  onProgress: (indexed: number) => void
  /** Ends the work between two steps; finished steps stay. */
  signal: AbortSignal
}

/**
 * Updates the search index from signals and articles (docs/api.md). Idempotent; it can be interrupted, run in several
 * processes, and run beside an import. An index of another release's rules is rebuilt.
 */
export async function refreshIndex(ports: IndexPorts): Promise<IndexReport> {
  if (!(await ports.search.isCurrent())) return { ...(await rebuildIndex(ports)), job: 'refresh-index' }
  const indexed = await untilDone(() => ports.search.refresh(), ports, 0)
  return { job: 'refresh-index', indexed }
}

/**
 * Rebuilds the search index from every signal and article (docs/api.md). The current index serves until the new one is
 * complete, also after an interruption.
 *
 * @throws Refusal `rebuild_superseded` when another rebuild started meanwhile
 */
export async function rebuildIndex(ports: IndexPorts): Promise<IndexReport> {
  const build = await ports.search.beginRebuild()
  const rebuilt = await untilDone(() => ports.search.rebuild(build), ports, 0)
  const indexed = await untilDone(() => ports.search.refresh(), ports, rebuilt)
  return { job: 'reindex', indexed }
}

async function untilDone(
  step: () => Promise<IndexProgress>,
  { onProgress, signal }: IndexPorts,
  before: number,
): Promise<number> {
  let total = before
  for (;;) {
    signal.throwIfAborted()
    const { indexed, done } = await step()
    total += indexed
    onProgress(total)
    if (done) return total
    // The file driver is synchronous; let the event loop handle signals.
    await new Promise((resolve) => setImmediate(resolve))
  }
}
