import { z } from 'zod'
import { sha256Hex } from '../digest.ts'
import type { LedgerRow, LegacyRow } from './ledger.ts'

/**
 * The texts whose digests chain and seal the ledgers (docs/decisions/0003-leaves-seals-and-heads.md). They are what a
 * host publishes of its ledgers, so that anyone can hash them (docs/auditing.md).
 */

/** First element of every hashed array, so that a leaf can never be mistaken for another document. */
const LEAF_FORMAT = 'dash-year-ledger/1'

/** The text whose SHA-256 is a row's leaf: every other column, the leaf before it among them. */
export function leafText(row: Omit<LedgerRow, 'leaf'>): string {
  return JSON.stringify([
    LEAF_FORMAT,
    row.previousLeaf,
    row.seq,
    row.kind,
    row.recordedAt,
    row.asOfDay,
    row.publicationId,
    row.algorithmVersion,
    row.schemaVersion,
    row.envelopeKind,
    row.windowStart,
    row.windowEnd,
    row.generatedAt,
    row.publishedAt,
    row.sha256,
    row.byteSize,
    row.reason,
    row.attempts,
    row.legacyRows,
    row.legacyDigest,
  ])
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
  const parsed = leafArray.safeParse(parseJson(line))
  if (!parsed.success) return null
  const [, previousLeaf, seq, kind, recordedAt, asOfDay, publicationId, ...versions] = parsed.data
  const [algorithmVersion, schemaVersion, envelopeKind, windowStart, windowEnd, ...facts] = versions
  const [generatedAt, publishedAt, sha256, byteSize, reason, attempts, legacyRows, legacyDigest] = facts
  const row = {
    seq,
    kind,
    recordedAt,
    asOfDay,
    publicationId,
    algorithmVersion,
    schemaVersion,
    envelopeKind,
    windowStart,
    windowEnd,
    generatedAt,
    publishedAt,
    sha256,
    byteSize,
    reason,
    attempts,
    legacyRows,
    legacyDigest,
    previousLeaf,
  }
  return leafText(row) === line ? { ...row, leaf: sha256Hex(line) } : null
}

/**
 * The row a line of a published legacy ledger stands for.
 *
 * @returns null for anything {@link legacyText} would not have written, character by character
 */
export function parseLegacyLine(line: string): LegacyRow | null {
  const parsed = legacyArray.safeParse(parseJson(line))
  if (!parsed.success) return null
  const [position, publicationId, algorithmVersion, schemaVersion, envelopeKind, asOfDay, ...times] =
    parsed.data
  const [windowStart, windowEnd, generatedAt, publishedAt, sha256, byteSize] = times
  const row = {
    position,
    publicationId,
    algorithmVersion,
    schemaVersion,
    envelopeKind,
    asOfDay,
    windowStart,
    windowEnd,
    generatedAt,
    publishedAt,
    sha256,
    byteSize,
  }
  return legacyLine(row) === line ? row : null
}

function legacyLine(row: LegacyRow): string {
  return JSON.stringify([
    row.position,
    row.publicationId,
    row.algorithmVersion,
    row.schemaVersion,
    row.envelopeKind,
    row.asOfDay,
    row.windowStart,
    row.windowEnd,
    row.generatedAt,
    row.publishedAt,
    row.sha256,
    row.byteSize,
  ])
}

const text = z.string().refine((value) => value.isWellFormed())
const number = z.int()
const textOrNull = text.nullable()
const numberOrNull = number.nullable()

/** The columns in the order of {@link leafText}. */
const leafArray = z.tuple([
  z.literal(LEAF_FORMAT),
  text,
  number,
  text,
  number,
  textOrNull,
  textOrNull,
  textOrNull,
  numberOrNull,
  textOrNull,
  numberOrNull,
  numberOrNull,
  numberOrNull,
  numberOrNull,
  textOrNull,
  numberOrNull,
  textOrNull,
  numberOrNull,
  numberOrNull,
  textOrNull,
])

/** The columns in the order of {@link legacyText}. */
const legacyArray = z.tuple([
  number,
  text,
  text,
  number,
  text,
  text,
  number,
  number,
  number,
  number,
  text,
  number,
])

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}
