import { rebuildIndex } from '../../jobs/refresh-index.ts'
import { requireFeed } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../context.ts'
import { openStores } from '../wire.ts'

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
    const report = await rebuildIndex({ index: stores.index, onProgress, signal })
    const durationMs = Math.round(performance.now() - started)
    const line = `${report.indexed} ${report.indexed === 1 ? 'item' : 'items'} indexed in ${(durationMs / 1000).toFixed(1)} s`
    terminal.result({ ...report, durationMs }, line)
    return EXIT.done
  } finally {
    await stores.close()
  }
}
