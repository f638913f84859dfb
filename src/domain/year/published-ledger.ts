import type { z } from 'zod'
import { sha256Hex } from '../digest.ts'
import { decodeUtf8 } from '../text.ts'
import { parseJsonBytes } from '../json.ts'
import { parseInstant } from '../time.ts'
import type { ProvedLedger } from './chain.ts'
import { auditLedger, checkPinned, proveLedger } from './check.ts'
import type { LedgerAudit } from './check.ts'
import type { BytesSummary } from './examine.ts'
import { finding } from './finding.ts'
import type { Finding } from './finding.ts'
import { historyIndex, historyIndexSchema } from './history/history.ts'
import { parseHead, parseLeafText, parseLegacyLine, sealOf } from './ledger.ts'
import type { AuditedContents, Head, KeptHead, LedgerContents, LedgerRow, UnreadableRow } from './ledger.ts'
import { STATIC_INDEX, STATIC_LEGACY_LEDGER } from './log/static-layout.ts'

/** Audit rules for the ledgers that a host publishes (docs/auditing.md). */

/** A host's response to a request for one of its texts. */
export type PublishedResponse =
  | PublishedText
  /** The host states that it has the text of a digest in the request. */
  | ({ is: 'unchanged' } & StatedFields & WithoutText)
  | ({ is: 'absent' } & WithoutText)
  /** `damaged`: the part of its archive that the host itself reports as damaged. */
  | ({ is: 'other'; damaged: 'history' | 'log' | null } & WithoutText)

/**
 * Fields that a host states about a text, in the notation of the contract (docs/api.md) and plain ASCII; null if it does
 * not. They are compared as texts: another notation of the same value is a finding too.
 */
interface StatedFields {
  etag: string | null
  lastModified: string | null
  requestedAt: string | null
}

export type PublishedText = { is: 'text'; bytes: Uint8Array } & BytesSummary & StatedFields

/** A response without the text. */
export interface WithoutText {
  /** The response for people, as `404 year_history_not_found`. */
  description: string
  byteSize: number
}

/** Refusals of {@link PublishedHistory}. */
export type PublishedRefusal = 'source_unavailable'

/** Paths of the published ledgers and of the head. */
export const PUBLISHED_LEDGER = '/api/feed/history/ledger'
export const PUBLISHED_LEGACY_LEDGER = '/api/feed/history/ledger/legacy'
export const PUBLISHED_HEAD = '/api/feed/history/head'

/** Independent references for a host's ledgers. */
export interface Reference {
  /** The auditor's own ledgers; null without any. */
  own: LedgerContents | null
  /** The newest signed note of the own log; null without one. */
  ownNote: string | null
  /** A head that was kept earlier. */
  expectedHead: KeptHead | null
}

/** A text that a host publishes: `bytes` is null if the host does not have the route or reports damage itself. */
export interface PublishedDocument {
  path: string
  bytes: Uint8Array | null
  findings: Finding[]
}

/**
 * Examines the response to a request for one of the host's texts.
 *
 * @returns the response itself if it neither has the text nor says why there is none
 */
export function publishedDocument(
  path: string,
  response: PublishedResponse,
): PublishedDocument | WithoutText {
  switch (response.is) {
    case 'text': {
      const { bytes, etag } = response
      const expected = entityTag(response.sha256)
      const findings = etag === expected ? [] : [finding('digest_mismatch', path, etag, expected)]
      return { path, bytes, findings }
    }
    case 'absent':
      return { path, bytes: null, findings: [] }
    case 'unchanged':
      return response
    case 'other': {
      if (response.damaged !== 'history') return response
      const admitted = finding('chain_broken', path, 200, response.description)
      return { path, bytes: null, findings: [admitted] }
    }
  }
}

/** The `etag` that the contract requires for a text. */
export function entityTag(sha256: string): string {
  return `"${sha256}"`
}

/**
 * Audits a host's ledgers: their chain, their seal, the host's newest head, a head kept earlier, and the auditor's own
 * ledgers.
 *
 * @param texts the ledger, the legacy ledger, the newest head from before the ledger, and once more after it when
 *   {@link isOvertaken}
 */
