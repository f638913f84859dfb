import {
  TITLE_PROVENANCE_MAX_LENGTH,
  isTitleProvenanceTooLong,
  vouchingSource,
} from '../../domain/feed/source.ts'
import type { LineSource } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { importArticles, importSignals } from '../../jobs/import-lines.ts'
import type { ImportPorts, ImportReport, LinesOptions, LinesReport } from '../../jobs/import-lines.ts'
import { shorten } from '../../domain/text.ts'
import { describeCauses } from '../../domain/year/left-out.ts'
import { takeSnapshot } from '../../jobs/snapshot.ts'
import type { TakenOrRefused } from '../../jobs/snapshot.ts'
import type { CommandContext } from '../context.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import { counted } from '../terminal.ts'
import type { Terminal } from '../terminal.ts'

interface ImportFlags {
  onError: LinesOptions['onError']
  titleProvenance?: string | null
}

type LinesPorts = ImportPorts<'importSignals' | 'saveArticles' | 'storedItems'>
type ShownReport = LinesReport & Partial<Pick<ImportReport, 'unknownSources' | 'notForYear'>>

const ERRORS_SHOWN = 10

export async function importSignalsCommand(
  context: CommandContext,
  { onError, titleProvenance = null }: ImportFlags,
  files: readonly string[],
): Promise<number> {
  requireProvenance(titleProvenance)
  const { signal, container } = context
  return importLines(context, files, {
    run: (ports, sources) => importSignals(ports, sources, { onError, titleProvenance, signal }),
    rank: async () => takeSnapshot({ feed: await container.feed(), clock: Date.now }, signal),
  })
}

export function importArticlesCommand(
  context: CommandContext,
  { onError }: ImportFlags,
  files: readonly string[],
): Promise<number> {
  const { signal } = context
  return importLines(context, files, {
    run: (ports, sources) => importArticles(ports, sources, { onError, signal }),
  })
}

interface LinesImport {
  run: (ports: LinesPorts, sources: readonly LineSource[]) => Promise<ShownReport>
  /** Ranks the live periods; absent if rows of this kind do not change them. */
  rank?: () => Promise<TakenOrRefused>
}

/**
 * Imports files of lines, rebuilds a search index of another release, and prints the report. The stores' folders are
 * created only when something is stored.
 */
async function importLines(
  { config, container, terminal, stdin, signal }: CommandContext,
  files: readonly string[],
  { run, rank }: LinesImport,
): Promise<number> {
  const sources = await container.inputs(files, stdin, signal)
  let isUsed = false
  const prepare = (): void => {
    if (!isUsed) prepareFolders(config, true)
    isUsed = true
  }
  const feed = async (): ReturnType<typeof container.feed> => {
    prepare()
    return container.feed()
  }
  const ports: LinesPorts = {
    feed: {
      importSignals: async (batch) => (await feed()).importSignals(batch),
      saveArticles: async (batch) => (await feed()).saveArticles(batch),
      storedItems: async (items) => (await feed()).storedItems(items),
    },
    onProgress(rows) {
      signal.throwIfAborted()
      terminal.progress(`${rows} rows read`)
    },
  }
  const { failedFiles, ...report } = await run(ports, sources)
  // Files without a row count as imported: the feed exists from now on.
  if (failedFiles === 0) prepare()
  showErrors({ ...report, failedFiles }, terminal)
  const snapshot = isUsed && rank ? await rank() : null
  if (snapshot?.outcome === 'refused') terminal.error(`no snapshot was stored: ${snapshot.reason}`)
  if (isUsed) await (await container.search()).repair({ onProgress: indexProgress(terminal), signal })
  terminal.result({ ...report, ...(rank ? { snapshot } : {}) }, summary(report))
  return failedFiles > 0 || snapshot?.outcome === 'refused' ? EXIT.failed : EXIT.done
}

/** Shows how many items have been indexed. */
export function indexProgress(terminal: Terminal): (indexed: number) => void {
  return (indexed) => terminal.progress(`${counted(indexed, 'item')} indexed`)
}

/** Prints problems as errors, even under `--quiet`, if a file failed; else as notes. */
function showErrors(
  { files, failedFiles, skipped, errors, errorCount, unknownSources = {} }: ShownReport,
  { note, error }: Terminal,
): void {
  const report = failedFiles > 0 ? error : note
  for (const { file, line, reason } of errors.slice(0, ERRORS_SHOWN))
    report(line === null ? reason : `${file}:${line}: ${reason}`)
  const more = errorCount - Math.min(errors.length, ERRORS_SHOWN)
  if (more > 0) report(`and ${more} more; --json lists the first hundred`)
  for (const [name, rows] of Object.entries(unknownSources))
    note(
      `skipped ${counted(rows, 'row')} of the unknown source ${JSON.stringify(name)}; see docs/importing.md#names`,
    )
  if (failedFiles > 0 && skipped === 0 && errors.some(({ line }) => line !== null))
    error(`${failedFiles} of ${counted(files, 'file')} not imported; --on-error skip imports their good rows`)
}

function summary(report: Omit<ShownReport, 'failedFiles'>): string {
  const { files, rows, inserted, replaced, unchanged, skipped, notForYear = {} } = report
  const read = `${counted(rows, 'row')} of ${counted(files, 'file')}`
  const lacking = describeCauses(notForYear)
  const forYear = lacking === '' ? '' : `; not for a Year: ${lacking}`
  return `${read}: ${inserted} inserted, ${replaced} replaced, ${unchanged} unchanged, ${skipped} skipped${forYear}`
}

/** Refuses a value that could not vouch for any row, instead of reporting every row. */
function requireProvenance(value: string | null): void {
  if (value === null || (vouchingSource(value) !== null && !isTitleProvenanceTooLong(value))) return
  const form = `<source>:<channel>, such as hn:page-archive, with at most ${TITLE_PROVENANCE_MAX_LENGTH} characters`
  throw new Refusal('usage', `--title-provenance ${JSON.stringify(shorten(value))} must be ${form}`)
}
