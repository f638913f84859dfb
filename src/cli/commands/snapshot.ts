import { rebuildIndex } from '../../jobs/collect.ts'
import { rankPeriods } from '../../jobs/rank-periods.ts'
import type { SnapshotReport } from '../../jobs/rank-periods.ts'
import type { CommandContext } from '../context.ts'
import { prepareFolders, requireFeed } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import { escaped } from '../terminal.ts'
import { openStores } from '../wire.ts'

/** `dash snapshot` */
export async function snapshotCommand(
  { config, terminal, signal }: CommandContext,
  { discardLater }: { discardLater: boolean },
): Promise<number> {
  prepareFolders(config, false)
  const stores = openStores(config, 'batch')
  try {
    const report = await rankPeriods({ feed: stores.feed, clock: Date.now }, { signal, discardLater })
    terminal.result(report, escaped(summary(report)))
    return EXIT.done
  } finally {
    await stores.close()
  }
}

function summary(report: SnapshotReport): string {
  if (report.outcome === 'superseded')
    return `no snapshot was stored: ${report.snapshotId} is later, and is served`
  const { snapshotId, events, items } = report
  const popular = Object.entries(items).map(([sort, lists]) => `${sort} ${lists['popular']}`)
  return `snapshot ${snapshotId} of ${events} ${events === 1 ? 'event' : 'events'}; popular: ${popular.join(', ')}`
}

/**
 * `dash reindex`
 *
 * @throws Refusals and faults of the stores; the signal's reason when the command is told to stop
 */
export async function reindexCommand({ config, terminal, signal }: CommandContext): Promise<number> {
  requireFeed(config)
  const stores = openStores(config, 'batch')
  const started = performance.now()
  try {
    const onProgress = (indexed: number): void => terminal.progress(`${indexed} items indexed`)
    const report = await rebuildIndex({ search: stores.search, onProgress, signal })
    const durationMs = Math.round(performance.now() - started)
    const line = `${report.indexed} ${report.indexed === 1 ? 'item' : 'items'} indexed in ${(durationMs / 1000).toFixed(1)} s`
    terminal.result({ ...report, durationMs }, line)
    return EXIT.done
  } finally {
    await stores.close()
  }
}
