import { auditLedger, checkPinned } from './check.ts'
import type { LedgerAudit } from './check.ts'
import type { SeenBytes } from './examine.ts'
import { finding } from './finding.ts'
import type { Finding } from './finding.ts'
import { parseHead, parseLeafText, parseLegacyLine } from './ledger.ts'
import type { AuditedContents, Head, KeptHead, LedgerContents, LedgerRow, UnreadableRow } from './ledger.ts'

/** The rules by which the ledgers that a host publishes are audited (docs/auditing.md). */

/** What a host answered to one question. Its header values are plain ASCII, or null. */
export interface PublishedResponse {
  status: number
  etag: string | null
  lastModified: string | null
  /** `X-Year-History-Requested-At` */
  requestedAt: string | null
  /** The code in a refusal's `error`, or null. */
  error: string | null
  /** The body as it was sent; null when it is too large to be kept, or a refusal too long to be read. */
  bytes: Uint8Array | null
  /** Of the body, whether or not it is kept. */
  seen: SeenBytes
}

/** Refusals of {@link PublicHost.history}. */
export type PublishedRefusal = 'source_unavailable'

/** Where a host publishes its ledgers and its head. */
export const PUBLISHED_LEDGER = '/api/feed/history/ledger'
export const PUBLISHED_LEGACY_LEDGER = '/api/feed/history/ledger/legacy'
export const PUBLISHED_HEAD = '/api/feed/history/head'

/** What a host's ledgers are held against, besides themselves. */
export interface Reference {
  /** The auditor's own ledgers; null when there are none. */
  own: LedgerContents | null
  /** A head kept from before. */
  expectedHead: KeptHead | null
}

/** One of the texts as a host answered: null when the host has no such route, or says itself that it is damaged. */
export interface PublishedDocument {
  path: string
  bytes: Uint8Array | null
  findings: Finding[]
}

/** True when a host says itself that its archive is damaged. */
export function admitsDamage({ status, error }: PublishedResponse): boolean {
  return status === 503 && error === 'year_history_archive_corrupt'
}

/**
 * What a host answered when it was asked for one of its texts.
 *
 * @returns null for an answer that is neither the text nor its absence
 */
export function publishedDocument(path: string, answer: PublishedResponse): PublishedDocument | null {
  const { status, etag, bytes, seen } = answer
  if (status === 404) return { path, bytes: null, findings: [] }
  if (admitsDamage(answer)) {
    const admitted = finding('chain_broken', path, 200, '503 year_history_archive_corrupt')
    return { path, bytes: null, findings: [admitted] }
  }
  if (status !== 200) return null
  const right = `"${seen.sha256}"`
  return { path, bytes, findings: etag === right ? [] : [finding('digest_mismatch', path, etag, right)] }
}

/**
 * The ledgers a host publishes: their chain, their seal, the host's newest head, a head kept from before, and the
 * auditor's own ledgers.
 *
 * @param texts the ledger, the legacy ledger, the newest head as it was told before the ledger, and once more after it
 *   when {@link isOvertaken}
 */
export function auditPublishedLedger(
  texts: {
    ledger: Uint8Array
    legacy: Uint8Array | null
    head: PublishedDocument
    laterHead: PublishedDocument | null
  },
  { own, expectedHead }: Reference,
): LedgerAudit & { isOwnUnrelated: boolean } {
  const contents = publishedContents(texts.ledger, texts.legacy)
  const { rows, unreadable } = contents
  const audit = auditLedger(contents, null, expectedHead)
  const isWhole = unreadable.every(({ table }) => table !== 'entries')
  const isOwnUnrelated = own !== null && areUnrelated(contents, own)
  const findings = [
    ...audit.findings,
    ...checkPublishedHead(rows, texts, isWhole),
    ...(own && !isOwnUnrelated ? compareWithOwn(rows, own.rows) : []),
  ]
  return { ...audit, isOwnUnrelated, findings }
}

/**
 * True when two archives share no entry and no publication, so that neither is a copy of the other. A copy whose entries
 * were all rewritten still names the same publications, and one without entries may have lost them.
 */
function areUnrelated(theirs: LedgerContents, own: LedgerContents): boolean {
  const marks = new Set(marksOf(theirs))
  return marks.size > 0 && !marksOf(own).some((mark) => marks.has(mark))
}

/** The leaves of the entries and the digests of the publications. */
function marksOf({ rows, legacy }: LedgerContents): string[] {
  return [...rows.map(({ leaf }) => leaf), ...[...rows, ...legacy].flatMap(({ sha256 }) => sha256 ?? [])]
}

/** True when the host went on publishing between its head and its ledger: its head must be asked for again. */
export function isOvertaken(head: Uint8Array | null, ledger: Uint8Array): boolean {
  const lines = countLineEnds(ledger)
  const seq = head === null ? 0 : parseHead(head)?.seq
  return seq !== undefined && lines > seq + 1
}

function countLineEnds(bytes: Uint8Array): number {
  let count = 0
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count += 1
  return count
}

const NEWLINE = 0x0a

/** Lines of a ledger of a day each for more than a century. */
export const LINES_MAX = 50_000

/** No entry has texts of this length; a host may send any. */
const LINE_MAX_BYTES = 8 * 1024

