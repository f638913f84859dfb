import { parseArticle } from '../domain/feed/article.ts'
import type { Article, KeyedArticle } from '../domain/feed/article.ts'
import { parseSignal } from '../domain/feed/signal.ts'
import type { Signal, ImportCounts } from '../domain/feed/signal.ts'
import type { ItemRef } from '../domain/feed/source.ts'
import type { FeedStore, InputLine, LineSource } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { shorten } from './collect-sources.ts'

/** What happened to a set of files, whatever their rows are (docs/importing.md). */
export interface LinesReport {
  files: number
  /** Every line that is not blank, bad ones too. */
  rows: number
  inserted: number
  replaced: number
  unchanged: number
  /** Bad rows left out under `skip`. */
  skipped: number
  /** The first hundred; `line` is null when the whole file is meant. */
  errors: { file: string; line: number | null; reason: string }[]
  errorCount: number
  /** Files of which nothing, or not everything, was imported. */
  failedFiles: number
}

export interface LinesOptions {
  onError: 'abort' | 'skip'
  /** Ends the import between two batches; what was stored stays. */
  signal: AbortSignal
}

/** What one line of a file holds, for whoever imports it. */
type ParsedLine<Row, Aside> =
  { kind: 'row'; row: Row } | { kind: 'bad'; reason: string } | { kind: 'aside'; aside: Aside }

/** One kind of row: how it is read and stored. */
interface LineImport<Row, Aside> {
  /** @param value what JSON.parse gave for the line */
  parse(value: unknown): ParsedLine<Row, Aside>
  /** Stores a batch in one transaction. */
  store(batch: readonly Row[]): Promise<ImportCounts>
  batchRows: number
  /** Told each line but a bad one once, as it is counted. */
  onCounted?(line: Exclude<ParsedLine<Row, Aside>, { kind: 'bad' }>): void
  /** Called after each batch with the rows read so far. */
  onProgress(rows: number): void
}

const ERRORS_KEPT = 100

/**
 * Imports files of lines (docs/importing.md). Under `abort` a file with any bad row is read to its end, reported, and
 * left out whole; under `skip` its good rows are imported. Other files are not affected.
 */
async function importLines<Row, Aside>(
  kind: LineImport<Row, Aside>,
  sources: readonly LineSource[],
  options: LinesOptions,
): Promise<LinesReport> {
  const tally = new Tally(kind)
  for (const source of sources) {
    tally.report.files += 1
    try {
      if (options.onError === 'abort') {
        const errorsBefore = tally.report.errorCount
        for await (const batch of rowBatches(kind, source, options.signal, tally))
          kind.onProgress(tally.progress(batch.length))
        if (tally.report.errorCount > errorsBefore) {
          tally.report.failedFiles += 1
          continue
        }
      }
      const counting = options.onError === 'skip' ? tally : null
      for await (const batch of rowBatches(kind, source, options.signal, counting)) {
        tally.add(await kind.store(batch))
        kind.onProgress(tally.report.rows)
      }
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'input_unreadable') throw error
      tally.fail(source.name, null, error.detail ?? error.code)
      tally.report.failedFiles += 1
    }
  }
  if (options.onError === 'skip') tally.report.skipped = tally.badRows
  return tally.report
}

/**
 * The good rows of a file in batches.
 *
 * @param tally counts rows and keeps errors; null on a second reading, where nothing may be counted twice
 * @throws Refusal `input_unreadable` on a second reading that finds a row the first did not
 */
async function* rowBatches<Row, Aside>(
  kind: LineImport<Row, Aside>,
  source: LineSource,
  signal: AbortSignal,
  tally: Tally<Row, Aside> | null,
): AsyncGenerator<Row[]> {
  let batch: Row[] = []
  try {
    for await (const lines of source.lines()) {
      signal.throwIfAborted()
      for (const line of lines) {
        const parsed = parseLine(kind, line)
        tally?.count(source.name, line.number, parsed)
        if (parsed.kind === 'bad' && !tally) {
          throw new Refusal('input_unreadable', `it changed while it was read (line ${line.number})`)
        }
        if (parsed.kind !== 'row') continue
        batch.push(parsed.row)
        if (batch.length === kind.batchRows) {
          yield batch
          batch = []
          // The driver frees a statement's memory only after a turn of the event loop.
          await new Promise((resolve) => setImmediate(resolve))
        }
      }
    }
  } catch (error) {
    // What was read before a file broke off is good.
    if (tally && batch.length > 0) yield batch
    throw error
  }
  if (batch.length > 0) yield batch
}