export function auditPublishedLedger(
  texts: {
    ledger: Uint8Array
    legacy: Uint8Array | null
    /** Null if the ledger ends with a signed checkpoint instead. */
    head: PublishedDocument | null
    laterHead: PublishedDocument | null
  },
  { own, expectedHead }: Reference,
): LedgerAudit & { isOwnUnrelated: boolean; contents: AuditedContents } {
  const contents = publishedContents(texts.ledger, texts.legacy)
  const { rows, unreadable } = contents
  const audit = auditLedger(contents, null, expectedHead)
  const isWhole = unreadable.every(({ table }) => table !== 'entries')
  const isOwnUnrelated = own !== null && areUnrelated(contents, own)
  const findings = [
    ...audit.findings,
    ...(texts.head ? checkPublishedHead(rows, texts.head, texts.laterHead, isWhole) : []),
    // A checkpoint shows that the ledger ends there; a copy of the archive may be older than the archive.
    ...(own && !isOwnUnrelated ? compareWithOwn(rows, own.rows, texts.head === null) : []),
  ]
  return { ...audit, isOwnUnrelated, contents, findings }
}

/**
 * True when two archives share no entry and no publication, so that neither is a copy of the other. A copy with
 * rewritten entries still names the same publications; an archive without entries may have lost them.
 */
function areUnrelated(theirs: LedgerContents, own: LedgerContents): boolean {
  const identifiers = new Set(identifiersOf(theirs))
  return identifiers.size > 0 && !identifiersOf(own).some((identifier) => identifiers.has(identifier))
}

/** The leaves of the entries and the digests of the publications. */
function identifiersOf({ rows, legacy }: LedgerContents): string[] {
  return [...rows.map(({ leaf }) => leaf), ...[...rows, ...legacy].flatMap(({ sha256 }) => sha256 ?? [])]
}

/** True when the host published between its head and its ledger: its head must be requested again. */
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

/** Most lines of a ledger: one a day for more than a century. */
export const LINES_MAX = 50_000

/** Longest line that is parsed; real entries are far shorter. */
const LINE_MAX_BYTES = 8 * 1024

/** True for a text with more lines than any ledger: parsed lines need more memory than their text. */
export function hasTooManyLines(bytes: Uint8Array): boolean {
  return countLineEnds(bytes) > LINES_MAX
}

function publishedContents(ledger: Uint8Array, legacy: Uint8Array | null): AuditedContents {
  const { lines, rest } = linesOf(ledger)
  const entries = readLines('entries', lines, parseLeafText)
  if (rest.byteLength > 0)
    entries.unreadable.push(unreadableRow('entries', lines.length + 1, 'a truncated line'))
  // Newlines separate legacy lines: the last one has none.
  const split = linesOf(legacy ?? new Uint8Array())
  const legacyLines = legacy?.byteLength ? [...split.lines, split.rest] : []
  const publications = readLines('legacy_publications', legacyLines, parseLegacyLine)
  const problems = [...entries.unreadable, ...publications.unreadable]
  return { rows: entries.rows, legacy: publications.rows, founding: null, unreadable: problems }
}

export function ledgerTextOf(lines: readonly Uint8Array[]): Uint8Array {
  const newline = Uint8Array.of(NEWLINE)
  return Buffer.concat(lines.flatMap((line) => [line, newline]))
}

/** Splits bytes into lines that end with a newline, without it, and the rest. */
export function linesOf(bytes: Uint8Array): { lines: Uint8Array[]; rest: Uint8Array } {
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
  const text = decodeUtf8(line)
  return text === null ? 'not UTF-8' : (parse(text) ?? 'not a valid ledger line')
}

function unreadableRow(table: UnreadableRow['table'], at: number, problem: string): UnreadableRow {
  return { table, at, problem, publicationId: null }
}

/**
 * The ledger must contain the head from before it, and must not be more than one entry ahead of the newest head, as
 * after a crash between commit and head.
 */
function checkPublishedHead(
  rows: readonly LedgerRow[],
  head: PublishedDocument,
  laterHead: PublishedDocument | null,
  isWhole: boolean,
): Finding[] {
  const first = readHead(head)
  const newest = laterHead ? readHead(laterHead) : first
  const unreadable = [first, newest].find(({ findings }) => findings.length > 0)
  if (unreadable) return unreadable.findings
  const last = rows.at(-1)?.seq ?? 0
  const newestSeq = newest.head?.seq ?? 0
  // A head from after the ledger may name a later entry.
  const inLedger = [first.head, newestSeq <= last ? newest.head : null].filter((each) => each !== null)
  const [differing] = inLedger.flatMap((each) => checkPinned(rows, { ...each, path: head.path }))
  if (differing) return [differing]
  if (last <= newestSeq + 1 || (newest.head !== null && !isWhole)) return []
  const actual = newest.head === null ? 'the host has no head' : `${newestSeq}`
  return [headMismatch(head.path, `a head of entry ${last}`, actual)]
}

