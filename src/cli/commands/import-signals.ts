import { vouchingSource } from '../../domain/feed/source.ts'
import { Refusal } from '../../domain/refusal.ts'
import { importSignals } from '../../jobs/import-signals.ts'
import type { ImportOptions } from '../../jobs/import-signals.ts'
import type { CommandContext } from '../context.ts'
import { importLinesCommand } from './import-lines.ts'

/** `dash import signals FILE… | -`; see {@link importLinesCommand}. */
export async function importSignalsCommand(
  context: CommandContext,
  files: readonly string[],
  options: Omit<ImportOptions, 'signal'>,
): Promise<number> {
  requireProvenance(options.titleProvenance)
  const { signal, terminal } = context
  return importLinesCommand(
    context,
    files,
    ({ stores, sources, onProgress }) =>
      importSignals({ feed: stores.feed, onProgress }, sources, { ...options, signal }),
    ({ unknownSources }) => {
      for (const [name, rows] of Object.entries(unknownSources)) {
        terminal.note(`${rows} rows of the unknown source ${JSON.stringify(name)} left out`)
      }
    },
  )
}

/** A value that could vouch for no row is a slip of the command line, not of every row. */
function requireProvenance(value: string | null): void {
  if (value === null || vouchingSource(value) !== null) return
  const what = `--title-provenance ${JSON.stringify(value)} must be <source>:<channel>, as in hn:page-archive`
  throw new Refusal('usage', what)
}
