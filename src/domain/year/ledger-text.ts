import { z } from 'zod'
import { sha256Hex } from '../digest.ts'
import type { LedgerRow, LegacyRow } from './ledger.ts'

/**
 * The texts whose digests chain and seal the ledgers (docs/decisions/0003-leaves-seals-and-heads.md). They are what a
 * host publishes of its ledgers, so that anyone can hash them (docs/auditing.md).
 */

/** First element of every hashed array, so that a leaf can never be mistaken for another document. */
const LEAF_FORMAT = 'dash-year-ledger/1'

const text = z.string().refine((value) => value.isWellFormed())
const number = z.int()
const textOrNull = text.nullable()
const numberOrNull = number.nullable()

/** What a leaf covers, in its order: every other column, the leaf before it among them. */
const LEAF_COLUMNS = {
  previousLeaf: text,
  seq: number,
  kind: text,
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
  publicationId: text,
  algorithmVersion: text,
  schemaVersion: number,
  envelopeKind: text,
  asOfDay: text,
  windowStart: number,
  windowEnd: number,
  generatedAt: number,
  publishedAt: number,
  sha256: text,
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
