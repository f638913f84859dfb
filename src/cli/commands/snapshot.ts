import { rebuildIndex } from '../../jobs/collect.ts'
import { rankPeriods } from '../../jobs/rank-periods.ts'
import type { SnapshotReport } from '../../jobs/rank-periods.ts'
import type { CommandContext } from '../context.ts'
import { prepareFolders, requireFeed } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import { escaped } from '../terminal.ts'

/** `dash snapshot` */
export async function snapshotCommand(
  { config, container, terminal, signal }: CommandContext,
  { discardLater }: { discardLater: boolean },
): Promise<number> {
  prepareFolders(config, false)
  const report = await rankPeriods(
    { feed: await container.feed(), clock: Date.now },
    { signal, discardLater },
  )
  terminal.result(report, escaped(summary(report)))
  return EXIT.done
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
export async function reindexCommand({
  config,
  container,
  terminal,
  signal,
}: CommandContext): Promise<number> {
  requireFeed(config)
  const search = await container.search()
  const started = performance.now()
  const onProgress = (indexed: number): void => terminal.progress(`${indexed} items indexed`)
  const report = await rebuildIndex({ search, onProgress, signal })
  const durationMs = Math.round(performance.now() - started)
  const line = `${report.indexed} ${report.indexed === 1 ? 'item' : 'items'} indexed in ${(durationMs / 1000).toFixed(1)} s`
  terminal.result({ ...report, durationMs }, line)
  return EXIT.done
}
