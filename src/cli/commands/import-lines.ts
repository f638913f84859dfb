import type { ImportPorts } from '../../jobs/import-signals.ts'
import type { LinesReport } from '../../jobs/import-lines.ts'
import { refreshIndex } from '../../jobs/refresh-index.ts'
import type { LineSource } from '../../domain/ports.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../context.ts'
import type { Terminal } from '../terminal.ts'
import { openInputs, openStores } from '../wire.ts'
import type { Stores } from '../wire.ts'

const ERRORS_SHOWN = 10

/** What an import of lines works on. */
export interface LinesWork extends Pick<ImportPorts, 'onProgress'> {
  stores: Stores
  sources: readonly LineSource[]
}

/**
 * Runs an import of files of lines, brings the search index up to date and shows the report: what `import signals` and `import articles` share.
 *
 * @param run does the import
 * @param showMore says what only this kind of import has to say
 * @returns 0, or 1 when any file was left out or broke off
 * @throws Refusals and faults of the stores; the signal's reason when the command is told to stop
 */
export async function importLinesCommand<Report extends LinesReport>(
  { config, terminal, stdin, signal }: CommandContext,
  files: readonly string[],
  run: (work: LinesWork) => Promise<Report>,
  showMore: (report: Report) => void = () => undefined,
): Promise<number> {
  prepareFolders(config, true)
  const inputs = await openInputs(files, stdin, signal)
  const stores = openStores(config, 'batch')
  try {
    const onProgress = (rows: number): void => {
      signal.throwIfAborted()
      terminal.progress(`${rows} rows read`)
    }
    const report = await run({ stores, sources: inputs.sources, onProgress })
    showErrors(report, terminal)
    showMore(report)
    showFailedFiles(report, terminal)
    const { indexed } = await refreshIndex({
      index: stores.index,
      onProgress: (items) => terminal.progress(`${items} items indexed`),
      signal,
    })
    const { failedFiles, ...result } = report
    terminal.result({ ...result, indexed }, summary(report))
    return failedFiles > 0 ? EXIT.failed : EXIT.done
  } finally {
    await stores.close()
    await inputs.close()
  }
}

/** What is wrong is an error, said even under `--quiet`, when a file failed for it; else it is a note. */
function showErrors(report: LinesReport, { note, error }: Terminal): void {
  const say = report.failedFiles > 0 ? error : note
  for (const { file, line, reason } of report.errors.slice(0, ERRORS_SHOWN)) {
    say(line === null ? reason : `${file}:${line}: ${reason}`)
  }
  const more = report.errorCount - Math.min(report.errors.length, ERRORS_SHOWN)
  if (more > 0) say(`and ${more} more; --json lists the first hundred`)
}

function showFailedFiles({ files, failedFiles, skipped, errors }: LinesReport, { error }: Terminal): void {
  const hasBadRows = errors.some(({ line }) => line !== null)
  if (failedFiles > 0 && hasBadRows && skipped === 0) {
    error(`${failedFiles} of ${files} files were left out whole; --on-error skip imports their good rows`)
  }
}

function summary({ files, rows, inserted, replaced, unchanged, skipped }: LinesReport): string {
  const read = `${rows} ${rows === 1 ? 'row' : 'rows'} of ${files} ${files === 1 ? 'file' : 'files'}`
  return `${read}: ${inserted} inserted, ${replaced} replaced, ${unchanged} unchanged, ${skipped} skipped`
}
