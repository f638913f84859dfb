import { parseSignal } from '../domain/feed/signal.ts'
import type { Signal } from '../domain/feed/signal.ts'
import type { FeedStore, LineSource } from '../domain/ports.ts'
import { importLines } from './import-lines.ts'
import type { LinesOptions, LinesReport, ParsedLine } from './import-lines.ts'
import { shorten } from './shorten.ts'

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
