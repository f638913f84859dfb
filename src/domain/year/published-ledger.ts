import type { SeenBytes } from './envelope.ts'
import { auditExpectedHead, auditLedger, readable } from './audit.ts'
import type { AuditedContents, AuditedRow, LedgerAudit } from './audit.ts'
import type { Finding } from './finding.ts'
import { parseHead, parseLeafText, parseLegacyLine } from './ledger.ts'
import type { Head, LedgerRow } from './ledger.ts'

/** The rules by which the ledgers that a host publishes are audited (docs/auditing.md). */

/** What a host answered to one question. Its header values are plain ASCII, or null. */
export interface PublishedAnswer {
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
  own: AuditedContents | null
  /** A head kept from before. */
  expectedHead: (Head & { path: string }) | null
}

/** One of the texts as a host answered: null when the host has no such route, or says itself that it is damaged. */
export interface PublishedDocument {
  path: string
  bytes: Uint8Array | null
  findings: Finding[]
}

/** True when a host says itself that its archive is damaged. */
export function admitsDamage({ status, error }: PublishedAnswer): boolean {
  return status === 503 && error === 'year_history_archive_corrupt'
}

/**
 * What a host answered when it was asked for one of its texts.
 *
 * @returns null for an answer that is neither the text nor its absence
 */
export function publishedDocument(path: string, answer: PublishedAnswer): PublishedDocument | null {
  const finding = (code: Finding['code'], expected: Finding['expected'], actual: string | null): Finding => ({
    code,
    publicationId: null,
    path,
    expected,
    actual,
  })
  if (answer.status === 404) return { path, bytes: null, findings: [] }
  if (admitsDamage(answer)) {
    return { path, bytes: null, findings: [finding('chain_broken', 200, '503 year_history_archive_corrupt')] }
  }
  if (answer.status !== 200) return null
  const etag = `"${answer.seen.sha256}"`
  const findings = answer.etag === etag ? [] : [finding('digest_mismatch', answer.etag, etag)]
  return { path, bytes: answer.bytes, findings }
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
  const audit = auditLedger(contents, null, expectedHead)
  const rows = readable(contents.rows)
  const whole = rows.length === contents.rows.length
  const isOwnUnrelated = own !== null && areUnrelated(contents, own)
  return {
    ...audit,
    isOwnUnrelated,
    findings: [
      ...audit.findings,
      ...auditPublishedHead(rows, texts, whole),
      ...(own && !isOwnUnrelated ? auditAgainstOwn(rows, readable(own.rows)) : []),
    ],
  }
}

/**
 * True when two archives share no entry and no publication, so that neither is a copy of the other. A copy whose entries
 * were all rewritten still names the same publications, and one without entries may have lost them.
 */
function areUnrelated(theirs: AuditedContents, own: AuditedContents): boolean {
  const marks = new Set(marksOf(theirs))
  return marks.size > 0 && !marksOf(own).some((mark) => marks.has(mark))
}

/** The leaves of the entries and the digests of the publications. */
function marksOf({ rows, legacy }: AuditedContents): string[] {
  const entries = readable(rows)
  return [
    ...entries.map(({ leaf }) => leaf),
    ...[...entries, ...readable(legacy)].flatMap(({ sha256 }) => sha256 ?? []),
  ]
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
  return {
    rows: rowsOf(ledger, parseLeafText, 'every line ends with a newline'),
    legacy: rowsOf(legacy ?? new Uint8Array(), parseLegacyLine, 'lines are only parted by newlines'),
    founding: null,
  }
}

