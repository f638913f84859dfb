import { rebuildIndex } from '../../jobs/reindex.ts'
import type { CommandContext } from '../context.ts'
import { requireFeed } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import { counted } from '../terminal.ts'

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
  const line = `${counted(report.indexed, 'item')} indexed in ${(durationMs / 1000).toFixed(1)} s`
  terminal.result({ ...report, durationMs }, line)
  return EXIT.done
}
