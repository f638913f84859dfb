import type { PublishedResponse } from './published-ledger.ts'
import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import { latestAt } from './chain.ts'
import type { TimelineItem } from './chain.ts'
import { examineMembers, examineSeen, objectFindings, objectPath } from './examine.ts'
import type { ObjectProblem } from './examine.ts'
import { READ_ERROR, finding, timeOf } from './finding.ts'
import type { Finding } from './finding.ts'
import { FUTURE_TOLERANCE_MS } from './history.ts'
import type { Manifest } from './ledger.ts'
import { admitsDamage } from './published-ledger.ts'

/** The rules by which a host's answers are held against its ledger (docs/auditing.md). */

/** One question to a host, and the publication its ledger obliges it to answer with; null: none, a 404. */
export interface SelectionQuery {
  at: Instant
  expected: Manifest | null
  /**
   * Digests said to be held already. With the right one stands its neighbour, so that a 304 must choose between them:
   * a host that repeats what it was sent does not pass.
   */
  held: readonly string[]
}

/**
 * What to ask about one publication: its bytes at its own time, and the selection a millisecond before and after.
 *
 * @returns none for a publication that another of the same time hides; a time that lies ahead of `now` is left out of
 *   `questions` and told as a finding
 */
export function queriesAbout(
  item: TimelineItem,
  timeline: readonly TimelineItem[],
  now: Instant,
): { questions: SelectionQuery[]; findings: Finding[] } {
  const { publishedAt } = item.manifest
  if (latestAt(timeline, publishedAt) !== item) return { questions: [], findings: [] }
  const limit = now + FUTURE_TOLERANCE_MS
  if (publishedAt > limit) {
    const why = `${READ_ERROR}its time, ${timeOf(publishedAt)}, lies ahead of the clock`
    return {
      questions: [],
      findings: [unreadable({ at: publishedAt, expected: item.manifest, held: [] }, why)],
    }
  }
  const before = latestAt(timeline, publishedAt - 1)?.manifest ?? null
  const after = latestAt(timeline, publishedAt + 1)?.manifest ?? null
  const neighbours = [...new Set([before, item.manifest, after].flatMap((one) => one?.sha256 ?? []))].sort()
  const questions: SelectionQuery[] = [
    { at: publishedAt, expected: item.manifest, held: [] },
    { at: publishedAt - 1, expected: before, held: before ? neighbours : [] },
    { at: publishedAt + 1, expected: after, held: neighbours },
  ]
  return { questions: questions.filter(({ at }) => at <= limit), findings: [] }
}

/** How long before an audit a publication must have been made for its ledger to have to list it. */
const SETTLED_MS = 300_000

/**
 * What to ask about the end of a ledger: a publication that the host answers with and does not list shows there.
 *
 * @param startedAt before the ledger was asked for
 */
export function queryAboutEnd(timeline: readonly TimelineItem[], startedAt: Instant): SelectionQuery {
  const at = startedAt - SETTLED_MS
  const expected = latestAt(timeline, at)?.manifest ?? null
  if (expected === null) return { at, expected, held: [] }
  const before = latestAt(timeline, expected.publishedAt - 1)?.manifest
  const held = [...new Set([expected.sha256, ...(before ? [before.sha256] : [])])].sort()
  return { at, expected, held }
}

/** What a host's answer to a question shows; none when it is the answer its ledger obliges it to. */
export function examineResponse(question: SelectionQuery, answer: PublishedResponse): Finding[] {
  switch (answer.status) {
    case 200:
      return examineBody(question, answer)
    case 304:
      return examineNotModified(question, answer)
    case 404:
      return question.expected === null ? [] : [missing(question, question.expected, answer)]
    default: {
      const said = describeRefusal(answer)
      return [unreadable(question, admitsDamage(answer) ? said : `${READ_ERROR}the host answered ${said}`)]
    }
  }
}

/** A question that got no answer. */
export function withoutResponse(question: SelectionQuery, why: string): Finding {
  return unreadable(question, `${READ_ERROR}${why}`)
}

