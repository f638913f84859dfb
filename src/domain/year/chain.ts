import { isSha256Hex, sha256Hex } from '../digest.ts'
import { storageDamaged } from '../refusal.ts'
import { parseDay } from '../time.ts'
import type { Instant } from '../time.ts'
import { leafText, legacyText } from './ledger.ts'
import type {
  EntryContent,
  FoundingMark,
  Head,
  LedgerContents,
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

const UNUSED = {
  asOfDay: null,
  publicationId: null,
  algorithmVersion: null,
  schemaVersion: null,
  envelopeKind: null,
  windowStart: null,
  windowEnd: null,
  generatedAt: null,
  publishedAt: null,
  sha256: null,
  byteSize: null,
  reason: null,
  attempts: null,
  legacyRows: null,
  legacyDigest: null,
} as const

/** A publication as selection sees it. */
export interface TimelineItem {
  manifest: Manifest
  ledger: 'v1' | 'versioned'
  /** Sequence number in its own ledger. */
  seq: number
}

/** Both ledgers, proved: the chain holds from the first entry to the head. */
export interface ProvedLedger {
  entries: LedgerEntry[]
  /** Publications of both ledgers, in the order selection prefers the last of. */
  timeline: TimelineItem[]
  /** The last leaf, or {@link GENESIS_LEAF} for an empty ledger. */
  lastLeaf: string
  /** The founding that was begun and not committed: nothing but that very founding may be written. Else null. */
  unfinished: FoundingMark | null
}

/**
 * The row that would stand at `seq`: all columns, with the leaf computed.
 *
 * @param recordedAt when the entry is written; for a publication its `publishedAt`
 * @param previousLeaf leaf of entry `seq - 1`, or {@link GENESIS_LEAF}
 */
export function sealEntry(
  content: EntryContent,
  seq: number,
  recordedAt: Instant,
  previousLeaf: string,
): LedgerRow {
  const row = { ...UNUSED, seq, kind: content.kind, recordedAt, ...columnsOf(content), previousLeaf }
  return { ...row, leaf: leafOf(row) }
}

/** Digest over every column of every legacy row, in order of position: what the seal entry records. */
export function sealLegacy(legacy: readonly LegacyRow[]): { rows: number; digest: string } {
  return { rows: legacy.length, digest: sha256Hex(legacyText(legacy)) }
}

/**
 * Proves both ledgers against each other and against the newest head.
 *
 * @throws Refusal `storage_damaged` naming the first thing that cannot be right
 */
export function proveLedger({ rows, legacy, founding }: LedgerContents, head: Head | null): ProvedLedger {
  const entries = proveRows(rows)
  proveLegacy(legacy, entries)
  const unfinished = entries.length === 0 ? founding : null
  if (unfinished) proveUnfinished(unfinished, head)
  else {
    proveFounding(entries, founding)
    proveHead(entries, head)
  }
  const timeline = timelineOf(publicationsOf(entries, legacy))
  return { entries, timeline, lastLeaf: entries.at(-1)?.leaf ?? GENESIS_LEAF, unfinished }
}

/** The newest publication at or before `at`: the greatest time, then the versioned ledger, then the greatest seq. */
export function latestAt(timeline: readonly TimelineItem[], at: Instant): TimelineItem | null {
  let low = 0
  let high = timeline.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((timeline[middle] as TimelineItem).manifest.publishedAt <= at) low = middle + 1
    else high = middle
  }
  return timeline[low - 1] ?? null
}

