import { isSha256Hex } from '../digest.ts'
import { formatInstant } from '../time.ts'
import type { Day } from '../time.ts'
import { GENESIS_LEAF, contentOf, latestAt, leafOf, manifestOf, sealLegacy, timelineOf } from './chain.ts'
import type { TimelineItem } from './chain.ts'
import type { Finding, FindingCode } from './finding.ts'
import type { FoundingMark, Head, LedgerRow, LegacyRow, Manifest } from './ledger.ts'

/**
 * The rules of the audit (docs/auditing.md). Unlike the proof a server makes, which stops at the first thing that
 * cannot be right, an audit goes on and names everything.
 */

/** A row of a ledger table as an audit reads it: whole, or with the reason why it cannot be a row. */
export type AuditedRow<Row> = { row: Row } | { problem: string; at: number; publicationId: string | null }

/** Both ledgers as an audit reads them. */
export interface AuditedContents {
  rows: AuditedRow<LedgerRow>[]
  legacy: AuditedRow<LegacyRow>[]
  founding: FoundingMark | null
}

/** A head file as an audit reads it; `head` is null when the file is not a valid one. */
export interface AuditedHead {
  path: string
  seq: number
  head: Head | null
  /** Why the file could not be read, which says nothing of what is in it. */
  readError?: string
}

/** What the ledgers and the heads say, whether or not everything holds. */
export interface LedgerAudit {
  findings: Finding[]
  /** Publications of both ledgers whose rows can be read, in the order selection prefers the last of. */
  timeline: TimelineItem[]
  gaps: number
  /** Sequence number and leaf of the last entry; 0 and the genesis leaf for an empty ledger. */
  head: { seq: number; leaf: string }
}

/**
 * Both ledgers, their chain, the seal, and every head.
 *
 * @param heads null when the head files cannot be seen, as at another host
 */
export function auditLedger(
  contents: AuditedContents,
  heads: readonly AuditedHead[] | null,
  expectedHead: (Head & { path: string }) | null,
): LedgerAudit {
  const rows = readable(contents.rows)
  const legacy = readable(contents.legacy)
  const findings = [
    ...unreadableRows(contents.rows, 'entries'),
    ...unreadableRows(contents.legacy, 'legacy_publications'),
    ...auditChain(rows, contents.rows.length === rows.length),
    ...auditSeal(rows, legacy, contents.legacy.length === legacy.length),
    ...auditFounding(rows, contents.founding),
    ...auditTimes(rows, legacy),
    ...(heads ? auditHeads(rows, heads, contents.founding) : []),
    ...(expectedHead ? auditExpectedHead(rows, expectedHead) : []),
  ]
  const items = [
    ...rows.flatMap((row) => itemOf(row, 'versioned', row.seq)),
    ...legacy.flatMap((row) => itemOf(row, 'v1', row.position)),
  ]
  const timeline = timelineOf(items)
  const last = rows.at(-1)
  return {
    findings: [...findings, ...auditSelection(timeline, latestAt)],
    timeline,
    gaps: rows.filter(({ kind }) => kind === 'gap').length,
    head: last ? { seq: last.seq, leaf: last.leaf } : { seq: 0, leaf: GENESIS_LEAF },
  }
}

/** The rows among them that can be read. */
export function readable<Row>(rows: readonly AuditedRow<Row>[]): Row[] {
  return rows.flatMap((audited) => ('row' in audited ? [audited.row] : []))
}

function unreadableRows(rows: readonly AuditedRow<unknown>[], table: string): Finding[] {
  return rows.flatMap((audited) =>
    'row' in audited
      ? []
      : [
          {
            code: 'row_tampered' as const,
            publicationId: audited.publicationId,
            path: `${table}/${audited.at}`,
            expected: null,
            actual: audited.problem,
          },
        ],
  )
}

