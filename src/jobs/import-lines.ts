import { parseArticle } from '../domain/feed/article.ts'
import type { Article, KeyedArticle } from '../domain/feed/article.ts'
import { addCounts, parseSignal } from '../domain/feed/signal.ts'
import type { Signal, ImportCounts } from '../domain/feed/signal.ts'
import type { ItemRef } from '../domain/feed/source.ts'
import type { FeedStore, InputLine, LineSource } from '../domain/ports.ts'
import { Refusal, isRefusal } from '../domain/refusal.ts'
import { shorten } from '../domain/text.ts'
import { rowCausesOf } from '../domain/year/left-out.ts'
import type { CauseCounts, RowCause } from '../domain/year/left-out.ts'

/** Report of an import of files with any kind of rows (docs/importing.md). */
export interface LinesReport extends ImportCounts {
  files: number
  /** Number of lines that are not blank, including bad ones. */
  rows: number
  /** Number of bad rows left out under `skip`. */
  skipped: number
  /** The first hundred errors; `line` is null for the file as a whole. */
  errors: { file: string; line: number | null; reason: string }[]
  errorCount: number
  /** Number of files that were not imported completely. */
  failedFiles: number
}

export interface LinesOptions {
  onError: 'abort' | 'skip'
  /** Ends the import between two batches; stored rows stay. */
  signal: AbortSignal
}

export interface ImportPorts<Method extends keyof FeedStore> {
  feed: Pick<FeedStore, Method>
  /** Called after each batch with the number of rows read. */
  onProgress: (rows: number) => void
}

type ParsedLine<Row> =
  | { kind: 'row'; row: Row; vouched?: boolean; causes?: readonly RowCause[] }
  | { kind: 'unknown-source'; source: string }
  | { kind: 'bad'; reason: string }

/** A kind of rows: its parser and its store. */
interface RowKind<Row> {
  /** @param value the value of JSON.parse for the line */
  parse: (value: unknown) => ParsedLine<Row>
  /** Stores a batch in one transaction. */
  store: (batch: readonly Row[]) => Promise<ImportCounts>
  batchRows: number
  /** Called after each batch with the number of rows read. */
  onProgress: (rows: number) => void
}

/** An import of files of lines, and its counts. */
interface ImportRun<Row> extends RowKind<Row>, LinesOptions {
  report: LinesReport
  vouched: number
  unknownSources: Map<string, number>
  notForYear: Map<RowCause, number>
}

/**
 * Imports files of lines (docs/importing.md). Under `abort` a file with a bad row is checked to its end, reported, and
 * left out; under `skip` its valid rows are imported. Other files are not affected. A crash keeps the stored batches;
 * repeating the import changes nothing in them.
 */
async function importLines<Row>(
  kind: RowKind<Row>,
  sources: readonly LineSource[],
  options: LinesOptions,
): Promise<ImportRun<Row>> {
  const counts = { rows: 0, inserted: 0, replaced: 0, unchanged: 0, skipped: 0 }
  const report = { files: sources.length, ...counts, errors: [], errorCount: 0, failedFiles: 0 }
  const maps = { unknownSources: new Map<string, number>(), notForYear: new Map<RowCause, number>() }
  const run: ImportRun<Row> = { ...kind, ...options, report, vouched: 0, ...maps }
  for (const source of sources) {
    try {
      if (options.onError === 'skip') await storeFile(run, source, true)
      else if (await isValidFile(run, source)) await storeFile(run, source, false)
      else report.failedFiles += 1
    } catch (error) {
      if (!isRefusal(error, 'input_unreadable')) throw error
      addError(report, source.name, null, error.detail ?? error.code)
      report.failedFiles += 1
    }
  }
  return run
}

async function isValidFile<Row>(run: ImportRun<Row>, source: LineSource): Promise<boolean> {
  const { report } = run
  const errorsBefore = report.errorCount
  for await (const _batch of rowBatches(run, source, true)) run.onProgress(report.rows)
  return report.errorCount === errorsBefore
}

/** @param isFirst false for a second read, which counts nothing */
async function storeFile<Row>(run: ImportRun<Row>, source: LineSource, isFirst: boolean): Promise<void> {
  const { report } = run
  for await (const batch of rowBatches(run, source, isFirst)) {
    addCounts(report, await run.store(batch))
    run.onProgress(report.rows)
  }
}

/**
 * The valid rows of a file in batches.
 *
 * @throws Refusal `input_unreadable` when a second read finds a bad row that the first did not
 */
