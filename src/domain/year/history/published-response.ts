import type { PublishedResponse } from '../published-ledger.ts'
import { formatInstant } from '../../time.ts'
import type { Instant } from '../../time.ts'
import { latestAt } from '../chain.ts'
import type { TimelineItem } from '../chain.ts'
import { examineMembers, examineSummary, objectFindings, objectPath } from '../examine.ts'
import type { ObjectOutcome, ObjectProblem } from '../examine.ts'
import { READ_ERROR, finding, formatTime } from '../finding.ts'
import type { Finding } from '../finding.ts'
import { FUTURE_TOLERANCE_MS } from './history.ts'
import type { Manifest } from '../ledger.ts'
import { staticObjectPath } from '../log/static-layout.ts'
import { admitsDamage } from '../published-ledger.ts'

/** Audit rules for a host's responses, by its own ledger (docs/auditing.md). */

/** A query to a host, and the publication that its ledger requires; null for a 404. */
export interface SelectionQuery {
  at: Instant
  expected: Manifest | null
  /**
   * Digests for `If-None-Match`: the expected one and its neighbours, so that a 304 must choose. A host that only
   * repeats a sent digest fails.
   */
  held: readonly string[]
}

/**
 * Creates the queries about one publication: its bytes at its own time, and the selection a millisecond before and
 * after.
 *
 * @returns nothing for a publication that another one of the same time supersedes; a publication time ahead of `now` is
 *   a finding instead of a query
 */
export function queriesAbout(
  item: TimelineItem,
  timeline: readonly TimelineItem[],
  now: Instant,
): { queries: SelectionQuery[]; findings: Finding[] } {
  const { publishedAt } = item.manifest
  if (latestAt(timeline, publishedAt) !== item) return { queries: [], findings: [] }
  const limit = now + FUTURE_TOLERANCE_MS
  if (publishedAt > limit) {
    const query = { at: publishedAt, expected: item.manifest, held: [] }
    const reason = `its time, ${formatTime(publishedAt)}, is later than this clock`
    return { queries: [], findings: [withoutResponse(query, reason)] }
  }
  const before = latestAt(timeline, publishedAt - 1)?.manifest ?? null
  const after = latestAt(timeline, publishedAt + 1)?.manifest ?? null
  const neighbours = [...new Set([before, item.manifest, after].flatMap((one) => one?.sha256 ?? []))].sort()
  const queries: SelectionQuery[] = [
    { at: publishedAt, expected: item.manifest, held: [] },
    { at: publishedAt - 1, expected: before, held: before ? neighbours : [] },
    { at: publishedAt + 1, expected: after, held: neighbours },
  ]
  return { queries: queries.filter(({ at }) => at <= limit), findings: [] }
}

/** Age of a publication from which the host's ledger must list it. */
const SETTLED_MS = 300_000

/**
 * Creates the query about the end of a ledger, which reveals a publication that the host serves but does not list.
 *
 * @param startedAt time before the ledger was requested
 */
export function queryAboutEnd(timeline: readonly TimelineItem[], startedAt: Instant): SelectionQuery {
  const at = startedAt - SETTLED_MS
  const expected = latestAt(timeline, at)?.manifest ?? null
  if (expected === null) return { at, expected, held: [] }
  const before = latestAt(timeline, expected.publishedAt - 1)?.manifest
  const held = [...new Set([expected.sha256, ...(before ? [before.sha256] : [])])].sort()
  return { at, expected, held }
}

/** Examines a host's response; empty when it is the one its ledger requires. */
export function examineResponse(query: SelectionQuery, response: PublishedResponse): Finding[] {
  switch (response.status) {
    case 200:
      return examineBody(query, response)
    case 304:
      return examineNotModified(query, response)
    case 404:
      return query.expected === null ? [] : [missing(query, query.expected, response)]
    default: {
      const refusal = describeStatus(response)
      return admitsDamage(response)
        ? [unreadable(query, refusal)]
        : [withoutResponse(query, `the host responded with ${refusal}`)]
    }
  }
}

export function withoutResponse(query: SelectionQuery, reason: string): Finding {
  return unreadable(query, `${READ_ERROR}${reason}`)
}

/** Examines the file of a publication at a static host; empty when it is intact. */
export function examineFile(manifest: Manifest, response: PublishedResponse): Finding[] {
  const { status, summary } = response
  if (status === 404) return fileFindings(manifest, { found: 'nothing' })
  if (status !== 200)
    return fileWithoutResponse(manifest, `the host responded with ${describeStatus(response)}`)
  const problems = examineObject(manifest, response)
  return problems === null
    ? fileWithoutResponse(manifest, `${summary.byteSize} bytes are too large to parse`)
    : fileFindings(manifest, { found: 'bytes', byteSize: summary.byteSize, problems })
}

