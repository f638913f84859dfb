import { entityTag } from '../published-ledger.ts'
import type { WithoutText, PublishedResponse, PublishedText } from '../published-ledger.ts'
import { CLOCK_TOLERANCE_MS } from '../../clock-check.ts'
import { formatInstant } from '../../time.ts'
import type { Instant } from '../../time.ts'
import { latestAt } from '../chain.ts'
import type { TimelineItem } from '../chain.ts'
import { examineMembers, examineSummary, objectFindings, objectPath } from '../examine.ts'
import type { ObjectOutcome, ObjectProblem } from '../examine.ts'
import { READ_ERROR, finding, formatTime } from '../finding.ts'
import type { Finding } from '../finding.ts'
import { formatHttpDate } from './history.ts'
import type { Manifest } from '../ledger.ts'
import { staticObjectPath } from '../log/static-layout.ts'

/** Audit rules for a host's responses, by its own ledger (docs/auditing.md). */

/** A query to a host, and the publication that its ledger requires; null if it requires none. */
export interface SelectionQuery {
  at: Instant
  expected: Manifest | null
  /**
   * Digests that the host need not send again: the expected one and its neighbours, so that it must choose. A host that
   * only repeats a sent digest fails.
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
  const limit = now + CLOCK_TOLERANCE_MS
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
  switch (response.is) {
    case 'text':
      return examineBody(query, response)
    case 'unchanged':
      return examineUnchanged(query, response)
    case 'absent':
      return query.expected === null ? [] : [missing(query, query.expected, response)]
    case 'other':
      return response.damaged === 'history'
        ? [unreadable(query, response.description)]
        : [withoutResponse(query, `the host responded with ${response.description}`)]
  }
}

export function withoutResponse(query: SelectionQuery, reason: string): Finding {
  return unreadable(query, `${READ_ERROR}${reason}`)
}

/** Examines the file of a publication at a static host; empty when it is intact. */
export function examineFile(manifest: Manifest, response: PublishedResponse): Finding[] {
  if (response.is === 'absent') return fileFindings(manifest, { found: 'nothing' })
  if (response.is !== 'text')
    return fileWithoutResponse(manifest, `the host responded with ${response.description}`)
  const { byteSize } = response
  const problems = examineObject(manifest, response)
  return problems === null
    ? fileWithoutResponse(manifest, `${byteSize} bytes are too large to parse`)
    : fileFindings(manifest, { found: 'bytes', byteSize, problems })
}

export function fileWithoutResponse(manifest: Manifest, reason: string): Finding[] {
  return fileFindings(manifest, { found: 'something else', why: `${READ_ERROR}${reason}` })
}

function fileFindings(manifest: Manifest, outcome: ObjectOutcome): Finding[] {
  const path = staticObjectPath(manifest.sha256)
  return objectFindings(manifest, outcome).map((found) => ({ ...found, path }))
}

function examineBody(query: SelectionQuery, response: PublishedText): Finding[] {
  const { expected, held } = query
  const { sha256: digest, byteSize, etag } = response
  if (expected === null) return [otherSelection(query, digest)]
  const problems = examineObject(expected, response)
  if (problems === null) return [withoutResponse(query, `${byteSize} bytes are too large to parse`)]
  if (problems.length > 0) {
    if (held.length > 0) return [otherSelection(query, digest)]
    return objectFindings(expected, { found: 'bytes', byteSize, problems })
  }
  if (etag === entityTag(digest)) return examineStated(query, expected, response)
  const path = objectPath(expected.sha256)
  const [right, actual] = [`ETag ${entityTag(digest)}`, `ETag ${etag ?? 'absent'}`]
  return [finding('digest_mismatch', path, right, actual, expected.publicationId)]
}

/** Examines a body; null when it must be parsed, but has too many values for untrusted text. */
function examineObject(expected: Manifest, text: PublishedText): ObjectProblem[] | null {
  const { bytes } = text
  const problems = examineSummary(expected, text)
  if (problems !== null) return problems
  return countValues(bytes) > VALUES_MAX ? null : examineMembers(expected, bytes)
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

function examineUnchanged(
  query: SelectionQuery,
  response: PublishedResponse & { is: 'unchanged' },
): Finding[] {
  const { expected, held } = query
  if (expected === null || held.length === 0) {
    return [unreadable(query, `${response.description} for a request without an ETag`)]
  }
  if (response.etag !== entityTag(expected.sha256)) return [otherSelection(query, response.etag)]
  return examineStated(query, expected, response)
}

/** Examines what the host states about a publication; without its text, it may omit fields. */
function examineStated(
  query: SelectionQuery,
  expected: Manifest,
  response: PublishedResponse & { is: 'text' | 'unchanged' },
): Finding[] {
  const required = response.is === 'text'
  const fields: [name: string, expected: string, actual: string | null][] = [
    ['Last-Modified', formatHttpDate(expected.publishedAt), response.lastModified],
    ['X-Year-History-Requested-At', formatInstant(query.at), response.requestedAt],
  ]
  const wrong = fields.filter(([, value, actual]) => actual !== value && (actual !== null || required))
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

function missing(query: SelectionQuery, expected: Manifest, { description }: WithoutText): Finding {
  if (query.held.length > 0) return otherSelection(query, description)
  const { publicationId, sha256 } = expected
  return finding('object_missing', objectPath(sha256), sha256, description, publicationId)
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