/** @param whole false when rows are left out because they cannot be read: what they leave is no second finding */
function auditChain(rows: readonly LedgerRow[], whole: boolean): Finding[] {
  const findings: Finding[] = []
  let previous: LedgerRow | null = null
  for (const row of rows) {
    const at = (code: FindingCode, expected: Finding['expected'], actual: Finding['actual']): void => {
      findings.push({ code, publicationId: row.publicationId, path: `entries/${row.seq}`, expected, actual })
    }
    const seq: number = (previous?.seq ?? 0) + 1
    if (row.seq !== seq && whole) at('chain_broken', `entry ${seq}`, `entry ${row.seq}`)
    const previousLeaf: string = previous?.leaf ?? GENESIS_LEAF
    if (row.previousLeaf !== previousLeaf && row.seq === seq)
      at('chain_broken', previousLeaf, row.previousLeaf)
    const leaf = leafOf(row)
    if (leaf !== row.leaf) at('row_tampered', row.leaf, leaf)
    else if (contentOf(row) === null) at('row_tampered', 'columns that fit a kind of entry', row.kind)
    if (previous && row.recordedAt < previous.recordedAt) {
      at('chain_broken', `recorded after ${timeOf(previous.recordedAt)}`, timeOf(row.recordedAt))
    }
    previous = row
  }
  return findings
}

function auditSeal(rows: readonly LedgerRow[], legacy: readonly LegacyRow[], whole: boolean): Finding[] {
  const at = (expected: Finding['expected'], actual: Finding['actual']): Finding => ({
    code: 'row_tampered',
    publicationId: null,
    path: 'legacy_publications',
    expected,
    actual,
  })
  const seals = rows.filter(({ kind }) => kind === 'legacy-seal')
  const [seal, second] = seals
  if (second) return [{ ...at('one seal', `a second in entry ${second.seq}`), code: 'chain_broken' }]
  if (!seal) return legacy.length > 0 ? [at('no rows, as no entry seals them', `${legacy.length} rows`)] : []
  if (!whole) return []
  const actual = sealLegacy(legacy)
  if (actual.rows !== seal.legacyRows) return [at(`${seal.legacyRows} rows`, `${actual.rows} rows`)]
  return actual.digest === seal.legacyDigest ? [] : [at(seal.legacyDigest, actual.digest)]
}

/** What an import said of the chain it founded must hold, once it was committed. */
function auditFounding(rows: readonly LedgerRow[], founding: FoundingMark | null): Finding[] {
  if (founding === null || rows.length === 0) return []
  const { seq, leaf } = founding
  const entry = rows.find((row) => row.seq === seq)
  const seal = rows.find((row) => row.seq === seq + 1)
  if (entry?.leaf === leaf && seal?.kind === 'legacy-seal') return []
  const actual = entry?.leaf === leaf ? `entry ${seq + 1} is no seal` : (entry?.leaf ?? null)
  return [{ code: 'chain_broken', publicationId: null, path: 'founding', expected: leaf, actual }]
}

/**
 * Publications stand in the order of their times. An own one must be later than every one before it, in both ledgers:
 * an earlier time rewrites answers. Imported ones may share a time.
 */
function auditTimes(rows: readonly LedgerRow[], legacy: readonly LegacyRow[]): Finding[] {
  const findings: Finding[] = []
  const sealed = rows.find(({ kind }) => kind === 'legacy-seal')?.seq ?? 0
  let newestLegacy = Number.NEGATIVE_INFINITY
  for (const { publishedAt } of legacy) newestLegacy = Math.max(newestLegacy, publishedAt)
  let newest = Number.NEGATIVE_INFINITY
  for (const row of rows) {
    if (row.publishedAt === null) continue
    const isOwn = row.seq > sealed
    const before = isOwn ? Math.max(newest, newestLegacy) : newest
    if (isOwn ? row.publishedAt <= before : row.publishedAt < before) {
      findings.push({
        code: 'chain_broken',
        publicationId: row.publicationId,
        path: `entries/${row.seq}`,
        expected: `published after ${timeOf(before)}`,
        actual: timeOf(row.publishedAt),
      })
    }
    newest = Math.max(newest, row.publishedAt)
  }
  return findings
}

