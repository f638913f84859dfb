import type { LiveSourceName } from '../../domain/feed/live-source.ts'
import { collect } from '../../jobs/collect.ts'
import type { CollectReport, SourceReport } from '../../jobs/collect.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../program.ts'
import type { Terminal } from '../terminal.ts'
import { openLiveSources } from '../wire-sources.ts'
import { openStores } from '../wire.ts'

/**
 * `dash collect`
 *
 * @param chosen sources to read; none means all
 * @returns 0 when every chosen source was read whole, else 69
 * @throws Refusals and faults of the stores; the signal's reason when the command is told to stop
 */
export async function collectCommand(
  { config, terminal, signal, version }: CommandContext,
  chosen: readonly LiveSourceName[],
): Promise<number> {
  prepareFolders(config, true)
  const stores = openStores(config, 'batch')
  const live = openLiveSources(stores, config, version)
  try {
    const sources = live.sources.filter(({ source }) => chosen.length === 0 || chosen.includes(source))
    const items = new Map<LiveSourceName, number>()
    const onProgress = (source: LiveSourceName, count: number): void => {
      items.set(source, count)
      terminal.progress([...items].map(([name, read]) => `${name} ${read}`).join(' · '))
    }
    const report = await collect({ feed: stores.feed, clock: Date.now, onProgress }, sources, signal)
    show(report, terminal)
    terminal.result(report, summary(report))
    return report.outcome === 'collected' ? EXIT.done : EXIT.unavailable
  } finally {
    await live.close()
    await stores.close()
  }
}

/** A source that was not read whole is an error, said even under `--quiet`; bad rows are notes. */
function show({ sources }: CollectReport, { note, error }: Terminal): void {
  for (const [source, report] of entries(sources)) {
    if (report.outcome !== 'collected') error(`${source} ${TOLD[report.outcome]}: ${report.reason}`)
    if (report.badRows === 0) continue
    const rows = report.badRows === 1 ? '1 row' : `${report.badRows} rows`
    note(`${source}: ${rows} left out, the first: ${report.problems[0]}`)
  }
}

const TOLD = { partial: 'was read in part', failed: 'failed', skipped: 'was skipped' } as const

function summary({ day, sources }: CollectReport): string {
  const reports = entries(sources).map(([, report]) => report)
  const sum = (count: (report: SourceReport) => number): number =>
    reports.reduce((total, report) => total + count(report), 0)
  const whole = reports.filter(({ outcome }) => outcome === 'collected').length
  const counts = [
    `${sum(({ inserted }) => inserted)} inserted`,
    `${sum(({ replaced }) => replaced)} replaced`,
    `${sum(({ unchanged }) => unchanged)} unchanged`,
  ]
  const read = `${whole} of ${reports.length} ${reports.length === 1 ? 'source' : 'sources'}`
  return `${day}: ${read} collected, ${sum(({ items }) => items)} items: ${counts.join(', ')}`
}

function entries(sources: CollectReport['sources']): [string, SourceReport][] {
  return Object.entries(sources)
}
