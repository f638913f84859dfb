import type { IndexProgress } from '../domain/feed/search.ts'
import type { FeedSearch } from '../domain/ports.ts'

/** What indexing did: the JSON result of `reindex` (docs/api.md). */
export interface IndexReport {
  job: 'reindex' | 'refresh-index'
  /** Events taken in. */
  indexed: number
}

export interface IndexPorts {
  search: Omit<FeedSearch, 'by'>
  /** Called after each step with the events taken in so far. */
  onProgress: (indexed: number) => void
  /** Ends the work between two steps; what was done stays. */
  signal: AbortSignal
}

/**
 * Brings the search index up to date with the signals and articles (docs/api.md). Idempotent; may be cut off
 * anywhere, run by several processes at once, and beside an import. An index of another release's rules is rebuilt.
 */
export async function refreshIndex(ports: IndexPorts): Promise<IndexReport> {
  if (!(await ports.search.isCurrent())) return { ...(await rebuildIndex(ports)), job: 'refresh-index' }
  const indexed = await untilDone(() => ports.search.refresh(), ports, 0)
  return { job: 'refresh-index', indexed }
}

/**
 * Builds the search index again from every signal and article (docs/api.md). The index there was answers until the
 * new one is complete; cut off, it goes on answering.
 *
 * @throws Refusal `rebuild_superseded` when another rebuild began meanwhile
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
    // The driver of files works synchronously; signals are noticed between two turns.
    await new Promise((resolve) => setImmediate(resolve))
  }
}
