import { rankPeriods } from '../../jobs/snapshot.ts'
import type { SnapshotReport } from '../../jobs/snapshot.ts'
import type { CommandContext } from '../context.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import { counted, escaped } from '../terminal.ts'

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
    return `no snapshot was stored: the server keeps the later snapshot ${report.snapshotId}`
  const { snapshotId, events, items } = report
  const popular = Object.entries(items).map(([sort, lists]) => `${sort} ${lists['popular']}`)
  return `snapshot ${snapshotId} of ${counted(events, 'event')}; popular: ${popular.join(', ')}`
}
