import { isSha256Hex, sha256Hex } from '../digest.ts'
import { parseJson, parseJsonBytes } from '../json.ts'
import { DAY_MS, addDays, dayOf, formatInstant, parseInstant, startOfDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'

/** Types and texts of the ledger (docs/publishing.md). Rows are database records; entries are their meaning. */

/** Identity of an immutable publication: the facts its envelope repeats, and the digest of its bytes. */
export interface Manifest {
  publicationId: string
  algorithmVersion: string
  schemaVersion: number
  kind: string
  asOfDay: Day
  windowStart: Instant
  windowEnd: Instant
  generatedAt: Instant
  publishedAt: Instant
  /** SHA-256 of the stored bytes, 64 lower-case hex digits. */
  sha256: string
  /** Length of the stored bytes. */
  byteSize: number
}

/** Reason of a gap: every attempt failed, or no run took place that day. */
export type GapReason = 'attempts_spent' | 'missed'

/** Content of an entry of the versioned ledger. */
export type EntryContent =
  | { kind: 'publication'; manifest: Manifest }
  | { kind: 'gap'; asOfDay: Day; reason: GapReason; attempts: number }
  | { kind: 'legacy-seal'; rows: number; digest: string }

/** A chained entry: sequence number, time, and the leaf that covers it and the previous leaf. */
export type LedgerEntry = EntryContent & {
  seq: number
  recordedAt: Instant
  previousLeaf: string
  leaf: string
}

/** Type of a ledger column; `?` allows NULL. */
type ColumnType = 'integer' | 'text' | 'integer?' | 'text?'

export type Columns = Readonly<Record<string, ColumnType>>

interface CellTypes {
  integer: number
  text: string
  'integer?': number | null
  'text?': string | null
}

type RowOf<C extends Columns> = { -readonly [Name in keyof C]: CellTypes[C[Name]] }

/**
 * The columns of an entry, in the order of its table. The row, its text, its parser and the table derive from here; a
 * leaf covers every column but itself, beginning with `previousLeaf`.
 */
export const ENTRY_COLUMNS = {
  seq: 'integer',
  kind: 'text',
  recordedAt: 'integer',
  asOfDay: 'text?',
  publicationId: 'text?',
  algorithmVersion: 'text?',
  schemaVersion: 'integer?',
  envelopeKind: 'text?',
  windowStart: 'integer?',
  windowEnd: 'integer?',
  generatedAt: 'integer?',
  publishedAt: 'integer?',
  sha256: 'text?',
  byteSize: 'integer?',
  reason: 'text?',
  attempts: 'integer?',
  legacyRows: 'integer?',
  legacyDigest: 'text?',
  previousLeaf: 'text',
  leaf: 'text',
} as const satisfies Columns

/** One row of the versioned ledger, as read. */
export type LedgerRow = RowOf<typeof ENTRY_COLUMNS>

/** The columns of a legacy publication, in the order of its table and of the text that the seal covers. */
export const LEGACY_COLUMNS = {
  position: 'integer',
  publicationId: 'text',
  algorithmVersion: 'text',
  schemaVersion: 'integer',
  envelopeKind: 'text',
  asOfDay: 'text',
  windowStart: 'integer',
  windowEnd: 'integer',
  generatedAt: 'integer',
  publishedAt: 'integer',
  sha256: 'text',
  byteSize: 'integer',
} as const satisfies Columns

/** One row of the legacy ledger, as read. */
export type LegacyRow = RowOf<typeof LEGACY_COLUMNS>

/**
 * State of a founding's chain before its seal. It is written before the commit, so that an existing head can be
 * distinguished from one whose ledger was lost (docs/decisions/0010-archive-import.md).
 */
export interface FoundingMark {
  /** Number of entries before the seal. */
  seq: number
  /** Leaf of the last entry. */
  leaf: string
  beganAt: Instant
}

/** Both ledgers from one consistent read. */
export interface LedgerContents {
  rows: LedgerRow[]
  legacy: LegacyRow[]
  /** Mark of a started founding, finished or not; null without one, or for one without versioned entries. */
  founding: FoundingMark | null
}

/** An invalid row of a ledger table, and the reason. */
export interface UnreadableRow {
  table: 'entries' | 'legacy_publications'
  /** Its number or position; its index in the table when that is unreadable. */
  at: number
  publicationId: string | null
  problem: string
}

/** Both ledgers in an audit, which skips unreadable rows. */
export interface AuditedContents extends LedgerContents {
  unreadable: UnreadableRow[]
}

/** The newest `heads/<seq>` of the object store: the last known end of the ledger. */
export interface Head {
  seq: number
  leaf: string
  time: Instant
}

/** A head that was kept elsewhere, and its location. */
export type KeptHead = Head & { path: string }

/** One attempt to publish an as-of day; `failedAt` is null while it runs, when it succeeded, or when it was killed. */
export interface Attempt {
  asOfDay: Day
  attempt: number
  startedAt: Instant
  failedAt: Instant | null
  reason: string | null
}

/** Reason why a working ledger refused an entry. */
export type AppendRefusal = 'lease-lost' | 'ledger-moved' | 'clock-went-back' | 'too-late'

/** Reason why a working ledger refused a founding. */
export type FoundingRefusal = Extract<AppendRefusal, 'lease-lost' | 'ledger-moved'>

/**
 * The texts whose digests chain and seal the ledgers (docs/decisions/0003-ledger-hash-chain.md). A host publishes them,
 * so that anyone can hash them (docs/auditing.md).
 */

/** First element of every hashed array; separates leaves from other documents. */
const LEAF_FORMAT = 'dash-year-ledger/1'

const LEAF_NAMES: Exclude<keyof LedgerRow, 'leaf'>[] = [
  'previousLeaf',
  ...namesOf(ENTRY_COLUMNS).filter((name) => name !== 'previousLeaf' && name !== 'leaf'),
]

const LEGACY_NAMES = namesOf(LEGACY_COLUMNS)

/** The text whose SHA-256 is a row's leaf. */
export function leafText(row: Omit<LedgerRow, 'leaf'>): string {
  return JSON.stringify([LEAF_FORMAT, ...LEAF_NAMES.map((name) => row[name])])
}

/** The text whose SHA-256 the seal over the legacy ledger records: its rows in order of position. */
export function legacyText(legacy: readonly LegacyRow[]): string {
  return legacy.map((row) => JSON.stringify(LEGACY_NAMES.map((name) => row[name]))).join('\n')
}

/**
 * Parses a line of a published ledger to its row and leaf.
 *
 * @returns null unless {@link leafText} would write exactly this line
 */
export function parseLeafText(line: string): LedgerRow | null {
  const [, ...cells] = parseArray(line)
  const row = rowOf(ENTRY_COLUMNS, LEAF_NAMES, cells) as Omit<LedgerRow, 'leaf'> | null
  return row && leafText(row) === line ? { ...row, leaf: sha256Hex(line) } : null
}

/**
 * Parses a line of a published legacy ledger.
 *
 * @returns null unless {@link legacyText} would write exactly this line
 */
export function parseLegacyLine(line: string): LegacyRow | null {
  const row = rowOf(LEGACY_COLUMNS, LEGACY_NAMES, parseArray(line)) as LegacyRow | null
  return row && legacyText([row]) === line ? row : null
}

function namesOf<C extends Columns>(columns: C): (keyof C & string)[] {
  return Object.keys(columns)
}

/** Cells by column name; null when one has the wrong type. */
function rowOf(columns: Columns, names: readonly string[], cells: readonly unknown[]): object | null {
  const row: Record<string, unknown> = {}
  for (const [index, name] of names.entries()) {
    const cell = cells[index]
    if (!fits(cell, columns[name])) return null
    row[name] = cell
  }
  return row
}

function fits(cell: unknown, type: ColumnType | undefined): boolean {
  if (cell === null) return type === 'integer?' || type === 'text?'
  if (type === 'integer' || type === 'integer?') return Number.isSafeInteger(cell)
  return typeof cell === 'string' && cell.isWellFormed()
}

/** The elements of a JSON array; empty for anything else. */
function parseArray(line: string): unknown[] {
  const value = parseJson(line)
  return Array.isArray(value) ? value : []
}

/** The text of a head file: JSON and a newline (docs/publishing.md). */
export function formatHead({ seq, leaf, time }: Head): string {
  return `${JSON.stringify({ seq, leaf, time: formatInstant(time) })}\n`
}

/** Parses a head file; null when it is invalid. */
export function parseHead(bytes: Uint8Array): Head | null {
  const value = parseJsonBytes(bytes)
  // Checked by hand for speed: an audit reads one head per entry, and a schema takes longer than reading the file.
  if (typeof value !== 'object' || value === null) return null
  const { seq, leaf, time: text, ...others } = value as Record<string, unknown>
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 1) return null
  if (typeof leaf !== 'string' || !isSha256Hex(leaf)) return null
  const time = typeof text === 'string' ? parseInstant(text) : null
  return time === null || Object.keys(others).length > 0 ? null : { seq, leaf, time }
}

export function sealOf<Row extends { kind: string }>(rows: readonly Row[]): Row | undefined {
  return rows.find(({ kind }) => kind === 'legacy-seal')
}

/** The number of complete UTC days a Year covers (docs/ranking.md). */
export const TARGET_DAYS = 365

/** The rolling Year that ends with an as-of day (docs/ranking.md). */
export interface YearWindow {
  asOfDay: Day
  firstDay: Day
  /** Inclusive. */
  windowStart: Instant
  /** Exclusive: midnight after the as-of day. */
  windowEnd: Instant
}

/** The last UTC day that was complete at `now`. */
export function lastCompleteDay(now: Instant): Day {
  return addDays(dayOf(now), -1)
}

/** The 365-day window whose last day is `asOfDay`. */
export function windowEnding(asOfDay: Day): YearWindow {
  const windowEnd = startOfDay(asOfDay) + DAY_MS
  const windowStart = windowEnd - TARGET_DAYS * DAY_MS
  return { asOfDay, firstDay: dayOf(windowStart), windowStart, windowEnd }
}
