import type { PublishedAnswer } from './ports.ts'
import { sha256Hex } from '../digest.ts'
import { auditExpectedHead, auditLedger, readable } from './audit.ts'
import type { AuditedContents, AuditedRow, LedgerAudit } from './audit.ts'
import type { Finding } from './finding.ts'
import { parseHead } from './head-file.ts'
import type { Head, LedgerRow } from './ledger.ts'
import { parseLeafText, parseLegacyLine } from './ledger-text.ts'

/** The rules by which the ledgers that a host publishes are audited (docs/auditing.md). */

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
  const etag = `"${sha256Hex(answer.bytes)}"`
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
): LedgerAudit {
  const contents = publishedContents(texts.ledger, texts.legacy)
  const audit = auditLedger(contents, null, expectedHead)
  const rows = readable(contents.rows)
  const whole = rows.length === contents.rows.length
  return {
    ...audit,
    findings: [
      ...audit.findings,
      ...auditPublishedHead(rows, texts, whole),
      ...(own ? auditAgainstOwn(rows, readable(own.rows)) : []),
    ],
  }
}

/** True when the host went on publishing between its head and its ledger: its head must be asked for again. */
export function isOvertaken(head: Uint8Array | null, ledger: Uint8Array): boolean {
  const lines = ledger.reduce((count, byte) => (byte === NEWLINE ? count + 1 : count), 0)
  const seq = head === null ? 0 : parseHead(head)?.seq
  return seq !== undefined && lines > seq + 1
}

const NEWLINE = 0x0a

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
  const problem = (at: number, what: string): AuditedRow<Row> => ({ problem: what, at, publicationId: null })
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return [problem(1, 'not UTF-8')]
  }
  const lines = text.split('\n')
  const ended = ending === 'every line ends with a newline'
  const rest = ended ? lines.pop() : ''
  const rows = lines.map((line, index): AuditedRow<Row> => {
    const row = parse(line)
    return row === null ? problem(index + 1, 'not a line that a ledger publishes') : { row }
  })
  return rest === '' ? rows : [...rows, problem(lines.length + 1, 'a line that was cut off')]
}

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