/** True for a text with more lines than any ledger has: what is made of each line needs more memory than the line. */
export function hasTooManyLines(bytes: Uint8Array): boolean {
  return countLineEnds(bytes) > LINES_MAX
}

function publishedContents(ledger: Uint8Array, legacy: Uint8Array | null): AuditedContents {
  const { lines, rest } = linesOf(ledger)
  const entries = readLines('entries', lines, parseLeafText)
  if (rest.byteLength > 0)
    entries.unreadable.push(unreadableRow('entries', lines.length + 1, 'a line that was cut off'))
  // Legacy lines are only parted by newlines: the last one has none.
  const parted = linesOf(legacy ?? new Uint8Array())
  const legacyLines = legacy?.byteLength ? [...parted.lines, parted.rest] : []
  const publications = readLines('legacy_publications', legacyLines, parseLegacyLine)
  const problems = [...entries.unreadable, ...publications.unreadable]
  return { rows: entries.rows, legacy: publications.rows, founding: null, unreadable: problems }
}

/** The lines that end with a newline, and what comes after the last of them. */
function linesOf(bytes: Uint8Array): { lines: Uint8Array[]; rest: Uint8Array } {
  const lines: Uint8Array[] = []
  let start = 0
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
    lines.push(bytes.subarray(start, end))
    start = end + 1
  }
  return { lines, rest: bytes.subarray(start) }
}

function readLines<Row>(
  table: UnreadableRow['table'],
  lines: readonly Uint8Array[],
  parse: (line: string) => Row | null,
): { rows: Row[]; unreadable: UnreadableRow[] } {
  const read = { rows: [] as Row[], unreadable: [] as UnreadableRow[] }
  for (const [index, line] of lines.entries()) {
    const row =
      line.byteLength > LINE_MAX_BYTES ? `a line of ${line.byteLength} bytes` : readLine(line, parse)
    if (typeof row === 'string') read.unreadable.push(unreadableRow(table, index + 1, row))
    else read.rows.push(row)
  }
  return read
}

function readLine<Row>(line: Uint8Array, parse: (line: string) => Row | null): Row | string {
  try {
    return parse(utf8.decode(line)) ?? 'not a line that a ledger publishes'
  } catch {
    return 'not UTF-8'
  }
}

function unreadableRow(table: UnreadableRow['table'], at: number, problem: string): UnreadableRow {
  return { table, at, problem, publicationId: null }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The ledger must hold the head told before it, and must not be more than one entry ahead of the newest: one is what a
 * crash between commit and head leaves.
 */
function checkPublishedHead(
  rows: readonly LedgerRow[],
  { head, laterHead }: { head: PublishedDocument; laterHead: PublishedDocument | null },
  isWhole: boolean,
): Finding[] {
  const first = readHead(head, rows.length)
  const newest = laterHead ? readHead(laterHead, rows.length) : first
  const unread = first.findings.length > 0 ? first.findings : newest.findings
  if (unread.length > 0) return unread
  const last = rows.at(-1)?.seq ?? 0
  // A head told after the ledger may name an entry that was not there yet.
  const inLedger = [first, ...(newest.head && newest.head.seq <= last ? [newest] : [])]
  const differing = inLedger.flatMap((told) =>
    told.head ? checkPinned(rows, { ...told.head, path: head.path }) : [],
  )
  const behind = isWhole && last > (newest.head?.seq ?? 0) + 1
  if (differing.length > 0) return differing.slice(0, 1)
  return behind ? [headMismatch(head.path, `a head of entry ${last}`, `${newest.head?.seq ?? 0}`)] : []
}

function readHead(
  { path, bytes, findings }: PublishedDocument,
  entries: number,
): { head: Head | null; findings: Finding[] } {
  if (findings.length > 0) return { head: null, findings }
  if (bytes === null) {
    const lost = headMismatch(path, `a head of entry ${entries}`, 'the host has no head')
    return { head: null, findings: entries > 1 ? [lost] : [] }
  }
  const head = parseHead(bytes)
  return { head, findings: head ? [] : [headMismatch(path, 'a head', 'something else')] }
}

function headMismatch(path: string, expected: string, actual: string): Finding {
  return finding('head_mismatch', path, expected, actual)
}

/** The same leaf at every sequence number both have; only the first difference is told, for all after it follow. */
function compareWithOwn(rows: readonly LedgerRow[], own: readonly LedgerRow[]): Finding[] {
  const leaves = new Map(own.map(({ seq, leaf }) => [seq, leaf]))
  const differing = rows.find(({ seq, leaf }) => (leaves.get(seq) ?? leaf) !== leaf)
  const findings: Finding[] = []
  if (differing) {
    const { seq, leaf, publicationId } = differing
    findings.push(finding('chain_broken', `entries/${seq}`, leaves.get(seq) ?? null, leaf, publicationId))
  }
  const last = rows.at(-1)?.seq ?? 0
  const ownLast = own.at(-1)
  if (ownLast && ownLast.seq > last)
    findings.push(
      headMismatch(`entries/${ownLast.seq}`, ownLast.leaf, `the ledger of the host ends at entry ${last}`),
    )
  return findings
}
