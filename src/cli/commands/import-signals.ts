import { isTitleProvenanceTooLong, TITLE_PROVENANCE_MAX_LENGTH } from '../../domain/feed/row.ts'
import { vouchingSource } from '../../domain/feed/source.ts'
import { Refusal } from '../../domain/refusal.ts'
import { importSignals } from '../../jobs/import-signals.ts'
import type { ImportOptions, ImportPorts, ImportReport } from '../../jobs/import-signals.ts'
import { takeSnapshot } from '../../jobs/rank-periods.ts'
import { shorten } from '../../jobs/shorten.ts'
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
  return importLinesCommand<ImportReport>(context, files, {
    run({ stores, sources, onProgress }) {
      const feed: ImportPorts['feed'] = { importSignals: (batch) => stores().feed.importSignals(batch) }
      return importSignals({ feed, onProgress }, sources, { ...options, signal })
    },
    showMore({ unknownSources }) {
      for (const [name, rows] of Object.entries(unknownSources)) {
        terminal.note(`${rows} rows of the unknown source ${JSON.stringify(name)} left out`)
      }
    },
    takeSnapshot: ({ live }) => takeSnapshot({ live, clock: Date.now }, signal),
  })
}

/** A value that could vouch for no row is a slip of the command line, not of every row. */
function requireProvenance(value: string | null): void {
  if (value === null || (vouchingSource(value) !== null && !isTitleProvenanceTooLong(value))) return
  const form = `<source>:<channel>, as in hn:page-archive, of at most ${TITLE_PROVENANCE_MAX_LENGTH} characters`
  const what = `--title-provenance ${JSON.stringify(shorten(value))} must be ${form}`
  throw new Refusal('usage', what)
}