/** True when the entry after `head` is missing a head of its own: what a crash between commit and head leaves. */
export function headIsBehind(entries: readonly LedgerEntry[], head: Head | null): boolean {
  return entries.length > (head?.seq ?? 0)
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

/** The leaf that covers a row: every other column, the leaf before it among them. */
export function leafOf(row: Omit<LedgerRow, 'leaf'>): string {
  return sha256Hex(leafText(row))
}

function proveRows(rows: readonly LedgerRow[]): LedgerEntry[] {
  const entries: LedgerEntry[] = []
  let previousLeaf = GENESIS_LEAF
  let recordedAt = Number.NEGATIVE_INFINITY
  let publishedAt = Number.NEGATIVE_INFINITY
  for (const [index, row] of rows.entries()) {
    const where = `ledger entry ${row.seq}`
    if (row.seq !== index + 1) throw storageDamaged(`${where} stands where entry ${index + 1} should`)
    if (row.previousLeaf !== previousLeaf)
      throw storageDamaged(`${where} does not continue the entry before it`)
    if (leafOf(row) !== row.leaf) throw storageDamaged(`${where} does not match its leaf hash`)
    if (row.recordedAt < recordedAt) throw storageDamaged(`${where} is dated before the entry before it`)
    const content = contentOf(row)
    if (content === null) throw storageDamaged(`${where} has columns that fit no kind of entry`)
    if (content.kind === 'publication') {
      if (content.manifest.publishedAt < publishedAt)
        throw storageDamaged(`${where} is published before the entry before it`)
      publishedAt = content.manifest.publishedAt
    }
    entries.push({ ...content, seq: row.seq, recordedAt: row.recordedAt, previousLeaf, leaf: row.leaf })
    previousLeaf = row.leaf
    recordedAt = row.recordedAt
  }
  return entries
}

/** What a row says, or null when its columns fit no kind. The leaf must have been checked before. */
export function contentOf(row: LedgerRow): EntryContent | null {
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

/** The manifest in a row of either ledger, or null when its columns are none. */
export function manifestOf(row: LedgerRow | LegacyRow): Manifest | null {
  const { publicationId, algorithmVersion, schemaVersion, envelopeKind, asOfDay, sha256, byteSize } = row
  const { windowStart, windowEnd, generatedAt, publishedAt } = row
  if (publicationId === null || algorithmVersion === null || envelopeKind === null) return null
  if (asOfDay === null || parseDay(asOfDay) === null) return null
  if (schemaVersion === null || byteSize === null || sha256 === null || !isSha256Hex(sha256)) return null
  if (windowStart === null || windowEnd === null || generatedAt === null || publishedAt === null) return null
  return {
    publicationId,
    algorithmVersion,
    schemaVersion,
    kind: envelopeKind,
    asOfDay,
    windowStart,
    windowEnd,
    generatedAt,
    publishedAt,
    sha256,
    byteSize,
  }
}

function proveLegacy(legacy: readonly LegacyRow[], entries: readonly LedgerEntry[]): void {
  const seals = entries.filter((entry) => entry.kind === 'legacy-seal')
  if (seals.length > 1) throw storageDamaged('the ledger seals its legacy part more than once')
  const [seal] = seals
  if (!seal) {
    if (legacy.length > 0) throw storageDamaged('the legacy ledger has rows but no seal')
    return
  }
  const actual = sealLegacy(legacy)
  if (actual.rows !== seal.rows || actual.digest !== seal.digest) {
    throw storageDamaged('the legacy ledger does not match its seal')
  }
}

/** Before a founding is committed its head may be there, and no other. */
function proveUnfinished(founding: FoundingMark, head: Head | null): void {
  if (head === null || (head.seq === founding.seq && head.leaf === founding.leaf)) return
  throw storageDamaged(`the ledger is empty, but its newest head is ${head.seq}`)
}

function proveFounding(entries: readonly LedgerEntry[], founding: FoundingMark | null): void {
  if (founding === null) return
  if (entries[founding.seq - 1]?.leaf !== founding.leaf || entries[founding.seq]?.kind !== 'legacy-seal') {
    throw storageDamaged(
      `the first ${founding.seq} ledger entries are not the ones the archive was founded with`,
    )
  }
}

function proveHead(entries: readonly LedgerEntry[], head: Head | null): void {
  if (head === null) {
    if (entries.length > 1)
      throw storageDamaged(`the ledger has ${entries.length} entries but the object store has no head`)
    return
  }
  const pinned = entries[head.seq - 1]
  if (!pinned)
    throw storageDamaged(`the ledger ends at entry ${entries.length}, before its newest head, ${head.seq}`)
  if (pinned.leaf !== head.leaf) throw storageDamaged(`ledger entry ${head.seq} differs from its head`)
  if (entries.length > head.seq + 1) {
    throw storageDamaged(`the ledger has ${entries.length} entries but its newest head is ${head.seq}`)
  }
}

function publicationsOf(entries: readonly LedgerEntry[], legacy: readonly LegacyRow[]): TimelineItem[] {
  const items: TimelineItem[] = []
  for (const row of legacy) {
    const manifest = manifestOf(row)
    if (!manifest) throw storageDamaged(`legacy ledger row ${row.position} is not a manifest`)
    items.push({ manifest, ledger: 'v1', seq: row.position })
  }
  for (const entry of entries) {
    if (entry.kind === 'publication')
      items.push({ manifest: entry.manifest, ledger: 'versioned', seq: entry.seq })
  }
  return items
}

/** Publications of both ledgers in the order selection prefers the last of. */
export function timelineOf(items: readonly TimelineItem[]): TimelineItem[] {
  const preference = { v1: 0, versioned: 1 }
  return items.toSorted(
    (a, b) =>
      a.manifest.publishedAt - b.manifest.publishedAt ||
      preference[a.ledger] - preference[b.ledger] ||
      a.seq - b.seq,
  )
}
