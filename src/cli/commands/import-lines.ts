import {
  TITLE_PROVENANCE_MAX_LENGTH,
  isTitleProvenanceTooLong,
  vouchingSource,
} from '../../domain/feed/source.ts'
import type { LineSource } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { shorten } from '../../jobs/collect-sources.ts'
import { refreshIndex } from '../../jobs/collect.ts'
import { importArticles, importSignals } from '../../jobs/import-lines.ts'
import type {
  ArticleImportPorts,
  ImportOptions,
  ImportPorts,
  ImportReport,
  LinesOptions,
  LinesReport,
} from '../../jobs/import-lines.ts'
import { takeSnapshot } from '../../jobs/rank-periods.ts'
import type { TakenOrRefused } from '../../jobs/rank-periods.ts'
import type { Container } from '../container.ts'
import type { CommandContext } from '../context.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import type { Terminal } from '../terminal.ts'

/** `dash import articles FILE… | -`; see {@link importLinesCommand}. */
export function importArticlesCommand(
  context: CommandContext,
  files: readonly string[],
  options: Omit<LinesOptions, 'signal'>,
): Promise<number> {
  return importLinesCommand(context, files, {
    run({ stores, sources, onProgress }) {
      const feed: ArticleImportPorts['feed'] = {
        saveArticles: async (batch) => (await stores().feed()).saveArticles(batch),
        storedItems: async (items) => (await stores().feed()).storedItems(items),
      }
      return importArticles({ feed, onProgress }, sources, { ...options, signal: context.signal })
    },
  })
}

const ERRORS_SHOWN = 10

/** What an import of lines works on. */
interface LinesWork extends Pick<ImportPorts, 'onProgress'> {
  /** The stores, whose folders are made at the first call: an import that stores nothing makes none. */
  stores: () => Container
  sources: readonly LineSource[]
}

/** One kind of import of lines. */
export interface LinesCommand<Report extends LinesReport> {
  run: (work: LinesWork) => Promise<Report>
  /** Says what only this kind of import has to say. */
  showMore?: (report: Report) => void
  /** Ranks the live periods, where rows of this kind change them. */
  afterwards?: (stores: Container) => Promise<TakenOrRefused>
}

/**
 * Runs an import of files of lines, brings the search index up to date and shows the report: what `import signals` and
 * `import articles` share.
 *
 * @returns 0, or 1 when any file was left out or broke off, or no snapshot could be taken
 * @throws Refusals and faults of the stores; the signal's reason when the command is told to stop
 */
export async function importLinesCommand<Report extends LinesReport>(
  { config, container, terminal, stdin, signal }: CommandContext,
  files: readonly string[],
  { run, showMore, afterwards }: LinesCommand<Report>,
): Promise<number> {
  const sources = await container.inputs(files, stdin, signal)
  let isUsed = false
  const stores = (): Container => {
    if (!isUsed) prepareFolders(config, true)
    isUsed = true
    return container
  }
  const onProgress = (rows: number): void => {
    signal.throwIfAborted()
    terminal.progress(`${rows} rows read`)
  }
  const report = await run({ stores, sources, onProgress })
  // Files without a row are imported too: the feed is there from now on.
  if (report.failedFiles === 0) stores()
  showErrors(report, terminal)
  showMore?.(report)
  showFailedFiles(report, terminal)
  const snapshot = isUsed && afterwards ? await afterwards(container) : null
  const isRefused = snapshot?.outcome === 'refused'
  if (isRefused) terminal.error(`no snapshot was taken: ${snapshot.reason}`)
  const indexed = isUsed ? await indexItems(container, terminal, signal) : 0
  const { failedFiles, ...result } = report
  terminal.result({ ...result, ...(afterwards ? { snapshot } : {}), indexed }, summary(report))
  return failedFiles > 0 || isRefused ? EXIT.failed : EXIT.done
}

async function indexItems(container: Container, terminal: Terminal, signal: AbortSignal): Promise<number> {
  const search = await container.search()
  const onProgress = (items: number): void => terminal.progress(`${items} items indexed`)
  return (await refreshIndex({ search, onProgress, signal })).indexed
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
      const feed: ImportPorts['feed'] = {
        importSignals: async (batch) => (await stores().feed()).importSignals(batch),
      }
      return importSignals({ feed, onProgress }, sources, { ...options, signal })
    },
    showMore({ unknownSources }) {
      for (const [name, rows] of Object.entries(unknownSources)) {
        terminal.note(`${rows} rows of the unknown source ${JSON.stringify(name)} left out`)
      }
    },
    afterwards: async (stores) => takeSnapshot({ feed: await stores.feed(), clock: Date.now }, signal),
  })
}

/** A value that could vouch for no row is a slip of the command line, not of every row. */
function requireProvenance(value: string | null): void {
  if (value === null || (vouchingSource(value) !== null && !isTitleProvenanceTooLong(value))) return
  const form = `<source>:<channel>, as in hn:page-archive, of at most ${TITLE_PROVENANCE_MAX_LENGTH} characters`
  const what = `--title-provenance ${JSON.stringify(shorten(value))} must be ${form}`
  throw new Refusal('usage', what)
}