function parseLine<Row, Aside>(kind: LineImport<Row, Aside>, line: InputLine): ParsedLine<Row, Aside> {
  if ('problem' in line) return { kind: 'bad', reason: line.problem }
  let value: unknown
  try {
    value = JSON.parse(line.text)
  } catch (error) {
    return { kind: 'bad', reason: `not JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
  return kind.parse(value)
}

/** Counts for the report. */
class Tally<Row, Aside> {
  badRows = 0
  readonly report: LinesReport = {
    files: 0,
    rows: 0,
    inserted: 0,
    replaced: 0,
    unchanged: 0,
    skipped: 0,
    errors: [],
    errorCount: 0,
    failedFiles: 0,
  }
  readonly #kind: Pick<LineImport<Row, Aside>, 'onCounted'>
  #checked = 0

  constructor(kind: Pick<LineImport<Row, Aside>, 'onCounted'>) {
    this.#kind = kind
  }

  count(file: string, line: number, parsed: ParsedLine<Row, Aside>): void {
    this.report.rows += 1
    if (parsed.kind !== 'bad') {
      this.#kind.onCounted?.(parsed)
      return
    }
    this.badRows += 1
    this.fail(file, line, parsed.reason)
  }

  fail(file: string, line: number | null, reason: string): void {
    this.report.errorCount += 1
    if (this.report.errors.length < ERRORS_KEPT)
      this.report.errors.push({ file, line, reason: shorten(reason) })
  }

  add(counts: ImportCounts): void {
    this.report.inserted += counts.inserted
    this.report.replaced += counts.replaced
    this.report.unchanged += counts.unchanged
  }

  /** Rows checked so far, for a progress display. */
  progress(rows: number): number {
    this.#checked += rows
    return this.#checked
  }
}

export interface ArticleImportPorts {
  feed: Pick<FeedStore, 'saveArticles' | 'storedItems'>
  /** Called after each batch with the rows read so far. */
  onProgress: (rows: number) => void
}

/** A text has at most a quarter of a megabyte, so that a batch is no larger than what a server takes at once. */
const ARTICLE_BATCH_ROWS = 20

/** Imports article texts; see {@link importLines}. Idempotent. */
export function importArticles(
  { feed, onProgress }: ArticleImportPorts,
  sources: readonly LineSource[],
  options: LinesOptions,
): Promise<LinesReport> {
  return importLines<KeyedArticle, never>(
    {
      parse(value) {
        const parsed = parseArticle(value)
        return parsed.kind === 'bad' ? parsed : { kind: 'row', row: parsed.article }
      },
      store: async (batch) => feed.saveArticles(await ofStoredItems(feed, batch)),
      batchRows: ARTICLE_BATCH_ROWS,
      onProgress,
    },
    sources,
    options,
  )
}

/** Each text for the likeliest item of its key that is stored, or for the likeliest where none is. */
async function ofStoredItems(
  feed: ArticleImportPorts['feed'],
  batch: readonly KeyedArticle[],
): Promise<Article[]> {
  const open = batch.flatMap(({ items }) => (items.length > 1 ? items : []))
  const stored = new Set((open.length > 0 ? await feed.storedItems(open) : []).map(textOf))
  return batch.flatMap(({ items, ...article }) => {
    const item = items.find((each) => stored.has(textOf(each))) ?? items[0]
    return item ? [{ ...item, ...article }] : []
  })
}

function textOf({ source, sourceId }: ItemRef): string {
  return JSON.stringify([source, sourceId])
}

/** What happened to a set of files: the JSON result of `import signals` (docs/importing.md). */
export interface ImportReport extends LinesReport {
  /** Rows whose title `--title-provenance` vouched for. */
  vouched: number
  /** Rows of sources the product does not know, by name. */
  unknownSources: Record<string, number>
}

export interface ImportOptions extends LinesOptions {
  /** Vouches for the titles of rows that have no provenance of their own; null vouches for none. */
  titleProvenance: string | null
}

export interface ImportPorts {
  feed: Pick<FeedStore, 'importSignals'>
  /** Called after each batch with the rows read so far. */
  onProgress: (rows: number) => void
}

const BATCH_ROWS = 5_000

/** Different unknown names counted one by one; beyond them rows count under one label. */
const UNKNOWN_NAMES_KEPT = 1_000
const OTHER_UNKNOWN_NAMES = '(other names)'

/** Imports daily signals; see {@link importLines}. Idempotent. */
export async function importSignals(
  { feed, onProgress }: ImportPorts,
  sources: readonly LineSource[],
  options: ImportOptions,
): Promise<ImportReport> {
  let vouched = 0
  const unknown = new Map<string, number>()
  const countUnknown = (source: string): void => {
    const named = shorten(source)
    const known = unknown.has(named) || unknown.size < UNKNOWN_NAMES_KEPT
    const name = known ? named : OTHER_UNKNOWN_NAMES
    unknown.set(name, (unknown.get(name) ?? 0) + 1)
  }
  const report = await importLines<VouchedSignal, string>(
    {
      parse: (value) => parseRow(value, options.titleProvenance),
      store: (batch) => feed.importSignals(batch.map(({ signal }) => signal)),
      batchRows: BATCH_ROWS,
      onCounted(line) {
        if (line.kind === 'aside') countUnknown(line.aside)
        else if (line.row.vouched) vouched += 1
      },
      onProgress,
    },
    sources,
    options,
  )
  return { ...report, vouched, unknownSources: Object.fromEntries(unknown) }
}

interface VouchedSignal {
  signal: Signal
  /** True when `titleProvenance` of the options vouched for the title. */
  vouched: boolean
}

function parseRow(value: unknown, titleProvenance: string | null): ParsedLine<VouchedSignal, string> {
  const parsed = parseSignal(value, titleProvenance)
  if (parsed.kind === 'bad') return parsed
  if (parsed.kind === 'unknown-source') return { kind: 'aside', aside: parsed.source }
  return { kind: 'row', row: { signal: parsed.signal, vouched: parsed.vouched } }
}
