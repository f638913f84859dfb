import { storageDamaged } from '../refusal.ts'
import { GENESIS_LEAF, entryOf, leafOf, manifestOf, sealLegacy, timelineOf } from './chain.ts'
import type { ProvedLedger, TimelineItem } from './chain.ts'
import { describeFinding, finding, formatTime } from './finding.ts'
import type { Finding } from './finding.ts'
import { sealOf } from './ledger.ts'
import type {
  AuditedContents,
  FoundingMark,
  Head,
  KeptHead,
  LedgerContents,
  LedgerEntry,
  LedgerRow,
} from './ledger.ts'

/**
 * The one check of the ledgers against the rules they are written by (docs/publishing.md). A server refuses to serve on
 * its first finding ({@link proveLedger}); an audit reports all of them ({@link auditLedger}).
 */

/** A head file in an audit; `head` is null when the file is invalid. */
export interface AuditedHead {
  path: string
  seq: number
  head: Head | null
  /** Read error of the file; its content is unknown then. */
  readError?: string
}

export interface LedgerAudit {
  findings: Finding[]
  /** Publications of both ledgers with readable rows, in selection order. */
  timeline: TimelineItem[]
  gaps: number
  /** Sequence number and leaf of the last entry; 0 and the genesis leaf for an empty ledger. */
  head: { seq: number; leaf: string }
}

/**
 * Proves both ledgers against each other and against the newest head.
 *
 * @throws Refusal `storage_damaged` naming the first thing that cannot be right
 */
export function proveLedger(contents: LedgerContents, newest: Head | null): ProvedLedger {
  const heads = newest ? [{ path: `heads/${newest.seq}`, seq: newest.seq, head: newest }] : []
  const { findings, entries, timeline } = checkLedger(contents, { heads, all: false })
  const [first] = findings
  if (first) throw storageDamaged(`the ledger is damaged: ${describeFinding(first)}`)
  const unfinished = entries.length === 0 ? contents.founding : null
  return { entries, timeline, lastLeaf: entries.at(-1)?.leaf ?? GENESIS_LEAF, unfinished }
}

/**
 * Audits both ledgers.
 *
 * @param heads every head; null when they are not available, as for another host
 */
export function auditLedger(
  contents: LedgerContents | AuditedContents,
  heads: readonly AuditedHead[] | null,
  keptHead: KeptHead | null,
): LedgerAudit {
  const { rows } = contents
  const { findings, timeline } = checkLedger(contents, heads && { heads, all: true })
  const last = rows.at(-1)
  return {
    findings: [...findings, ...(keptHead ? checkPinned(rows, keptHead) : [])],
    timeline,
    gaps: rows.filter(({ kind }) => kind === 'gap').length,
    head: last ? { seq: last.seq, leaf: last.leaf } : { seq: 0, leaf: GENESIS_LEAF },
  }
}

/** The heads of an archive: all of them, or the newest alone. */
interface KnownHeads {
  heads: readonly AuditedHead[]
  all: boolean
}

function checkLedger(
  contents: LedgerContents | AuditedContents,
  knownHeads: KnownHeads | null,
): Pick<ProvedLedger, 'entries' | 'timeline'> & { findings: Finding[] } {
  const { rows, legacy, founding } = contents
  const unreadable = 'unreadable' in contents ? contents.unreadable : []
  const isComplete = (table: string): boolean => unreadable.every((row) => row.table !== table)
  const entriesByRow = rows.map(entryOf)
  const findings = [
    ...unreadable.map(({ table, at, problem, publicationId }) =>
      finding('row_tampered', `${table}/${at}`, null, problem, publicationId),
    ),
    ...checkChain(rows, entriesByRow, isComplete('entries')),
    ...checkSeal(contents, isComplete('legacy_publications')),
    ...checkFounding(rows, founding),
    ...checkTimes(contents),
    ...(knownHeads ? checkHeads(rows, knownHeads, founding) : []),
  ]
  const entries = entriesByRow.filter((entry) => entry !== null)
  return { findings, entries, timeline: timelineOf(entries, legacy) }
}

/** @param isComplete false when rows are left out because they cannot be read: what they leave is no second finding */
function checkChain(
  rows: readonly LedgerRow[],
  entries: readonly (LedgerEntry | null)[],
  isComplete: boolean,
): Finding[] {
  const findings: Finding[] = []
  let previous = { seq: 0, leaf: GENESIS_LEAF, recordedAt: Number.NEGATIVE_INFINITY }
  for (const [index, row] of rows.entries()) {
    const report = (
      code: Finding['code'],
      expected: Finding['expected'],
      actual: Finding['actual'],
    ): void => {
      findings.push(finding(code, `entries/${row.seq}`, expected, actual, row.publicationId))
    }
    const seq = previous.seq + 1
    if (row.seq !== seq && isComplete) report('chain_broken', `entry ${seq}`, `entry ${row.seq}`)
    if (row.previousLeaf !== previous.leaf && row.seq === seq)
      report('chain_broken', previous.leaf, row.previousLeaf)
    const leaf = leafOf(row)
    if (leaf !== row.leaf) report('row_tampered', row.leaf, leaf)
    else if (!entries[index]) report('row_tampered', 'columns that fit a kind of entry', row.kind)
    if (row.recordedAt < previous.recordedAt)
      report('chain_broken', `recorded after ${formatTime(previous.recordedAt)}`, formatTime(row.recordedAt))
    previous = row
  }
  return findings
}

