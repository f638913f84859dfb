import { isSha256Hex, sha256Hex } from '../digest.ts'
import { parseDay } from '../time.ts'
import type { Instant } from '../time.ts'
import { ENTRY_COLUMNS, leafText, legacyText } from './ledger.ts'
import { ENTRY_MAX_BYTES } from './log/tiles.ts'
import type {
  EntryContent,
  FoundingMark,
  Head,
  LedgerEntry,
  LedgerRow,
  LegacyRow,
  Manifest,
} from './ledger.ts'

/**
 * The chain (docs/publishing.md): every entry's leaf covers all of its columns and the leaf before it, one
 * seal covers the legacy ledger, and a head outside the database pins the end.
 */

/** The leaf before the first entry. */
export const GENESIS_LEAF = '0'.repeat(64)

const NO_CELLS = Object.fromEntries(Object.keys(ENTRY_COLUMNS).map((name) => [name, null]))

/**
 * Creates the row at `seq` with its leaf.
 *
 * @param recordedAt when the entry is written; for a publication its `publishedAt`
 * @param previousLeaf leaf of entry `seq - 1`, or {@link GENESIS_LEAF}
 * @throws RangeError if its line is longer than {@link ENTRY_MAX_BYTES}: a signed log could not contain it
 */
export function sealEntry(
  content: EntryContent,
  seq: number,
  recordedAt: Instant,
  previousLeaf: string,
): LedgerRow {
  const position = { seq, kind: content.kind, recordedAt, previousLeaf }
  const row = { ...NO_CELLS, ...columnsOf(content), ...position } as Omit<LedgerRow, 'leaf'>
  const bytes = Buffer.byteLength(leafText(row))
  if (bytes > ENTRY_MAX_BYTES)
    throw new RangeError(
      `the line of entry ${seq} has ${bytes} bytes; at most ${ENTRY_MAX_BYTES} are allowed`,
    )
  return { ...row, leaf: leafOf(row) }
}

function columnsOf(content: EntryContent): Partial<LedgerRow> {
  switch (content.kind) {
    case 'publication': {
      const { kind, ...manifest } = content.manifest
      return { ...manifest, envelopeKind: kind }
    }
    case 'gap':
      return { asOfDay: content.asOfDay, reason: content.reason, attempts: content.attempts }
    case 'legacy-seal':
      return { legacyRows: content.rows, legacyDigest: content.digest }
  }
}

/** The leaf of a row, which covers every other column, including the previous leaf. */
export function leafOf(row: Omit<LedgerRow, 'leaf'>): string {
  return sha256Hex(leafText(row))
}

/** Digest of every column of every legacy row in order of position; the seal entry records it. */
export function sealLegacy(legacy: readonly LegacyRow[]): { rows: number; digest: string } {
  return { rows: legacy.length, digest: sha256Hex(legacyText(legacy)) }
}

/** The entry in a row; null when its columns fit no kind. */
export function entryOf(row: LedgerRow): LedgerEntry | null {
  const content = contentOf(row)
  const { seq, recordedAt, previousLeaf, leaf } = row
  return content && { ...content, seq, recordedAt, previousLeaf, leaf }
}

function contentOf(row: LedgerRow): EntryContent | null {
  const { asOfDay, reason, attempts, legacyRows, legacyDigest } = row
  switch (row.kind) {
    case 'publication': {
      const manifest = manifestOf(row)
      return manifest && { kind: 'publication', manifest }
    }
    case 'gap':
      if (asOfDay === null || attempts === null || parseDay(asOfDay) === null) return null
      return reason === 'attempts_spent' || reason === 'missed'
        ? { kind: 'gap', asOfDay, reason, attempts }
        : null
    case 'legacy-seal':
      if (legacyRows === null || legacyDigest === null) return null
      return { kind: 'legacy-seal', rows: legacyRows, digest: legacyDigest }
    default:
      return null
  }
}

/** The manifest in a row of either ledger; null when its columns are incomplete or invalid. */
export function manifestOf(row: LedgerRow | LegacyRow): Manifest | null {
  const { publicationId, algorithmVersion, schemaVersion, envelopeKind: kind, asOfDay } = row
  const { windowStart, windowEnd, generatedAt, publishedAt, sha256, byteSize } = row
  // Checked by hand for speed: a proof reads one manifest per entry.
  if (publicationId === null || algorithmVersion === null || schemaVersion === null || kind === null)
    return null
  if (asOfDay === null || parseDay(asOfDay) === null) return null
  if (windowStart === null || windowEnd === null || generatedAt === null || publishedAt === null) return null
  if (sha256 === null || !isSha256Hex(sha256) || byteSize === null) return null
  return {
    publicationId,
    algorithmVersion,
    schemaVersion,
    kind,
    asOfDay,
    windowStart,
    windowEnd,
    generatedAt,
    publishedAt,
    sha256,
    byteSize,
  }
}

/** A publication for the selection. */
export interface TimelineItem {
  manifest: Manifest
  ledger: 'v1' | 'versioned'
  /** Sequence number in its own ledger. */
  seq: number
}

/** Both ledgers, proved: the chain holds from the first entry to the head. */
export interface ProvedLedger {
  entries: LedgerEntry[]
  /** Publications of both ledgers in selection order: the last one wins. */
  timeline: TimelineItem[]
  /** The last leaf, or {@link GENESIS_LEAF} for an empty ledger. */
  lastLeaf: string
  /** A founding that was started but not committed: only that founding may be written. null otherwise. */
  unfinished: FoundingMark | null
}

/** True if the entry after `head` has no head yet, as after a crash between commit and head. */
export function headIsBehind(entries: readonly LedgerEntry[], head: Head | null): boolean {
  return entries.length > (head?.seq ?? 0)
}

/** The publications of both ledgers in selection order. */
export function timelineOf(entries: readonly LedgerEntry[], legacy: readonly LegacyRow[]): TimelineItem[] {
  const preserved = legacy.flatMap((row): TimelineItem[] => {
    const manifest = manifestOf(row)
    return manifest ? [{ manifest, ledger: 'v1', seq: row.position }] : []
  })
  const versioned = entries.flatMap((entry): TimelineItem[] =>
    entry.kind === 'publication' ? [{ manifest: entry.manifest, ledger: 'versioned', seq: entry.seq }] : [],
  )
  const preference = { v1: 0, versioned: 1 }
  return [...preserved, ...versioned].sort(
    (a, b) =>
      a.manifest.publishedAt - b.manifest.publishedAt ||
      preference[a.ledger] - preference[b.ledger] ||
      a.seq - b.seq,
  )
}

/** The newest publication at or before `at`: the greatest time, then the versioned ledger, then the greatest seq. */
export function latestAt(timeline: readonly TimelineItem[], at: Instant): TimelineItem | null {
  return timeline.findLast(({ manifest }) => manifest.publishedAt <= at) ?? null
}