/**
 * Every head against its entry, and that none is missing: the newest may be one entry behind the ledger, and an import
 * that founded the archive wrote none before the entry it ends with.
 */
function auditHeads(
  rows: readonly LedgerRow[],
  heads: readonly AuditedHead[],
  founding: FoundingMark | null,
): Finding[] {
  const leaves = new Map(rows.map(({ seq, leaf }) => [seq, leaf]))
  const last = rows.at(-1)?.seq ?? 0
  const findings: Finding[] = []
  const at = (path: string, expected: Finding['expected'], actual: Finding['actual']): void => {
    findings.push({ code: 'head_mismatch', publicationId: null, path, expected, actual })
  }
  for (const { path, seq, head, readError } of heads) {
    const leaf = leaves.get(seq)
    if (readError !== undefined) {
      findings.push({
        code: 'object_unreadable',
        publicationId: null,
        path,
        expected: null,
        actual: readError,
      })
    } else if (head === null) at(path, 'a head file', 'something else')
    else if (leaf === undefined && !isFoundingHead(head, rows, founding)) {
      at(path, head.leaf, `the ledger ends at entry ${last}`)
    } else if (leaf !== undefined && leaf !== head.leaf) at(path, head.leaf, leaf)
  }
  const present = new Set(heads.map(({ seq }) => seq))
  const sealed = rows.find(({ kind }) => kind === 'legacy-seal')?.seq ?? 1
  for (const { seq, leaf } of rows.slice(0, -1)) {
    if (seq >= sealed - 1 && !present.has(seq)) at(`heads/${seq}`, leaf, 'absent')
  }
  return findings
}

/** An import that has begun and not committed: the ledger is empty, and a head says where its chain will stand. */
function isFoundingHead(head: Head, rows: readonly LedgerRow[], founding: FoundingMark | null): boolean {
  return rows.length === 0 && founding?.seq === head.seq && founding.leaf === head.leaf
}

/** The entry a head pins, in the ledger as it stands now; `path` is where the head was found. */
export function auditExpectedHead(
  rows: readonly LedgerRow[],
  { seq, leaf, path }: Head & { path: string },
): Finding[] {
  const entry = rows.find((row) => row.seq === seq)
  if (entry?.leaf === leaf) return []
  const actual = entry ? entry.leaf : `the ledger ends at entry ${rows.at(-1)?.seq ?? 0}`
  return [{ code: 'head_mismatch', publicationId: null, path, expected: leaf, actual }]
}

function itemOf(row: LedgerRow | LegacyRow, ledger: TimelineItem['ledger'], seq: number): TimelineItem[] {
  if ('kind' in row && row.kind !== 'publication') return []
  const manifest = manifestOf(row)
  return manifest === null || !isSha256Hex(manifest.sha256) ? [] : [{ manifest, ledger, seq }]
}

/**
 * Replays the selection one millisecond before, at and after every publication time, against the rule applied plainly:
 * of all publications up to that time, the latest; of equally late ones the versioned, then the greater number.
 */
export function auditSelection(timeline: readonly TimelineItem[], select: typeof latestAt): Finding[] {
  const plain = new Map<number, TimelineItem>()
  for (const item of timeline) {
    const best = plain.get(item.manifest.publishedAt)
    if (best === undefined || isPreferred(item, best)) plain.set(item.manifest.publishedAt, item)
  }
  const findings: Finding[] = []
  const expect = (at: number, expected: TimelineItem | null): void => {
    const selected = select(timeline, at)
    if (selected === expected) return
    findings.push({
      code: 'chain_broken',
      publicationId: expected?.manifest.publicationId ?? null,
      path: `selection at ${timeOf(at)}`,
      expected: expected?.manifest.publicationId ?? null,
      actual: selected?.manifest.publicationId ?? null,
    })
  }
  let before: TimelineItem | null = null
  for (const [time, standing] of [...plain].sort(([a], [b]) => a - b)) {
    expect(time - 1, before)
    expect(time, standing)
    if (!plain.has(time + 1)) expect(time + 1, standing)
    before = standing
  }
  return findings
}