async function* rowBatches<Row>(
  run: ImportRun<Row>,
  source: LineSource,
  isFirst: boolean,
): AsyncGenerator<Row[]> {
  let batch: Row[] = []
  try {
    for await (const lines of source.lines()) {
      run.signal.throwIfAborted()
      for (const line of lines) {
        const parsed = parseLine(run.parse, line)
        if (isFirst) count(run, source.name, line.number, parsed)
        else if (parsed.kind === 'bad')
          throw new Refusal('input_unreadable', `it changed while it was being read (line ${line.number})`)
        if (parsed.kind !== 'row') continue
        batch.push(parsed.row)
        if (batch.length < run.batchRows) continue
        yield batch
        batch = []
        // The driver frees a statement's memory only after a turn of the event loop.
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
  } catch (error) {
    // Rows before a read error are valid.
    if (isFirst && batch.length > 0) yield batch
    throw error
  }
  if (batch.length > 0) yield batch
}

export function decodeLine(line: InputLine): { value: unknown } | { problem: string } {
  if ('problem' in line) return line
  // A file that was joined from others may have their byte order marks.
  const text = line.text.replace(/^\uFEFF/, '')
  try {
    return { value: JSON.parse(text) }
  } catch (error) {
    return { problem: `not JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}

function parseLine<Row>(parse: ImportRun<Row>['parse'], line: InputLine): ParsedLine<Row> {
  const [, start] = ('text' in line && /^\s*(\[|\{\s*$)/.exec(line.text)) || []
  if (start === '[')
    return { kind: 'bad', reason: `an array; write one object per line, as jq -c '.[]' does` }
  if (start !== undefined)
    return { kind: 'bad', reason: 'a part of an object; write one object per line, as jq -c does' }
  const decoded = decodeLine(line)
  return 'problem' in decoded ? { kind: 'bad', reason: decoded.problem } : parse(decoded.value)
}

/** Most unknown names that are counted separately; further ones share one label. */
const UNKNOWN_NAMES_KEPT = 1_000
const OTHER_UNKNOWN_NAMES = '(other names)'

function count<Row>(run: ImportRun<Row>, file: string, line: number, parsed: ParsedLine<Row>): void {
  const { unknownSources: unknown, notForYear } = run
  run.report.rows += 1
  if (parsed.kind === 'bad') {
    if (run.onError === 'skip') run.report.skipped += 1
    addError(run.report, file, line, parsed.reason)
  } else if (parsed.kind === 'unknown-source') {
    const named = shorten(parsed.source)
    const name = unknown.has(named) || unknown.size < UNKNOWN_NAMES_KEPT ? named : OTHER_UNKNOWN_NAMES
    unknown.set(name, (unknown.get(name) ?? 0) + 1)
  } else {
    if (parsed.vouched === true) run.vouched += 1
    for (const cause of parsed.causes ?? []) notForYear.set(cause, (notForYear.get(cause) ?? 0) + 1)
  }
}

const ERRORS_KEPT = 100

function addError(report: LinesReport, file: string, line: number | null, reason: string): void {
  report.errorCount += 1
  if (report.errors.length < ERRORS_KEPT) report.errors.push({ file, line, reason: shorten(reason) })
}

/** Rows in a batch: a text has at most 250 KB, so that a batch stays within the server's limit. */
const ARTICLE_BATCH_ROWS = 20

/** Imports article texts; see {@link importLines}. Idempotent. */
export async function importArticles(
  { feed, onProgress }: ImportPorts<'saveArticles' | 'storedItems'>,
  sources: readonly LineSource[],
  options: LinesOptions,
): Promise<LinesReport> {
  const kind: RowKind<KeyedArticle> = {
    parse(value) {
      const parsed = parseArticle(value)
      return parsed.kind === 'bad' ? parsed : { kind: 'row', row: parsed.article }
    },
    store: async (batch) => feed.saveArticles(await ofStoredItems(feed, batch)),
    batchRows: ARTICLE_BATCH_ROWS,
    onProgress,
  }
  return (await importLines(kind, sources, options)).report
}

/** Assigns each text to the likeliest stored item of its key, or to the likeliest when none is stored. */
async function ofStoredItems(
  feed: ImportPorts<'saveArticles' | 'storedItems'>['feed'],
  batch: readonly KeyedArticle[],
): Promise<Article[]> {
  const open = batch.flatMap(({ items }) => (items.length > 1 ? items : []))
  const stored = new Set((open.length > 0 ? await feed.storedItems(open) : []).map(itemId))
  return batch.flatMap(({ items, ...article }) => {
    const item = items.find((each) => stored.has(itemId(each))) ?? items[0]
    return item ? [{ ...item, ...article }] : []
  })
}

function itemId({ source, sourceId }: ItemRef): string {
  return JSON.stringify([source, sourceId])
}

/** The JSON result of `import signals` (docs/importing.md). */
export interface ImportReport extends LinesReport {
  /** Number of rows whose title provenance came from `--title-provenance`. */
  vouched: number
  /** Number of rows of unknown sources, by name. */
  unknownSources: Record<string, number>
  /** Number of valid rows that no Year can list, by cause; a row can have several causes. */
  notForYear: CauseCounts<RowCause>
}

export interface ImportOptions extends LinesOptions {
  /** Provenance for the titles of rows without their own; null for none. */
  titleProvenance: string | null
}

const BATCH_ROWS = 5_000

/** Imports daily signals; see {@link importLines}. Idempotent. */
export async function importSignals(
  { feed, onProgress }: ImportPorts<'importSignals'>,
  sources: readonly LineSource[],
  options: ImportOptions,
): Promise<ImportReport> {
  const kind: RowKind<Signal> = {
    parse(value) {
      const parsed = parseSignal(value, options.titleProvenance)
      if (parsed.kind !== 'signal') return parsed
      return { ...parsed, kind: 'row', row: parsed.signal, causes: rowCausesOf(parsed.signal) }
    },
    store: (batch) => feed.importSignals(batch),
    batchRows: BATCH_ROWS,
    onProgress,
  }
  const { report, vouched, unknownSources, notForYear } = await importLines(kind, sources, options)
  return {
    ...report,
    vouched,
    unknownSources: Object.fromEntries(unknownSources),
    notForYear: Object.fromEntries(notForYear),
  }
}
