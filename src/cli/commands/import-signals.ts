import { vouchingSource } from '../../domain/feed/source.ts'
import { Refusal } from '../../domain/refusal.ts'
import { importSignals } from '../../jobs/import-signals.ts'
import type { ImportOptions, ImportReport } from '../../jobs/import-signals.ts'
import { refreshIndex } from '../../jobs/refresh-index.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../program.ts'
import type { Terminal } from '../terminal.ts'
import { openInputs, openStores } from '../wire.ts'

const ERRORS_SHOWN = 10

/**
 * `dash import signals FILE… | -`
 *
 * @returns 0, or 1 when any file was left out or broke off
 * @throws Refusals and faults of the stores; the signal's reason when the command is told to stop
 */
export async function importSignalsCommand(
  { config, terminal, stdin, signal }: CommandContext,
  files: readonly string[],
  options: Omit<ImportOptions, 'signal'>,
): Promise<number> {
  requireProvenance(options.titleProvenance)
  prepareFolders(config, true)
  const inputs = await openInputs(files, stdin, signal)
  const stores = openStores(config, 'batch')
  try {
    const onProgress = (rows: number): void => {
      signal.throwIfAborted()
      terminal.progress(`${rows} rows read`)
    }
    const { failedFiles, ...report } = await importSignals(
      { feed: stores.feed, onProgress },
      inputs.sources,
      { ...options, signal },
    )
    show(report, failedFiles, terminal)
    const { indexed } = await refreshIndex({
      index: stores.index,
      onProgress: (items) => terminal.progress(`${items} items indexed`),
      signal,
    })
    terminal.result({ ...report, indexed }, summary(report))
    return failedFiles > 0 ? EXIT.failed : EXIT.done
  } finally {
    await stores.close()
    await inputs.close()
  }
}

/** A value that could vouch for no row is a slip of the command line, not of every row. */
function requireProvenance(value: string | null): void {
  if (value === null || vouchingSource(value) !== null) return
  const what = `--title-provenance ${JSON.stringify(value)} must be <source>:<channel>, as in hn:page-archive`
  throw new Refusal('usage', what)
}

/** What is wrong is an error, said even under `--quiet`, when a file failed for it; else it is a note. */
function show(
  report: Omit<ImportReport, 'failedFiles'>,
  failedFiles: number,
  { note, error }: Terminal,
): void {
  const say = failedFiles > 0 ? error : note
  for (const { file, line, reason } of report.errors.slice(0, ERRORS_SHOWN)) {
    say(line === null ? reason : `${file}:${line}: ${reason}`)
  }
  const more = report.errorCount - Math.min(report.errors.length, ERRORS_SHOWN)
  if (more > 0) say(`and ${more} more; --json lists the first hundred`)
  for (const [name, rows] of Object.entries(report.unknownSources)) {
    note(`${rows} rows of the unknown source ${JSON.stringify(name)} left out`)
  }
  const hasBadRows = report.errors.some(({ line }) => line !== null)
  if (failedFiles > 0 && hasBadRows && report.skipped === 0) {
    say(
      `${failedFiles} of ${report.files} files were left out whole; --on-error skip imports their good rows`,
    )
  }
}

function summary(report: Omit<ImportReport, 'failedFiles'>): string {
  const { files, rows, inserted, replaced, unchanged, skipped } = report
  const read = `${rows} ${rows === 1 ? 'row' : 'rows'} of ${files} ${files === 1 ? 'file' : 'files'}`
  return `${read}: ${inserted} inserted, ${replaced} replaced, ${unchanged} unchanged, ${skipped} skipped`
}