function readHead({ path, bytes, findings }: PublishedDocument): { head: Head | null; findings: Finding[] } {
  if (bytes === null || findings.length > 0) return { head: null, findings }
  const head = parseHead(bytes)
  return { head, findings: head ? [] : [headMismatch(path, 'a head', 'something else')] }
}

function headMismatch(path: string, expected: string, actual: string): Finding {
  return finding('head_mismatch', path, expected, actual)
}

/**
 * Compares the leaves of both ledgers; reports only the first difference, because all later ones follow from it.
 *
 * @param mayLag true if a shorter ledger is no finding
 */
function compareWithOwn(rows: readonly LedgerRow[], own: readonly LedgerRow[], mayLag: boolean): Finding[] {
  const leaves = new Map(own.map(({ seq, leaf }) => [seq, leaf]))
  const differing = rows.find(({ seq, leaf }) => (leaves.get(seq) ?? leaf) !== leaf)
  const findings: Finding[] = []
  if (differing) {
    const { seq, leaf, publicationId } = differing
    findings.push(finding('chain_broken', `entries/${seq}`, leaves.get(seq) ?? null, leaf, publicationId))
  }
  const last = rows.at(-1)?.seq ?? 0
  const ownLast = own.at(-1)
  if (!mayLag && ownLast && ownLast.seq > last)
    findings.push(
      headMismatch(`entries/${ownLast.seq}`, ownLast.leaf, `the ledger of the host ends at entry ${last}`),
    )
  return findings
}

/** Audit rules for the files of a static host that are not part of the signed tree. */

/**
 * Compares the index of a static host with its ledger. The index is written before the checkpoint, so that it may list
 * later entries.
 *
 * @param contents a ledger without findings
 * @param bytes null if the host has no index
 * @returns the findings, and the number of listed entries that are not in the ledger yet
 */
export function auditIndex(
  contents: LedgerContents,
  bytes: Uint8Array | null,
): { findings: Finding[]; later: number } {
  const index = bytes && parseIndex(bytes)
  const isKnown = ({ seq, leaf }: { seq: number; leaf: string | null }): boolean =>
    leaf === null || seq <= contents.rows.length
  const { publications = [], gaps = [], head = null } = index ?? {}
  const listed = { publications: publications.filter(isKnown), gaps: gaps.filter(isKnown) }
  const later = publications.length + gaps.length - listed.publications.length - listed.gaps.length
  const expected = historyIndex(provedLedger(contents), headInLedger(contents, head))
  // The head of a later entry is not in the ledger either.
  const known = { head: later > 0 ? expected.head : head, ...listed }
  const isSame =
    index !== null && JSON.stringify(known) === JSON.stringify(historyIndexSchema.parse(expected))
  if (isSame) return { findings: [], later }
  const actual = bytes && sha256Hex(bytes)
  return {
    findings: [finding('digest_mismatch', STATIC_INDEX, sha256Hex(JSON.stringify(expected)), actual)],
    later: 0,
  }
}

/** Returns a ledger without findings, which ends with its last entry. */
function provedLedger(contents: LedgerContents): ProvedLedger {
  const last = contents.rows.at(-1)
  return proveLedger(contents, last ? { seq: last.seq, leaf: last.leaf, time: last.recordedAt } : null)
}

type Index = z.infer<typeof historyIndexSchema>

function parseIndex(bytes: Uint8Array): Index | null {
  return historyIndexSchema.safeParse(parseJsonBytes(bytes)).data ?? null
}

/** Returns the head in the index of a host if the ledger contains it. The time of a head is in no ledger. */
function headInLedger({ rows }: LedgerContents, head: Index['head']): Head | null {
  const time = head && parseInstant(head.time)
  return head && time !== null && rows[head.seq - 1]?.leaf === head.leaf ? { ...head, time } : null
}

/**
 * Compares the legacy ledger of a static host with the seal.
 *
 * @param bytes null if the host has no legacy ledger
 */
export function auditLegacyFile({ rows }: Pick<LedgerContents, 'rows'>, bytes: Uint8Array | null): Finding[] {
  const expected = sealOf(rows)?.legacyDigest ?? null
  // An empty legacy ledger needs no file.
  if (expected === null || sha256Hex(bytes ?? new Uint8Array()) === expected) return []
  return [finding('digest_mismatch', STATIC_LEGACY_LEDGER, expected, bytes && sha256Hex(bytes))]
}
