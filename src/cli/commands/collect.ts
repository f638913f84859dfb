import { CLOCK_REMEDY, describeDifference, isClockWrong } from '../../domain/clock-check.ts'
import type { LiveSourceName } from '../../domain/feed/live-source.ts'
import { collect } from '../../jobs/collect.ts'
import type { CollectReport, SourceReport } from '../../jobs/collect.ts'
import { rankPeriods } from '../../jobs/snapshot.ts'
import type { SnapshotReport } from '../../jobs/snapshot.ts'
import { prepareFolders, requireFeed } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../context.ts'
import { indexProgress } from './import-lines.ts'
import { counted, escaped } from '../terminal.ts'
import type { Terminal } from '../terminal.ts'

export async function collectCommand(
  { config, container, terminal, signal }: CommandContext,
  { source: chosen = [] }: { source?: LiveSourceName[] },
): Promise<number> {
  prepareFolders(config, true)
  const all = await container.liveSources()
  const sources = all.filter(({ source }) => chosen.length === 0 || chosen.includes(source))
  const items = new Map<LiveSourceName, number>()
  const ports = {
    feed: await container.feed(),
    search: await container.search(),
    texts: await container.articleTexts(),
    clock: Date.now,
    onItems(source: LiveSourceName, count: number): void {
      items.set(source, count)
      terminal.progress([...items].map(([name, read]) => `${name} ${read}`).join(' · '))
    },
    onTexts: (done: number, wanted: number): void => terminal.progress(`${done} of ${wanted} texts`),
  }
  const { minPoints, perRun: limit } = config.articles
  const report = await collect(ports, sources, { minPoints, limit, signal })
  showProblems(report, terminal)
  terminal.result(report, escaped(collectSummary(report)))
  if (report.outcome !== 'collected') return EXIT.unavailable
  return report.snapshot?.outcome === 'refused' ? EXIT.failed : EXIT.done
}

/** Prints incompletely read sources as errors, even under `--quiet`, and bad rows as notes. */
function showProblems(
  { sources, clock, snapshot, articles }: CollectReport,
  { note, error }: Terminal,
): void {
  if (isClockWrong(clock)) error(`the clock is ${describeDifference(clock)}; ${CLOCK_REMEDY}`)
  for (const [source, report] of Object.entries(sources)) {
    if (report.outcome !== 'collected') error(`${source} ${OUTCOME_LABELS[report.outcome]}: ${report.reason}`)
    if (report.badRows === 0) continue
    note(`${source}: ${counted(report.badRows, 'row')} skipped, first problem: ${report.problems[0]}`)
  }
  if (snapshot?.outcome === 'refused') error(`no snapshot was stored: ${snapshot.reason}`)
  if (articles && articles.failedCount > 0) {
    const [first] = articles.failed
    note(
      `${counted(articles.failedCount, 'text')} could not be read, first problem: ${first?.key}: ${first?.reason}`,
    )
  }
}

const OUTCOME_LABELS = { partial: 'was only partly read', failed: 'failed', skipped: 'was skipped' } as const

function collectSummary({ day, sources, clock, snapshot, articles }: CollectReport): string {
  const reports = Object.values(sources)
  const sum = (count: (report: SourceReport) => number): number =>
    reports.reduce((total, report) => total + count(report), 0)
  const whole = reports.filter(({ outcome }) => outcome === 'collected').length
  const counts = [
    `${sum(({ inserted }) => inserted)} inserted`,
    `${sum(({ replaced }) => replaced)} replaced`,
    `${sum(({ unchanged }) => unchanged)} unchanged`,
  ]
  const read = `${whole} of ${counted(reports.length, 'source')}`
  const texts = articles && articles.wanted > 0 ? `; ${articles.stored} of ${articles.wanted} texts` : ''
  const served =
    snapshot?.outcome === 'superseded' ? `; the server keeps the later snapshot ${snapshot.snapshotId}` : ''
  const clockText = isClockWrong(clock) ? `; the clock is ${describeDifference(clock)}` : ''
  return `${day}: ${read} collected, ${sum(({ items }) => items)} items: ${counts.join(', ')}${texts}${served}${clockText}`
}

export async function snapshotCommand(
  { config, container, terminal, signal }: CommandContext,
  { discardLater }: { discardLater: boolean },
): Promise<number> {
  prepareFolders(config, false)
  const report = await rankPeriods(
    { feed: await container.feed(), clock: Date.now },
    { signal, discardLater },
  )
  terminal.result(report, escaped(snapshotSummary(report)))
  return EXIT.done
}

function snapshotSummary(report: SnapshotReport): string {
  if (report.outcome === 'superseded')
    return `no snapshot was stored: the server keeps the later snapshot ${report.snapshotId}`
  const { snapshotId, events, items } = report
  const popular = Object.entries(items).map(([sort, lists]) => `${sort} ${lists['popular']}`)
  return `snapshot ${snapshotId} of ${counted(events, 'event')}; popular: ${popular.join(', ')}`
}

export async function reindexCommand({
  config,
  container,
  terminal,
  signal,
}: CommandContext): Promise<number> {
  requireFeed(config)
  const search = await container.search()
  const started = performance.now()
  const indexed = await search.rebuild({ onProgress: indexProgress(terminal), signal })
  const durationMs = Math.round(performance.now() - started)
  const line = `${counted(indexed, 'item')} indexed in ${(durationMs / 1000).toFixed(1)} s`
  terminal.result({ job: 'reindex', indexed, durationMs }, line)
  return EXIT.done
}