function isPreferred(item: TimelineItem, other: TimelineItem): boolean {
  return item.ledger === other.ledger ? item.seq > other.seq : item.ledger === 'versioned'
}

/** A time of the ledger for a person; a damaged number may be no time at all. */
export function timeOf(instant: number): string {
  return Math.abs(instant) <= 8.64e15 ? formatInstant(instant) : String(instant)
}

/** Which objects an audit reads (docs/auditing.md): a share or an amount, drawn by chance, or one bucket of several. */
export type Sample =
  | { by: 'share'; percent: number }
  | { by: 'size'; bytes: number }
  | { by: 'bucket'; bucket: number; buckets: number }

const UNITS: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 }

/**
 * A sample as a command line names it: `5%`, `500M` (bytes, or K, M, G, T of 1024) or `2/7` (the second of seven
 * buckets, which together hold every object).
 *
 * @returns null for anything else
 */
export function parseSample(text: string): Sample | null {
  const share = /^(\d{1,3}(?:\.\d{1,6})?)%$/.exec(text)
  if (share) {
    const percent = Number(share[1])
    return percent > 0 && percent <= 100 ? { by: 'share', percent } : null
  }
  const bucket = /^(\d{1,6})\/(\d{1,6})$/.exec(text)
  if (bucket) {
    const [number, buckets] = [Number(bucket[1]), Number(bucket[2])]
    return number >= 1 && number <= buckets ? { by: 'bucket', bucket: number, buckets } : null
  }
  const size = /^(\d{1,9})([KMGT]?)(?:i?B)?$/i.exec(text)
  if (!size) return null
  const bytes = Number(size[1]) * (UNITS[(size[2] ?? '').toUpperCase()] ?? 1)
  return bytes > 0 ? { by: 'size', bytes } : null
}

/**
 * The publications whose objects an audit reads, in the order given.
 *
 * @param since leaves out those of an earlier as-of day
 * @param random numbers from 0 (inclusive) to 1 (exclusive)
 */
export function chooseManifests(
  manifests: readonly Manifest[],
  { since, sample }: { since: Day | null; sample: Sample | null },
  random: () => number,
): Manifest[] {
  const recent = manifests.filter(({ asOfDay }) => since === null || asOfDay >= since)
  switch (sample?.by) {
    case undefined:
      return recent
    case 'bucket':
      return recent.filter(({ sha256 }) => bucketOf(sha256, sample.buckets) === sample.bucket)
    case 'share': {
      const drawn = shuffled(recent, random).slice(0, Math.ceil((recent.length * sample.percent) / 100))
      return inOrder(recent, drawn)
    }
    case 'size': {
      let left = sample.bytes
      const drawn = shuffled(recent, random).filter(({ byteSize }, place) => {
        // The first one always: a sample smaller than any object still reads something.
        if (place > 0 && byteSize > left) return false
        left -= byteSize
        return true
      })
      return inOrder(recent, drawn)
    }
  }
}

/** 1 to `buckets`, evenly, and the same for a digest for ever. */
function bucketOf(sha256: string, buckets: number): number {
  return (Number.parseInt(sha256.slice(0, 12), 16) % buckets) + 1
}

function inOrder(all: readonly Manifest[], some: readonly Manifest[]): Manifest[] {
  const chosen = new Set(some)
  return all.filter((manifest) => chosen.has(manifest))
}

/** Fisher and Yates. */
function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const order = [...items]
  for (let last = order.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1))
    const item = order[last] as T
    order[last] = order[other] as T
    order[other] = item
  }
  return order
}
