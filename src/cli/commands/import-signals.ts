import { importSignals } from '../../jobs/import-signals.ts'
import type { ImportOptions, ImportReport } from '../../jobs/import-signals.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../program.ts'
import { openInputs, openStores } from '../wire.ts'

const ERRORS_SHOWN = 10

/** `dash import signals FILE… | -` */
export async function importSignalsCommand(
  { config, terminal, stdin, signal }: CommandContext,
  files: readonly string[],
  options: ImportOptions,
): Promise<number> {
  prepareFolders(config, true)
  const stores = openStores(config, 'batch')
  const inputs = await openInputs(files, stdin)
  try {
    const onProgress = (rows: number): void => {
      signal.throwIfAborted()
      terminal.progress(`${rows} rows read`)
    }
    const { failedFiles, ...report } = await importSignals(
      { feed: stores.feed, onProgress },
      inputs.sources,
      options,
    )
    show(report, failedFiles, options, terminal.note)
    terminal.result(report, summary(report))
    return failedFiles > 0 ? EXIT.failed : EXIT.done
  } finally {
    stores.close()
    await inputs.close()
  }
}

function show(
  report: Omit<ImportReport, 'failedFiles'>,
  failedFiles: number,
  { onError }: ImportOptions,
  note: (message: string) => void,
): void {
  for (const { file, line, reason } of report.errors.slice(0, ERRORS_SHOWN)) {
    note(line === null ? `${file}: ${reason.replace(`${file}: `, '')}` : `${file}:${line}: ${reason}`)
  }
  const more = report.errorCount - Math.min(report.errors.length, ERRORS_SHOWN)
  if (more > 0) note(`and ${more} more; --json lists the first hundred`)
  for (const [name, rows] of Object.entries(report.unknownSources)) {
    note(`${rows} rows of the unknown source ${JSON.stringify(name)} left out`)
  }
  if (failedFiles > 0 && onError === 'abort') {
    note(
      `nothing was imported of ${failedFiles} of ${report.files} files; --on-error skip imports their good rows`,
    )
  }
}

function summary({
  files,
  rows,
  inserted,
  replaced,
  unchanged,
  skipped,
}: Omit<ImportReport, 'failedFiles'>): string {
  return `${rows} rows of ${files} files: ${inserted} inserted, ${replaced} replaced, ${unchanged} unchanged, ${skipped} skipped`
}