function rowsOf<Row>(
  bytes: Uint8Array,
  parse: (line: string) => Row | null,
  ending: 'every line ends with a newline' | 'lines are only parted by newlines',
): AuditedRow<Row>[] {
  if (bytes.byteLength === 0) return []
  const rows: AuditedRow<Row>[] = []
  let start = 0
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
    rows.push(rowOf(bytes.subarray(start, end), rows.length + 1, parse))
    start = end + 1
  }
  const rest = bytes.subarray(start)
  if (ending === 'lines are only parted by newlines') return [...rows, rowOf(rest, rows.length + 1, parse)]
  return rest.byteLength === 0 ? rows : [...rows, problem(rows.length + 1, 'a line that was cut off')]
}

function rowOf<Row>(line: Uint8Array, at: number, parse: (line: string) => Row | null): AuditedRow<Row> {
  if (line.byteLength > LINE_MAX_BYTES) return problem(at, `a line of ${line.byteLength} bytes`)
  let text: string
  try {
    text = utf8.decode(line)
  } catch {
    return problem(at, 'not UTF-8')
  }
  const row = parse(text)
  return row === null ? problem(at, 'not a line that a ledger publishes') : { row }
}

function problem(at: number, what: string): { problem: string; at: number; publicationId: null } {
  return { problem: what, at, publicationId: null }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The ledger must hold the head told before it, and must not be more than one entry ahead of the newest: one is what a
 * crash between commit and head leaves.
 */
function auditPublishedHead(
  rows: readonly LedgerRow[],
  { head, laterHead }: { head: PublishedDocument; laterHead: PublishedDocument | null },
  whole: boolean,
): Finding[] {
  const first = readHead(head, rows.length)
  const newest = laterHead ? readHead(laterHead, rows.length) : first
  const unread = first.findings.length > 0 ? first.findings : newest.findings
  if (unread.length > 0) return unread
  const last = rows.at(-1)?.seq ?? 0
  // A head told after the ledger may name an entry that was not there yet.
  const inLedger = [first, ...(newest.head && newest.head.seq <= last ? [newest] : [])]
  const differing = inLedger.flatMap((told) =>
    told.head ? auditExpectedHead(rows, { ...told.head, path: head.path }) : [],
  )
  const behind = whole && last > (newest.head?.seq ?? 0) + 1
  if (differing.length > 0) return differing.slice(0, 1)
  return behind ? [headMismatch(head.path, `a head of entry ${last}`, `${newest.head?.seq ?? 0}`)] : []
}

function readHead(
  { path, bytes, findings }: PublishedDocument,
  entries: number,
): { head: Head | null; findings: Finding[] } {
  if (findings.length > 0) return { head: null, findings }
  if (bytes === null) {
    const lost = entries > 1 ? [headMismatch(path, `a head of entry ${entries}`, 'the host has no head')] : []
    return { head: null, findings: lost }
  }
  const head = parseHead(bytes)
  return { head, findings: head ? [] : [headMismatch(path, 'a head', 'something else')] }
}

function headMismatch(path: string, expected: string, actual: string): Finding {
  return { code: 'head_mismatch', publicationId: null, path, expected, actual }
}

/** The same leaf at every sequence number both have; only the first difference is told, for all after it follow. */
function auditAgainstOwn(rows: readonly LedgerRow[], own: readonly LedgerRow[]): Finding[] {
  const leaves = new Map(own.map(({ seq, leaf }) => [seq, leaf]))
  const differing = rows.find(({ seq, leaf }) => (leaves.get(seq) ?? leaf) !== leaf)
  const findings: Finding[] = []
  if (differing) {
    findings.push({
      code: 'chain_broken',
      publicationId: differing.publicationId,
      path: `entries/${differing.seq}`,
      expected: leaves.get(differing.seq) ?? null,
      actual: differing.leaf,
    })
  }
  const last = rows.at(-1)?.seq ?? 0
  const ownLast = own.at(-1)
  if (ownLast && ownLast.seq > last) {
    findings.push({
      code: 'head_mismatch',
      publicationId: null,
      path: `entries/${ownLast.seq}`,
      expected: ownLast.leaf,
      actual: `the ledger of the host ends at entry ${last}`,
    })
  }
  return findings
}