/** Checks that one seal covers the legacy ledger, whose rows are publications numbered from 1. */
function checkSeal({ rows, legacy }: LedgerContents, isComplete: boolean): Finding[] {
  const path = 'legacy_publications'
  const [seal, second] = rows.filter(({ kind }) => kind === 'legacy-seal')
  if (second) return [finding('chain_broken', path, 'one seal', `a second in entry ${second.seq}`)]
  if (!seal && legacy.length > 0)
    return [finding('row_tampered', path, 'no rows, as no entry seals them', `${legacy.length} rows`)]
  if (!seal || !isComplete) return []
  const { rows: count, digest } = sealLegacy(legacy)
  if (count !== seal.legacyRows)
    return [finding('row_tampered', path, `${seal.legacyRows} rows`, `${count} rows`)]
  if (digest !== seal.legacyDigest) return [finding('row_tampered', path, seal.legacyDigest, digest)]
  const wrong = legacy.filter((row, index) => row.position !== index + 1 || !manifestOf(row))
  return wrong.map(({ position, publicationId }) =>
    finding('row_tampered', `${path}/${position}`, 'a publication in its place', null, publicationId),
  )
}

/** Checks the founding mark of a committed import against the chain. */
function checkFounding(rows: readonly LedgerRow[], founding: FoundingMark | null): Finding[] {
  if (founding === null || rows.length === 0) return []
  const { seq, leaf } = founding
  const entry = entryAt(rows, seq)
  if (entry?.leaf !== leaf) return [finding('chain_broken', 'founding', leaf, entry?.leaf ?? null)]
  const isSealed = entryAt(rows, seq + 1)?.kind === 'legacy-seal'
  return isSealed ? [] : [finding('chain_broken', 'founding', leaf, `entry ${seq + 1} is not a seal`)]
}

/**
 * Checks the order of publication times. A publication made here must be later than every earlier one in both ledgers:
 * an earlier time would change past selections. Imported ones may share a time.
 */
function checkTimes({ rows, legacy }: LedgerContents): Finding[] {
  const findings: Finding[] = []
  const sealed = sealOf(rows)?.seq ?? 0
  let newest = Number.NEGATIVE_INFINITY
  let newestLegacy = newest
  for (const { publishedAt } of legacy) newestLegacy = Math.max(newestLegacy, publishedAt)
  for (const { seq, publishedAt, publicationId } of rows) {
    if (publishedAt === null) continue
    const isOwn = seq > sealed
    const before = isOwn ? Math.max(newest, newestLegacy) : newest
    if (isOwn ? publishedAt <= before : publishedAt < before) {
      const expected = `published after ${formatTime(before)}`
      findings.push(
        finding('chain_broken', `entries/${seq}`, expected, formatTime(publishedAt), publicationId),
      )
    }
    newest = Math.max(newest, publishedAt)
  }
  return findings
}

/**
 * Checks every head against its entry, and that none is missing. The newest may be one entry behind the ledger, and a
 * founding import writes no head before its last entry.
 */
function checkHeads(
  rows: readonly LedgerRow[],
  { heads, all }: KnownHeads,
  founding: FoundingMark | null,
): Finding[] {
  const findings = heads.flatMap(({ path, seq, head, readError }) => {
    if (readError !== undefined) return [finding('object_unreadable', path, null, readError)]
    if (head === null) return [finding('head_mismatch', path, 'a head file', 'something else')]
    // A started, uncommitted import: the ledger is empty, and a head pins its future chain.
    const isFounding = rows.length === 0 && founding?.seq === seq && founding.leaf === head.leaf
    return isFounding ? [] : checkPinned(rows, { ...head, path })
  })
  const present = new Set(heads.map(({ seq }) => seq))
  const firstRequired = all ? (sealOf(rows)?.seq ?? 1) - 1 : (heads[0]?.seq ?? 0) + 1
  const missing = rows.slice(0, -1).filter(({ seq }) => seq >= firstRequired && !present.has(seq))
  return [
    ...findings,
    ...missing.map(({ seq, leaf }) => finding('head_mismatch', `heads/${seq}`, leaf, 'absent')),
  ]
}

/** Checks the entry that a head pins against the ledger; `path` is the location of the head. */
export function checkPinned(rows: readonly LedgerRow[], { seq, leaf, path }: KeptHead): Finding[] {
  const entry = entryAt(rows, seq)
  if (entry?.leaf === leaf) return []
  const actual = entry ? entry.leaf : `the ledger ends at entry ${rows.at(-1)?.seq ?? 0}`
  return [finding('head_mismatch', path, leaf, actual)]
}

/** The row of an entry. In a damaged ledger it may be out of position. */
function entryAt(rows: readonly LedgerRow[], seq: number): LedgerRow | undefined {
  const row = rows[seq - 1]
  return row?.seq === seq ? row : rows.find((other) => other.seq === seq)
}
