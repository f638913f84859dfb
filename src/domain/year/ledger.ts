import { isSha256Hex, sha256Hex } from '../digest.ts'
import { parseJson } from '../text.ts'
import { DAY_MS, addDays, dayOf, formatInstant, parseInstant, startOfDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'

/** The words of the ledger (docs/publishing.md). Rows are what the database holds, entries what a row means. */

/** What identifies one immutable publication: the facts its envelope must repeat, and the digest of its bytes. */
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

/** Why a day has no publication: every attempt failed, or no run came that day. */
export type GapReason = 'attempts_spent' | 'missed'

/** What one entry of the versioned ledger says. */
export type EntryContent =
  | { kind: 'publication'; manifest: Manifest }
  | { kind: 'gap'; asOfDay: Day; reason: GapReason; attempts: number }
  | { kind: 'legacy-seal'; rows: number; digest: string }

/** A chained entry: its place, its time and the leaf hash that covers it and the leaf before. */
export type LedgerEntry = EntryContent & {
  seq: number
  recordedAt: Instant
  previousLeaf: string
  leaf: string
}

/** What a column of a ledger table holds; `?` where a cell may be NULL. */
export type ColumnType = 'integer' | 'text' | 'integer?' | 'text?'

export type Columns = Readonly<Record<string, ColumnType>>

interface CellTypes {
  integer: number
  text: string
  'integer?': number | null
  'text?': string | null
}

/** A row with these columns. */
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
 * Where the chain of a founding stands before its seal: written before the founding is committed, so that a head that
 * is already there can be told from one whose ledger was lost (docs/decisions/0010-archive-import.md).
 */
export interface FoundingMark {
  /** Entries the founding has before the seal. */
  seq: number
  /** Leaf of the last of them. */
  leaf: string
  beganAt: Instant
}

/** Both ledgers as one reading found them. */
export interface LedgerContents {
  rows: LedgerRow[]
  legacy: LegacyRow[]
  /** Of the founding that was begun, ended or not; null when there was none, or one without versioned entries. */
  founding: FoundingMark | null
}

/** A row of a ledger table that cannot be one, and why. */
export interface UnreadableRow {
  table: 'entries' | 'legacy_publications'
  /** Its number or position; where that cannot be read either, its place in the table. */
  at: number
  publicationId: string | null
  problem: string
}

/** Both ledgers as an audit reads them: past the rows that cannot be read. */
export interface AuditedContents extends LedgerContents {
  unreadable: UnreadableRow[]
}

/** The newest `heads/<seq>` of the object store: where the ledger stood when it was last known. */
export interface Head {
  seq: number
  leaf: string
  time: Instant
}

/** A head kept from before, and where it was kept. */
export type KeptHead = Head & { path: string }

/** One attempt to publish an as-of day; `failedAt` is null while it runs, when it succeeded, or when it was killed. */
export interface Attempt {
  asOfDay: Day
  attempt: number
  startedAt: Instant
  failedAt: Instant | null
  reason: string | null
}

/** Why an entry was not appended although the ledger works. */
export type AppendRefusal = 'lease-lost' | 'ledger-moved' | 'clock-went-back' | 'too-late'

/** Why an archive was not founded although the ledger works. */
export type FoundingRefusal = Extract<AppendRefusal, 'lease-lost' | 'ledger-moved'>

/**
 * The texts whose digests chain and seal the ledgers (docs/decisions/0003-ledger-hash-chain.md). They are what a
 * host publishes of its ledgers, so that anyone can hash them (docs/auditing.md).
 */

/** First element of every hashed array, so that a leaf can never be mistaken for another document. */
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
 * The row a line of a published ledger stands for, with the leaf the line hashes to.
 *
 * @returns null for anything {@link leafText} would not have written, character by character
 */
export function parseLeafText(line: string): LedgerRow | null {
  const [, ...cells] = parseArray(line)
  const row = rowOf(ENTRY_COLUMNS, LEAF_NAMES, cells) as Omit<LedgerRow, 'leaf'> | null
  return row && leafText(row) === line ? { ...row, leaf: sha256Hex(line) } : null
}

/**
 * The row a line of a published legacy ledger stands for.
 *
 * @returns null for anything {@link legacyText} would not have written, character by character
 */
export function parseLegacyLine(line: string): LegacyRow | null {
  const row = rowOf(LEGACY_COLUMNS, LEGACY_NAMES, parseArray(line)) as LegacyRow | null
  return row && legacyText([row]) === line ? row : null
}

function namesOf<C extends Columns>(columns: C): (keyof C & string)[] {
  return Object.keys(columns)
}

/** Cells by the names of their columns, or null when one of them does not belong there. */
function rowOf(columns: Columns, names: readonly string[], cells: readonly unknown[]): object | null {
  const row: Record<string, unknown> = {}
  for (const [place, name] of names.entries()) {
    const cell = cells[place]
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

/** The elements of a JSON array; none for anything else. */
function parseArray(line: string): unknown[] {
  const value = parseJson(line)
  return Array.isArray(value) ? value : []
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The text of a head file: JSON and a newline (docs/publishing.md). */
export function formatHead({ seq, leaf, time }: Head): string {
  return `${JSON.stringify({ seq, leaf, time: formatInstant(time) })}\n`
}

/** The head in a head file, or null when its bytes are none. */
export function parseHead(bytes: Uint8Array): Head | null {
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(bytes))
  } catch {
    return null
  }
  // By hand: an audit reads one a day of the archive's whole life, and a schema takes longer than reading the file.
  if (typeof value !== 'object' || value === null) return null
  const { seq, leaf, time: text, ...others } = value as Record<string, unknown>
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 1) return null
  if (typeof leaf !== 'string' || !isSha256Hex(leaf)) return null
  const time = typeof text === 'string' ? parseInstant(text) : null
  return time === null || Object.keys(others).length > 0 ? null : { seq, leaf, time }
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
