import { rankPeriods } from '../../jobs/rank-periods.ts'
import type { SnapshotReport } from '../../jobs/rank-periods.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../context.ts'
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
    const report = await rankPeriods({ live: stores.live, clock: Date.now }, { signal, discardLater })
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
