import { sha256Hex } from '../digest.ts'
import { asJsonObject, parseJsonBytes } from '../json.ts'
import { parseInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import { finding } from './finding.ts'
import type { Finding } from './finding.ts'
import type { Manifest } from './ledger.ts'

/**
 * Examination of stored bytes against their manifest: size, digest and identity, at little more than the cost of the
 * digest. It does not parse `coverage` and `feed`, which the digest covers (docs/decisions/0012-archive-audit.md). The
 * whole payload: {@link file://./envelope.ts}.
 */

/** A difference between stored bytes and their manifest. */
export interface ObjectProblem {
  code: 'size_mismatch' | 'digest_mismatch' | 'envelope_invalid' | 'identity_mismatch'
  /** The difference as a predicate: the sentence starts with the object. */
  difference: string
  expected: string | number | null
  actual: string | number | null
}

/** Facts about stored bytes that need no manifest. */
export interface BytesSummary {
  byteSize: number
  /** Digest of the bytes, 64 lower-case hex digits. */
  sha256: string
  /** The identity from both ends of the text; null when the whole text must be parsed. */
  identity: string | null
}

/** Result of reading and examining one object. */
export type ObjectOutcome = { found: 'bytes'; byteSize: number; problems: ObjectProblem[] } | NoBytes

/** Result of reading one object without its manifest. */
export type ReadObject = ({ found: 'bytes' } & BytesSummary) | NoBytes

/** Result of reading a file. */
export type ReadFile = { found: 'bytes'; bytes: Uint8Array } | NoBytes

/** Reason for missing bytes; `why` begins with `READ_ERROR` when the store failed, not the object. */
export type NoBytes = { found: 'nothing' } | { found: 'something else'; why: string }

/** Key of an object in the store. */
export function objectPath(sha256: string): string {
  return `sha256/${sha256.slice(0, 2)}/${sha256}`
}

/** Findings of an examined object; empty when it is intact. */
export function objectFindings({ publicationId, sha256 }: Manifest, outcome: ObjectOutcome): Finding[] {
  const path = objectPath(sha256)
  switch (outcome.found) {
    case 'bytes':
      return outcome.problems.map(({ code, expected, actual }) =>
        finding(code, path, expected, actual, publicationId),
      )
    case 'nothing':
      return [finding('object_missing', path, sha256, null, publicationId)]
    case 'something else':
      return [finding('object_unreadable', path, sha256, outcome.why, publicationId)]
  }
}

/** Examines size, digest and identity; empty when the bytes are intact. */
export function examineBytes(manifest: Manifest, bytes: Uint8Array): ObjectProblem[] {
  return examineSummary(manifest, summarizeBytes(bytes)) ?? examineMembers(manifest, bytes)
}

/** The part of {@link examineBytes} that needs no manifest. */
export function summarizeBytes(bytes: Uint8Array): BytesSummary {
  return { byteSize: bytes.byteLength, sha256: sha256Hex(bytes), identity: readIdentity(bytes) }
}

/**
 * The part of {@link examineBytes} that needs no bytes.
 *
 * @returns null when the whole text must be parsed, because a member may be repeated between the two ends, and the last
 *   one counts
 */
export function examineSummary(manifest: Manifest, summary: BytesSummary): ObjectProblem[] | null {
  const problems = examineDigest(manifest, summary)
  if (problems.length > 0) return problems
  return summary.identity === identityText(identityOf(manifest)) ? [] : null
}

export function examineDigest(
  manifest: Manifest,
  { byteSize, sha256 }: Pick<BytesSummary, 'byteSize' | 'sha256'>,
): ObjectProblem[] {
  const problems: ObjectProblem[] = []
  if (byteSize !== manifest.byteSize) {
    const difference = `has ${byteSize} bytes instead of ${manifest.byteSize}`
    problems.push({ code: 'size_mismatch', difference, expected: manifest.byteSize, actual: byteSize })
  }
  if (sha256 !== manifest.sha256) {
    const difference = 'does not match its digest'
    problems.push({ code: 'digest_mismatch', difference, expected: manifest.sha256, actual: sha256 })
  }
  return problems
}

/** Examines the identity by parsing the whole text, when {@link examineSummary} cannot decide. */
export function examineMembers(manifest: Manifest, bytes: Uint8Array): ObjectProblem[] {
  const parsed = parseEnvelope(bytes)
  return 'problem' in parsed ? [parsed.problem] : examineIdentity(manifest, parsed.members)
}

/** Members of an envelope by name, as parsed. */
type EnvelopeMembers = Readonly<Record<string, unknown>>

/**
 * Parses the members of an envelope.
 *
 * @returns the problem when the bytes are not a JSON object in UTF-8
 */
export function parseEnvelope(bytes: Uint8Array): { members: EnvelopeMembers } | { problem: ObjectProblem } {
  const invalid = (difference: string): { problem: ObjectProblem } => ({
    problem: { code: 'envelope_invalid', difference, expected: 'a JSON object', actual: null },
  })
  const value = parseJsonBytes(bytes)
  if (value === undefined) return invalid('is not UTF-8 JSON')
  const members = asJsonObject(value)
  return members === null ? invalid('is not a JSON object') : { members }
}

/** Examines every identity field of an envelope (docs/api.md). */
export function examineIdentity(manifest: Manifest, members: EnvelopeMembers): ObjectProblem[] {
  const actual = identityIn(members)
  return Object.entries(identityOf(manifest)).flatMap(([field, expected]): ObjectProblem[] => {
    if (actual[field] === expected) return []
    const found = members[field] === undefined ? 'absent' : JSON.stringify(members[field]).slice(0, 200)
    return [
      {
        code: 'identity_mismatch',
        difference: `has a different ${field} than its manifest`,
        expected: `${field} ${expected}`,
        actual: `${field} ${found}`,
      },
    ]
  })
}

/** Members of an envelope that repeat its manifest, in their order: texts and numbers, then instants. */
const IDENTITY_VALUES = ['schemaVersion', 'kind', 'publicationId', 'algorithmVersion', 'asOfDay'] as const
const IDENTITY_INSTANTS = ['generatedAt', 'windowStart', 'windowEnd', 'archivedAt'] as const

function identityOf(manifest: Manifest): Record<string, string | number> {
  const members = { ...manifest, archivedAt: manifest.publishedAt }
  return Object.fromEntries([...IDENTITY_VALUES, ...IDENTITY_INSTANTS].map((name) => [name, members[name]]))
}

/** The same members as {@link identityOf}, from the envelope. */
function identityIn(members: EnvelopeMembers): Record<string, unknown> {
  return Object.fromEntries([
    ...IDENTITY_VALUES.map((name) => [name, members[name]]),
    ...IDENTITY_INSTANTS.map((name) => [name, instantOf(members[name])]),
  ])
}

function instantOf(member: unknown): Instant | null {
  return typeof member === 'string' ? parseInstant(member) : null
}

function identityText(identity: Record<string, unknown>): string {
  return JSON.stringify(Object.values(identity))
}

/** Bytes that {@link readIdentity} reads at each end of an envelope. */
const ENDS_BYTES = { first: 1024, last: 128 }

const ascii = new TextDecoder('latin1')

/** The leading members with plain texts or numbers, each with its comma. */
const LEADING_MEMBERS =
  /^[\t\n\r ]*\{((?:[\t\n\r ]*"[A-Za-z]+"[\t\n\r ]*:[\t\n\r ]*(?:"[\x20\x21\x23-\x5b\x5d-\x7e]*"|-?(?:0|[1-9]\d*)(?:\.\d+)?)[\t\n\r ]*,)+)/

/** The last member, after one whose value is an object. */
const LAST_MEMBER =
  /\}[\t\n\r ]*,[\t\n\r ]*"archivedAt"[\t\n\r ]*:[\t\n\r ]*("[\x20\x21\x23-\x5b\x5d-\x7e]*")[\t\n\r ]*\}[\t\n\r ]*$/

/**
 * Reads the identity of an envelope from its two ends, when its members are in the order of the contract: scalar ones
 * first, `archivedAt` last, nothing escaped. null otherwise; the whole text must be parsed then. Of a repeated name at
 * one end the last one counts.
 */
function readIdentity(bytes: Uint8Array): string | null {
  const leading = LEADING_MEMBERS.exec(ascii.decode(bytes.subarray(0, ENDS_BYTES.first)))?.[1]
  const last = LAST_MEMBER.exec(ascii.decode(bytes.subarray(-ENDS_BYTES.last)))?.[1]
  if (leading === undefined || last === undefined) return null
  return identityText(identityIn(JSON.parse(`{${leading}"archivedAt":${last}}`) as EnvelopeMembers))
}