function examineBody(question: SelectionQuery, answer: PublishedResponse): Finding[] {
  const { expected, held } = question
  const { sha256: digest, byteSize } = answer.seen
  if (expected === null) return [otherSelection(question, digest)]
  const problems = examineObject(expected, answer)
  if (problems === null) return [unreadable(question, `${READ_ERROR}${byteSize} bytes are too many to parse`)]
  if (problems.length > 0) {
    if (held.length > 0) return [otherSelection(question, digest)]
    return objectFindings(expected, { found: 'bytes', byteSize, problems })
  }
  if (answer.etag === `"${digest}"`) return examineHeaders(question, expected, answer)
  const path = objectPath(expected.sha256)
  const [right, actual] = [`ETag "${digest}"`, `ETag ${answer.etag ?? 'absent'}`]
  return [finding('digest_mismatch', path, right, actual, expected.publicationId)]
}

/** Null when only the whole text can tell, and it was not kept or has more values than are parsed of a stranger's text. */
function examineObject(expected: Manifest, { seen, bytes }: PublishedResponse): ObjectProblem[] | null {
  const problems = examineSeen(expected, seen)
  if (problems !== null) return problems
  return bytes === null || countValues(bytes) > VALUES_MAX ? null : examineMembers(expected, bytes)
}

/** A publication of a hundred items a list has about 15,000. */
const VALUES_MAX = 200_000

/** At least as many as a JSON text has values: parsing needs memory for each of them, however short it is. */
function countValues(bytes: Uint8Array): number {
  let count = 1
  for (const byte of bytes) if (byte === COMMA || byte === BRACKET || byte === BRACE) count += 1
  return count
}

const COMMA = 0x2c
const BRACKET = 0x5b
const BRACE = 0x7b

function examineNotModified(question: SelectionQuery, answer: PublishedResponse): Finding[] {
  const { expected, held } = question
  if (expected === null || held.length === 0) {
    return [unreadable(question, '304 to a question that named no ETag')]
  }
  if (answer.etag !== `"${expected.sha256}"`) return [otherSelection(question, answer.etag)]
  return examineHeaders(question, expected, answer)
}

/** A 304 may leave out what it does not change. */
function examineHeaders(question: SelectionQuery, expected: Manifest, answer: PublishedResponse): Finding[] {
  const required = answer.status === 200
  const headers: [name: string, expected: string, actual: string | null][] = [
    ['Last-Modified', new Date(expected.publishedAt).toUTCString(), answer.lastModified],
    ['X-Year-History-Requested-At', formatInstant(question.at), answer.requestedAt],
  ]
  const wrong = headers.filter(([, value, actual]) => actual !== value && (actual !== null || required))
  return wrong.map(([name, value, actual]) =>
    finding(
      'identity_mismatch',
      selectionPath(question),
      `${name} ${value}`,
      `${name} ${actual ?? 'absent'}`,
      expected.publicationId,
    ),
  )
}

function missing(question: SelectionQuery, expected: Manifest, answer: PublishedResponse): Finding {
  const actual = describeRefusal(answer)
  if (question.held.length > 0) return otherSelection(question, actual)
  const { publicationId, sha256 } = expected
  return finding('object_missing', objectPath(sha256), sha256, actual, publicationId)
}

/** Another publication than the one that was current at that time. */
function otherSelection(question: SelectionQuery, actual: string | null): Finding {
  const { sha256 = null, publicationId = null } = question.expected ?? {}
  return finding('chain_broken', selectionPath(question), sha256, actual, publicationId)
}

function unreadable(question: SelectionQuery, actual: string): Finding {
  const { expected } = question
  if (expected === null) return finding('object_unreadable', selectionPath(question), null, actual)
  const { sha256, publicationId } = expected
  return finding('object_unreadable', objectPath(sha256), sha256, actual, publicationId)
}

function selectionPath({ at }: SelectionQuery): string {
  return `selection at ${timeOf(at)}`
}

function describeRefusal({ status, error }: PublishedResponse): string {
  return error === null ? String(status) : `${status} ${error}`
}
