import { z } from 'zod'
import { isSha256Hex, sha256Hex } from '../digest.ts'
import { DAY_MS, addDays, dayOf, formatInstant, parseInstant, startOfDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'

/**
 * The words of the ledger (docs/publishing.md). Rows are what the database holds; entries are what a
 * proved row means.
 */

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

/** Every column of one row of the versioned ledger, as read, in the order the leaf covers them. */
export interface LedgerRow {
  seq: number
  kind: string
  recordedAt: number
  asOfDay: string | null
  publicationId: string | null
  algorithmVersion: string | null
  schemaVersion: number | null
  envelopeKind: string | null
  windowStart: number | null
  windowEnd: number | null
  generatedAt: number | null
  publishedAt: number | null
  sha256: string | null
  byteSize: number | null
  reason: string | null
  attempts: number | null
  legacyRows: number | null
  legacyDigest: string | null
  previousLeaf: string
  leaf: string
}

/** Every column of one row of the legacy ledger, in the order the seal covers them. */
export interface LegacyRow {
  position: number
  publicationId: string
  algorithmVersion: string
  schemaVersion: number
  envelopeKind: string
  asOfDay: string
  windowStart: number
  windowEnd: number
  generatedAt: number
  publishedAt: number
  sha256: string
  byteSize: number
}

/**
 * Where the chain of a founding stands before its seal: written before the founding is committed, so that a head that
 * is already there can be told from one whose ledger was lost (docs/decisions/0010-founding-an-archive.md).
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

/** The newest `heads/<seq>` of the object store: where the ledger stood when it was last known. */
export interface Head {
  seq: number
  leaf: string
  time: Instant
}

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
 * The texts whose digests chain and seal the ledgers (docs/decisions/0003-leaves-seals-and-heads.md). They are what a
 * host publishes of its ledgers, so that anyone can hash them (docs/auditing.md).
 */

/** First element of every hashed array, so that a leaf can never be mistaken for another document. */
const LEAF_FORMAT = 'dash-year-ledger/1'

const wellFormed = z.string().refine((value) => value.isWellFormed())
const number = z.int()
const textOrNull = wellFormed.nullable()
const numberOrNull = number.nullable()

/** What a leaf covers, in its order: every other column, the leaf before it among them. */
const LEAF_COLUMNS = {
  previousLeaf: wellFormed,
  seq: number,
  kind: wellFormed,
  recordedAt: number,
  asOfDay: textOrNull,
  publicationId: textOrNull,
  algorithmVersion: textOrNull,
  schemaVersion: numberOrNull,
  envelopeKind: textOrNull,
  windowStart: numberOrNull,
  windowEnd: numberOrNull,
  generatedAt: numberOrNull,
  publishedAt: numberOrNull,
  sha256: textOrNull,
  byteSize: numberOrNull,
  reason: textOrNull,
  attempts: numberOrNull,
  legacyRows: numberOrNull,
  legacyDigest: textOrNull,
} satisfies Record<keyof Omit<LedgerRow, 'leaf'>, z.ZodType>

/** What the seal covers of each row of the legacy ledger, in its order: every column. */
const LEGACY_COLUMNS = {
  position: number,
  publicationId: wellFormed,
  algorithmVersion: wellFormed,
  schemaVersion: number,
  envelopeKind: wellFormed,
  asOfDay: wellFormed,
  windowStart: number,
  windowEnd: number,
  generatedAt: number,
  publishedAt: number,
  sha256: wellFormed,
  byteSize: number,
} satisfies Record<keyof LegacyRow, z.ZodType>

const leafNames = namesOf(LEAF_COLUMNS)
const legacyNames = namesOf(LEGACY_COLUMNS)
const leafRow = z.object(LEAF_COLUMNS)
const legacyRow = z.object(LEGACY_COLUMNS)

/** The text whose SHA-256 is a row's leaf. */
export function leafText(row: Omit<LedgerRow, 'leaf'>): string {
  return JSON.stringify([LEAF_FORMAT, ...leafNames.map((name) => row[name])])
}

/** The text whose SHA-256 the seal over the legacy ledger records: its rows in order of position. */
export function legacyText(legacy: readonly LegacyRow[]): string {
  return legacy.map(legacyLine).join('\n')
}

/**
 * The row a line of a published ledger stands for, with the leaf the line hashes to.
 *
 * @returns null for anything {@link leafText} would not have written, character by character
 */
export function parseLeafText(line: string): LedgerRow | null {
  const [, ...cells] = parseArray(line)
  const parsed = leafRow.safeParse(named(leafNames, cells))
  return parsed.success && leafText(parsed.data) === line ? { ...parsed.data, leaf: sha256Hex(line) } : null
}

/**
 * The row a line of a published legacy ledger stands for.
 *
 * @returns null for anything {@link legacyText} would not have written, character by character
 */
export function parseLegacyLine(line: string): LegacyRow | null {
  const parsed = legacyRow.safeParse(named(legacyNames, parseArray(line)))
  return parsed.success && legacyLine(parsed.data) === line ? parsed.data : null
}

function legacyLine(row: LegacyRow): string {
  return JSON.stringify(legacyNames.map((name) => row[name]))
}

function namesOf<Name extends string>(columns: Record<Name, unknown>): Name[] {
  return Object.keys(columns) as Name[]
}

function named(names: readonly string[], cells: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name, place) => [name, cells[place]]))
}

/** The elements of a JSON array; none for anything else. */
function parseArray(line: string): unknown[] {
  try {
    const value: unknown = JSON.parse(line)
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
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
