import { sha256Hex } from '../digest.ts'
import { parseInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import type { Manifest } from './ledger.ts'

/** One way in which stored bytes are not the publication that a manifest names. */
export interface ObjectProblem {
  code: 'size_mismatch' | 'digest_mismatch' | 'envelope_invalid' | 'identity_mismatch'
  /** What differs, as the end of a sentence that begins with the object. */
  what: string
  expected: string | number | null
  actual: string | number | null
}

/** Members of an envelope by name, as parsed. */
export type EnvelopeMembers = Readonly<Record<string, unknown>>

/** What can be told of stored bytes before it is known which publication they should be. */
export interface SeenBytes {
  byteSize: number
  /** Their digest, 64 lower-case hex digits. */
  sha256: string
  /** The identity by the two ends of the text, as {@link identityOf} writes it; null when only the whole text can tell. */
  identity: string | null
}

/** Size and digest of stored bytes against their manifest; none when they are the bytes that were sealed. */
export function examineDigest(manifest: Manifest, bytes: Uint8Array): ObjectProblem[] {
  return compareDigest(manifest, bytes.byteLength, sha256Hex(bytes))
}

function compareDigest(manifest: Manifest, byteSize: number, sha256: string): ObjectProblem[] {
  const problems: ObjectProblem[] = []
  if (byteSize !== manifest.byteSize) {
    problems.push({
      code: 'size_mismatch',
      what: `has ${byteSize} bytes instead of ${manifest.byteSize}`,
      expected: manifest.byteSize,
      actual: byteSize,
    })
  }
  if (sha256 !== manifest.sha256) {
    problems.push({
      code: 'digest_mismatch',
      what: 'does not match its digest',
      expected: manifest.sha256,
      actual: sha256,
    })
  }
  return problems
}

/** Every identity field of an envelope against its manifest (docs/history-api.md). */
export function examineIdentity(manifest: Manifest, envelope: EnvelopeMembers): ObjectProblem[] {
  const differing = (field: string, expected: string | number): ObjectProblem => ({
    code: 'identity_mismatch',
    what: `names another ${field} than its manifest`,
    expected: `${field} ${expected}`,
    actual: `${field} ${describeMember(envelope[field])}`,
  })
  const values = {
    schemaVersion: manifest.schemaVersion,
    kind: manifest.kind,
    publicationId: manifest.publicationId,
    algorithmVersion: manifest.algorithmVersion,
    asOfDay: manifest.asOfDay,
  }
  const instants = {
    generatedAt: manifest.generatedAt,
    windowStart: manifest.windowStart,
    windowEnd: manifest.windowEnd,
    archivedAt: manifest.publishedAt,
  }
  return [
    ...Object.entries(values).flatMap(([field, value]) =>
      envelope[field] === value ? [] : [differing(field, value)],
    ),
    ...Object.entries(instants).flatMap(([field, instant]) => {
      const text = envelope[field]
      const same = typeof text === 'string' && parseInstant(text) === instant
      return same ? [] : [differing(field, instant)]
    }),
  ]
}

/**
 * Stored bytes against their manifest: size, digest and identity, at little more than the cost of the digest. What lies
 * inside `coverage` and `feed` is not looked at: the digest says that it is what was sealed
 * (docs/decisions/0012-what-an-audit-reads.md).
 */
export function examineBytes(manifest: Manifest, bytes: Uint8Array): ObjectProblem[] {
  return examineSeen(manifest, seeBytes(bytes)) ?? examineMembers(manifest, bytes)
}

/** The identity by the whole text, where {@link examineSeen} cannot tell it. */
export function examineMembers(manifest: Manifest, bytes: Uint8Array): ObjectProblem[] {
  const parsed = parseEnvelope(bytes)
  return 'problem' in parsed ? [parsed.problem] : examineIdentity(manifest, parsed.members)
}

/** The part of {@link examineBytes} that needs no manifest. */
export function seeBytes(bytes: Uint8Array): SeenBytes {
  const ends = { first: bytes.subarray(0, ENDS_BYTES.first), last: bytes.subarray(-ENDS_BYTES.last) }
  return { byteSize: bytes.byteLength, sha256: sha256Hex(bytes), identity: readIdentity(ends) }
}

/**
 * The part of {@link examineBytes} that needs no bytes.
 *
 * @returns null when only the whole text can tell
 */
export function examineSeen(manifest: Manifest, seen: SeenBytes): ObjectProblem[] | null {
  const problems = compareDigest(manifest, seen.byteSize, seen.sha256)
  if (problems.length > 0) return problems
  // Between the two ends a member may stand a second time, and then the last one counts.
  return seen.identity === identityOf(manifest) ? [] : null
}

/**
 * The members of an envelope, from the whole text.
 *
 * @returns the problem when the bytes are not a JSON object in UTF-8
 */
export function parseEnvelope(bytes: Uint8Array): { members: EnvelopeMembers } | { problem: ObjectProblem } {
  const invalid = (what: string): { problem: ObjectProblem } => ({
    problem: { code: 'envelope_invalid', what, expected: 'a JSON object', actual: null },
  })
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return invalid('is not UTF-8 JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return invalid('is not a JSON object')
  return { members: value as EnvelopeMembers }
}

/** The fields of {@link examineIdentity} in one text: two are equal when none of them differs. */
function identityOf(manifest: Manifest): string {
  return JSON.stringify([
    manifest.schemaVersion,
    manifest.kind,
    manifest.publicationId,
    manifest.algorithmVersion,
    manifest.asOfDay,
    manifest.generatedAt,
    manifest.windowStart,
    manifest.windowEnd,
    manifest.publishedAt,
  ])
}

/** Bytes of each end of an envelope that {@link readIdentity} looks at. */
export const ENDS_BYTES = { first: 1024, last: 128 }

const ascii = new TextDecoder('latin1')

/** The leading members whose values are plain texts or numbers, each with the comma that follows it. */
const LEADING_MEMBERS =
  /^[\t\n\r ]*\{((?:[\t\n\r ]*"[A-Za-z]+"[\t\n\r ]*:[\t\n\r ]*(?:"[\x20\x21\x23-\x5b\x5d-\x7e]*"|-?(?:0|[1-9]\d*)(?:\.\d+)?)[\t\n\r ]*,)+)/

/** The last member of an object, after one whose value is an object. */
const LAST_MEMBER =
  /\}[\t\n\r ]*,[\t\n\r ]*"archivedAt"[\t\n\r ]*:[\t\n\r ]*("[\x20\x21\x23-\x5b\x5d-\x7e]*")[\t\n\r ]*\}[\t\n\r ]*$/

/**
 * The identity of an envelope from its two ends, when it is laid out as the contract lists its members: the scalar ones
 * first, `archivedAt` last, and nothing escaped. null when it is not, and then the whole text must be parsed. Of a name
 * that stands twice at an end the last one counts, as in the whole text.
 */
export function readIdentity(ends: { first: Uint8Array; last: Uint8Array }): string | null {
  const leading = LEADING_MEMBERS.exec(ascii.decode(ends.first))?.[1]
  const last = LAST_MEMBER.exec(ascii.decode(ends.last))?.[1]
  if (leading === undefined || last === undefined) return null
  const members = JSON.parse(`{${leading}"archivedAt":${last}}`) as EnvelopeMembers
  return JSON.stringify([
    members['schemaVersion'],
    members['kind'],
    members['publicationId'],
    members['algorithmVersion'],
    members['asOfDay'],
    instantOf(members['generatedAt']),
    instantOf(members['windowStart']),
    instantOf(members['windowEnd']),
    instantOf(members['archivedAt']),
  ])
}

function instantOf(member: unknown): Instant | null {
  return typeof member === 'string' ? parseInstant(member) : null
}

function describeMember(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value).slice(0, 200)
}
