import { parseSignal } from '../domain/feed/signal.ts'
import type { Signal } from '../domain/feed/signal.ts'
import type { FeedStore, InputLine, LineSource } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'

/** What happened to a set of files: the JSON result of `import signals` (docs/importing.md). */
export interface ImportReport {
  files: number
  /** Every line that is not blank, bad ones too. */
  rows: number
  inserted: number
  replaced: number
  unchanged: number
  /** Bad rows left out under `skip`. */
  skipped: number
  /** Rows whose title `--title-provenance` vouched for. */
  vouched: number
  /** Rows of sources the product does not know, by name. */
  unknownSources: Record<string, number>
  /** The first hundred; `line` is null when the whole file is meant. */
  errors: { file: string; line: number | null; reason: string }[]
  errorCount: number
  /** Files of which nothing, or not everything, was imported. */
  failedFiles: number
}

export interface ImportOptions {
  onError: 'abort' | 'skip'
  /** Ends the import between two batches; what was stored stays. */
  signal: AbortSignal
  /** Vouches for the titles of rows that have no provenance of their own; null vouches for none. */
  titleProvenance: string | null
}

export interface ImportPorts {
  feed: Pick<FeedStore, 'importSignals'>
  /** Called after each batch with the rows read so far. */
  onProgress: (rows: number) => void
}

const BATCH_ROWS = 5_000
const ERRORS_KEPT = 100

/** Different unknown names counted one by one; beyond them rows count under one label. */
const UNKNOWN_NAMES_KEPT = 1_000
const OTHER_UNKNOWN_NAMES = '(other names)'

/**
 * Imports daily signals (docs/importing.md). Under `abort` a file with any bad row is read to its end, reported,
 * and left out whole; under `skip` its good rows are imported. Other files are not affected. Idempotent.
 */
export async function importSignals(
  { feed, onProgress }: ImportPorts,
  sources: readonly LineSource[],
  options: ImportOptions,
): Promise<ImportReport> {
  const tally = new Tally()
  for (const source of sources) {
    tally.report.files += 1
    try {
      if (options.onError === 'abort') {
        const errorsBefore = tally.report.errorCount
        for await (const batch of signalBatches(source, options, tally))
          onProgress(tally.progress(batch.length))
        if (tally.report.errorCount > errorsBefore) {
          tally.report.failedFiles += 1
          continue
        }
      }
      const counting = options.onError === 'skip' ? tally : null
      for await (const batch of signalBatches(source, options, counting)) {
        tally.add(await feed.importSignals(batch))
        onProgress(tally.report.rows)
      }
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'input_unreadable') throw error
      tally.fail(source.name, null, error.detail ?? error.code)
      tally.report.failedFiles += 1
    }
  }
  if (options.onError === 'skip') tally.report.skipped = tally.badRows
  return tally.finish()
}

/**
 * The good rows of a file in batches.
 *
 * @param tally counts rows and keeps errors; null on a second reading, where nothing may be counted twice
 * @throws Refusal `input_unreadable` on a second reading that finds a row the first did not
 */
async function* signalBatches(
  source: LineSource,
  options: ImportOptions,
  tally: Tally | null,
): AsyncGenerator<Signal[]> {
  let batch: Signal[] = []
  try {
    for await (const lines of source.lines()) {
      options.signal.throwIfAborted()
      for (const line of lines) {
        const parsed = parseLine(line, options.titleProvenance)
        tally?.count(source.name, line.number, parsed)
        if (parsed.kind === 'bad' && !tally) {
          throw new Refusal('input_unreadable', `it changed while it was read (line ${line.number})`)
        }
        if (parsed.kind !== 'signal') continue
        batch.push(parsed.signal)
        if (batch.length === BATCH_ROWS) {
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

function parseLine(line: InputLine, titleProvenance: string | null): ReturnType<typeof parseSignal> {
  if ('problem' in line) return { kind: 'bad', reason: line.problem }
  let row: unknown
  try {
    row = JSON.parse(line.text)
  } catch (error) {
    return { kind: 'bad', reason: `not JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
  return parseSignal(row, titleProvenance)
}

/** Counts for the report. */
class Tally {
  badRows = 0
  readonly report: ImportReport = {
    files: 0,
    rows: 0,
    inserted: 0,
    replaced: 0,
    unchanged: 0,
    skipped: 0,
    vouched: 0,
    unknownSources: {},
    errors: [],
    errorCount: 0,
    failedFiles: 0,
  }
  readonly #unknown = new Map<string, number>()
  #checked = 0

  count(file: string, line: number, parsed: ReturnType<typeof parseSignal>): void {
    this.report.rows += 1
    if (parsed.kind === 'signal' && parsed.vouched) this.report.vouched += 1
    if (parsed.kind === 'unknown-source') {
      const named = shorten(parsed.source)
      const known = this.#unknown.has(named) || this.#unknown.size < UNKNOWN_NAMES_KEPT
      const name = known ? named : OTHER_UNKNOWN_NAMES
      this.#unknown.set(name, (this.#unknown.get(name) ?? 0) + 1)
    }
    if (parsed.kind === 'bad') {
      this.badRows += 1
      this.fail(file, line, parsed.reason)
    }
  }

  fail(file: string, line: number | null, reason: string): void {
    this.report.errorCount += 1
    if (this.report.errors.length < ERRORS_KEPT)
      this.report.errors.push({ file, line, reason: shorten(reason) })
  }

  add(counts: { inserted: number; replaced: number; unchanged: number }): void {
    this.report.inserted += counts.inserted
    this.report.replaced += counts.replaced
    this.report.unchanged += counts.unchanged
  }

  /** Rows checked so far, for a progress display. */
  progress(rows: number): number {
    this.#checked += rows
    return this.#checked
  }

  finish(): ImportReport {
    this.report.unknownSources = Object.fromEntries(this.#unknown)
    return this.report
  }
}

/** Longest name or reason kept, in characters: input is not to be repeated at length. */
const TEXT_MAX_LENGTH = 300

function shorten(text: string): string {
  const characters = text.length > TEXT_MAX_LENGTH ? Array.from(text.slice(0, 2 * TEXT_MAX_LENGTH)) : []
  return characters.length > TEXT_MAX_LENGTH ? `${characters.slice(0, TEXT_MAX_LENGTH).join('')}…` : text
}