export function fileWithoutResponse(manifest: Manifest, reason: string): Finding[] {
  return fileFindings(manifest, { found: 'something else', why: `${READ_ERROR}${reason}` })
}

function fileFindings(manifest: Manifest, outcome: ObjectOutcome): Finding[] {
  const path = staticObjectPath(manifest.sha256)
  return objectFindings(manifest, outcome).map((found) => ({ ...found, path }))
}

function examineBody(query: SelectionQuery, response: PublishedResponse): Finding[] {
  const { expected, held } = query
  const { sha256: digest, byteSize } = response.summary
  if (expected === null) return [otherSelection(query, digest)]
  const problems = examineObject(expected, response)
  if (problems === null) return [withoutResponse(query, `${byteSize} bytes are too large to parse`)]
  if (problems.length > 0) {
    if (held.length > 0) return [otherSelection(query, digest)]
    return objectFindings(expected, { found: 'bytes', byteSize, problems })
  }
  if (response.etag === `"${digest}"`) return examineHeaders(query, expected, response)
  const path = objectPath(expected.sha256)
  const [right, actual] = [`ETag "${digest}"`, `ETag ${response.etag ?? 'absent'}`]
  return [finding('digest_mismatch', path, right, actual, expected.publicationId)]
}

/** Examines a body; null when it must be parsed, but was not kept or has too many values for untrusted text. */
function examineObject(expected: Manifest, { summary, bytes }: PublishedResponse): ObjectProblem[] | null {
  const problems = examineSummary(expected, summary)
  if (problems !== null) return problems
  return bytes === null || countValues(bytes) > VALUES_MAX ? null : examineMembers(expected, bytes)
}

/** Most JSON values of a body; a publication with full lists has about 15,000. */
const VALUES_MAX = 200_000

/** Upper bound of the values in a JSON text: parsing needs memory for each of them. */
function countValues(bytes: Uint8Array): number {
  let count = 1
  for (const byte of bytes) if (byte === COMMA || byte === BRACKET || byte === BRACE) count += 1
  return count
}

const COMMA = 0x2c
const BRACKET = 0x5b
const BRACE = 0x7b

function examineNotModified(query: SelectionQuery, response: PublishedResponse): Finding[] {
  const { expected, held } = query
  if (expected === null || held.length === 0) {
    return [unreadable(query, '304 for a request without an ETag')]
  }
  if (response.etag !== `"${expected.sha256}"`) return [otherSelection(query, response.etag)]
  return examineHeaders(query, expected, response)
}

/** Examines the headers; a 304 may omit unchanged ones. */
function examineHeaders(query: SelectionQuery, expected: Manifest, response: PublishedResponse): Finding[] {
  const required = response.status === 200
  const headers: [name: string, expected: string, actual: string | null][] = [
    ['Last-Modified', new Date(expected.publishedAt).toUTCString(), response.lastModified],
    ['X-Year-History-Requested-At', formatInstant(query.at), response.requestedAt],
  ]
  const wrong = headers.filter(([, value, actual]) => actual !== value && (actual !== null || required))
  return wrong.map(([name, value, actual]) =>
    finding(
      'identity_mismatch',
      selectionPath(query),
      `${name} ${value}`,
      `${name} ${actual ?? 'absent'}`,
      expected.publicationId,
    ),
  )
}

function missing(query: SelectionQuery, expected: Manifest, response: PublishedResponse): Finding {
  const actual = describeStatus(response)
  if (query.held.length > 0) return otherSelection(query, actual)
  const { publicationId, sha256 } = expected
  return finding('object_missing', objectPath(sha256), sha256, actual, publicationId)
}

/** The finding for another publication than the one that was current. */
function otherSelection(query: SelectionQuery, actual: string | null): Finding {
  const { sha256 = null, publicationId = null } = query.expected ?? {}
  return finding('chain_broken', selectionPath(query), sha256, actual, publicationId)
}

function unreadable(query: SelectionQuery, actual: string): Finding {
  const { expected } = query
  if (expected === null) return finding('object_unreadable', selectionPath(query), null, actual)
  const { sha256, publicationId } = expected
  return finding('object_unreadable', objectPath(sha256), sha256, actual, publicationId)
}

function selectionPath({ at }: SelectionQuery): string {
  return `selection at ${formatTime(at)}`
}

/** Describes the status of a response that is not the requested file. */
export function describeStatus({ status, error }: PublishedResponse): string {
  return error === null ? String(status) : `${status} ${error}`
}
