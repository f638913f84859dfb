import { createHash } from 'node:crypto'
import type { Head, LedgerContents, LedgerRow, LegacyRow } from '../../../src/domain/year/ledger.ts'

/**
 * The rules of the ledgers once more, written from decisions.md, parts 3 to 5, and from decisions 0003 and 0010 alone, as
 * plainly as their sentences. It shares only types with `src`, and tells which rules are broken, not where.
 */

/** Heads in the object store: every one of them, or the newest alone, as a server asks for it. */
export interface StoredHeads {
  heads: readonly Pick<Head, 'seq' | 'leaf'>[]
  seen: 'all' | 'newest'
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Decision 0003: every column of an entry in the order of its table, after the leaf before. */
export function naiveLeaf(row: Omit<LedgerRow, 'leaf'>): string {
  const { previousLeaf, seq, kind, recordedAt, asOfDay, publicationId, algorithmVersion, schemaVersion } = row
  const { envelopeKind, windowStart, windowEnd, generatedAt, publishedAt, byteSize, reason, attempts } = row
  const { legacyRows, legacyDigest } = row
  // prettier-ignore
  return sha256(JSON.stringify(['dash-year-ledger/1', previousLeaf, seq, kind, recordedAt, asOfDay, publicationId,
    algorithmVersion, schemaVersion, envelopeKind, windowStart, windowEnd, generatedAt, publishedAt, row.sha256,
    byteSize, reason, attempts, legacyRows, legacyDigest]))
}

/** Decision 0003: the legacy rows in order of position, joined by newlines. */
export function naiveSeal(legacy: readonly LegacyRow[]): string {
  // prettier-ignore
  const lines = legacy.map((row) => JSON.stringify([row.position, row.publicationId, row.algorithmVersion,
    row.schemaVersion, row.envelopeKind, row.asOfDay, row.windowStart, row.windowEnd, row.generatedAt, row.publishedAt,
    row.sha256, row.byteSize]))
  return sha256(lines.join('\n'))
}

/** The rules that do not hold, by the sentences that say them; none for a sound ledger. */
export function brokenRules(
  { rows, legacy, founding }: LedgerContents,
  { heads, seen }: StoredHeads,
): string[] {
  const seals = rows.filter(({ kind }) => kind === 'legacy-seal')
  const sealedAt = rows.findIndex(({ kind }) => kind === 'legacy-seal')
  const publications = rows.filter(({ publishedAt }) => publishedAt !== null)
  const isOwn = (row: LedgerRow): boolean => row.seq > (rows[sealedAt]?.seq ?? 0)
  const timesBefore = (row: LedgerRow, at: number): number[] => [
    ...publications.slice(0, at).map(({ publishedAt }) => Number(publishedAt)),
    ...(isOwn(row) ? legacy.map(({ publishedAt }) => publishedAt) : []),
  ]
  const leafAt = (seq: number): string | undefined => rows.find((row) => row.seq === seq)?.leaf
  const isBegun = rows.length === 0 && founding !== null
  const isPinned = ({ seq, leaf }: Pick<Head, 'seq' | 'leaf'>): boolean =>
    isBegun && seq === founding.seq ? leaf === founding.leaf : leafAt(seq) === leaf
  // A founding writes its last imported entry's head and the seal's, whatever was imported; after it every entry has one.
  const firstWithHead = seen === 'newest' ? (heads[0]?.seq ?? 0) + 1 : sealedAt === -1 ? 1 : sealedAt

  const rules: Record<string, boolean> = {
    'entries are numbered from 1 on': rows.every(({ seq }, index) => seq === index + 1),
    'every entry names the leaf before it': rows.every(
      ({ previousLeaf }, index) => previousLeaf === (rows[index - 1]?.leaf ?? '0'.repeat(64)),
    ),
    'every leaf covers its entry': rows.every((row) => row.leaf === naiveLeaf(row)),
    'every entry is a publication, a gap or a seal': rows.every(isEntry),
    'times of entries never decrease': rows.every(
      ({ recordedAt }, index) => index === 0 || recordedAt >= (rows[index - 1]?.recordedAt ?? 0),
    ),
    'an own publication is later than every one before, an imported one not earlier': publications.every(
      (row, index) =>
        timesBefore(row, index).every((time) =>
          isOwn(row) ? Number(row.publishedAt) > time : Number(row.publishedAt) >= time,
        ),
    ),
    'there is one seal at most': seals.length <= 1,
    'legacy rows are publications, numbered from 1 on': legacy.every(
      (row, index) => isManifest(row) && row.position === index + 1,
    ),
    'legacy rows are as the seal says, and none are without': seals.every(
      ({ legacyRows, legacyDigest }) => legacyRows === legacy.length && legacyDigest === naiveSeal(legacy),
    ),
    'no legacy row is without a seal': legacy.length === 0 || seals.length > 0,
    'the archive begins as its founding says':
      rows.length === 0 ||
      founding === null ||
      (leafAt(founding.seq) === founding.leaf && rows[founding.seq]?.kind === 'legacy-seal'),
    'every head names its entry': heads.every(isPinned),
    'no head is missing but that of the newest entry': rows
      .slice(0, -1)
      .every(({ seq }) => seq < firstWithHead || heads.some((head) => head.seq === seq)),
  }
  return Object.entries(rules).flatMap(([rule, holds]) => (holds ? [] : [rule]))
}

function isEntry(row: LedgerRow): boolean {
  switch (row.kind) {
    case 'publication':
      return isManifest(row)
    case 'gap':
      return isDay(row.asOfDay) && row.attempts !== null && /^(attempts_spent|missed)$/.test(row.reason ?? '')
    case 'legacy-seal':
      return row.legacyRows !== null && row.legacyDigest !== null
    default:
      return false
  }
}

function isManifest(row: LedgerRow | LegacyRow): boolean {
  const { publicationId, algorithmVersion, schemaVersion, envelopeKind, asOfDay, byteSize } = row
  const { windowStart, windowEnd, generatedAt, publishedAt } = row
  const cells = [publicationId, algorithmVersion, schemaVersion, envelopeKind, byteSize]
  const times = [windowStart, windowEnd, generatedAt, publishedAt]
  const isDigest = /^[0-9a-f]{64}$/.test(row.sha256 ?? '')
  return [...cells, ...times].every((cell) => cell !== null) && isDay(asOfDay) && isDigest
}

function isDay(text: string | null): boolean {
  if (text === null || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const time = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}
