import { sha256Hex } from '../digest.ts'
import { discussionUrl } from '../feed/source.ts'
import { storageDamaged } from '../refusal.ts'
import { formatInstant, parseInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import type { Manifest, YearWindow } from './ledger.ts'
import type { RankedEvent, RankedYear } from './rank.ts'
import { yearEnvelopeSchema } from './schema.ts'
import type { Coverage, YearEnvelope, YearFeed, YearItem } from './schema.ts'

const ALGORITHM_VERSION = 'top-year-v3'
const SCHEMA_VERSION = 3
const ENVELOPE_KIND = 'top-year-publication'

/** Most bytes of a publication made here; older and imported ones keep the bound of every object. */
const PUBLICATION_MAX_BYTES = 8 * 1024 * 1024

/** The sealed bytes exceed the bound of a publication made here. */
export class PublicationTooLarge extends Error {
  override readonly name = 'PublicationTooLarge'
}

/** A publication ready to be stored: its exact bytes and the manifest that names them. */
export interface SealedYear {
  manifest: Manifest
  bytes: Uint8Array
  envelope: YearEnvelope
}

/**
 * The publication's bytes (docs/ranking.md): UTF-8 JSON, keys in the contract's order, no indentation, no
 * trailing newline. The same arguments give the same bytes.
 *
 * @param generatedAt when the ranking was made
 * @param publishedAt becomes `archivedAt`; the ledger's publication time
 * @throws ZodError when the ranked items do not form a valid version-3 payload, PublicationTooLarge when it has more than
 *   8 MiB; nothing is sealed then
 */
export function sealYear(
  window: YearWindow,
  ranked: RankedYear,
  coverage: Coverage,
  generatedAt: Instant,
  publishedAt: Instant,
): SealedYear {
  const envelope: YearEnvelope = {
    schemaVersion: SCHEMA_VERSION,
    kind: ENVELOPE_KIND,
    publicationId: `${ALGORITHM_VERSION}-${window.asOfDay}`,
    algorithmVersion: ALGORITHM_VERSION,
    asOfDay: window.asOfDay,
    generatedAt: formatInstant(generatedAt),
    windowStart: formatInstant(window.windowStart),
    windowEnd: formatInstant(window.windowEnd),
    coverage,
    feed: feedOf(ranked),
    archivedAt: formatInstant(publishedAt),
  }
  yearEnvelopeSchema.parse(envelope)
  const bytes = new TextEncoder().encode(JSON.stringify(envelope))
  if (bytes.byteLength > PUBLICATION_MAX_BYTES) {
    const allowed = `at most ${PUBLICATION_MAX_BYTES} are allowed`
    throw new PublicationTooLarge(`the publication has ${bytes.byteLength} bytes, ${allowed}`)
  }
  const manifest: Manifest = {
    publicationId: envelope.publicationId,
    algorithmVersion: envelope.algorithmVersion,
    schemaVersion: envelope.schemaVersion,
    kind: envelope.kind,
    asOfDay: envelope.asOfDay,
    windowStart: window.windowStart,
    windowEnd: window.windowEnd,
    generatedAt,
    publishedAt,
    sha256: sha256Hex(bytes),
    byteSize: bytes.byteLength,
  }
  return { manifest, bytes, envelope }
}

/**
 * Proves stored bytes to be the publication a manifest names (docs/history-api.md): digest, size, and
 * every identity field of the envelope; for version 3 also the whole payload's schema, title evidence included.
 *
 * @param bytes as the object store returned them, or null when the object is absent
 * @returns the same bytes, to be served as they are
 * @throws Refusal `storage_damaged` naming what differs
 */
export function proveBytes(manifest: Manifest, bytes: Uint8Array | null): Uint8Array {
  const where = `object ${manifest.sha256} of ${manifest.publicationId}`
  if (bytes === null) throw storageDamaged(`${where} is absent`)
  const [problem] = examineWhole(manifest, bytes)
  if (problem) throw storageDamaged(`${where} ${problem.what}`)
  return bytes
}

/** Everything that {@link proveBytes} proves, as a list of what does not hold. */
export function examineWhole(manifest: Manifest, bytes: Uint8Array): ObjectProblem[] {
  const changed = examineDigest(manifest, bytes)
  if (changed.length > 0) return changed
  const parsed = parseEnvelope(bytes)
  if ('problem' in parsed) return [parsed.problem]
  const problems = examineIdentity(manifest, parsed.members)
  if (manifest.algorithmVersion !== ALGORITHM_VERSION) return problems
  const checked = yearEnvelopeSchema.safeParse(parsed.members)
  if (checked.success) return problems
  const [issue] = checked.error.issues
  return [
    ...problems,
    {
      code: 'envelope_invalid',
      what: `is not a valid ${ALGORITHM_VERSION} payload`,
      expected: `a valid ${ALGORITHM_VERSION} payload`,
      actual: issue ? `${issue.path.join('.')}: ${issue.message}` : null,
    },
  ]
}

/** Items in each list of a feed, by feed key: what a publish report shows. */
export function countItems(feed: YearFeed): Record<string, number> {
  return {
    hackerNews: feed.hackerNews.length,
    lobsters: feed.lobsters.length,
    lessWrong: feed.lessWrong.length,
    hypeReplicate: feed.hypeReplicate.length,
    popular: feed.popular.length,
    midjourney: feed.midjourney.length,
    github: feed.github.items.length,
  }
}

/** Items of a feed, each once in however many lists it stands. */
export function countDistinctItems({ github, virality: _virality, ...lists }: YearFeed): number {
  return new Set([...Object.values(lists), github.items].flat().map(({ key }) => key)).size
}

function feedOf(ranked: RankedYear): YearFeed {
  const { columns, hype, popular, midjourney } = ranked
  const shown = [columns.hn, columns.lobsters, columns.lesswrong, hype, popular].flat()
  return {
    hackerNews: columns.hn.map(itemOf),
    lobsters: columns.lobsters.map(itemOf),
    lessWrong: columns.lesswrong.map(itemOf),
    hypeReplicate: hype.map(itemOf),
    popular: popular.map(itemOf),
    midjourney: midjourney.map(itemOf),
    github: { status: 'collecting', items: [] },
    virality: Object.fromEntries(
      shown.map(({ key, percentile }) => [key, Math.round(percentile * 10_000) / 100]),
    ),
  }
}

function itemOf({ event, key, provider, rank, percentile, title }: RankedEvent): YearItem {
  return {
    key,
    source: event.source,
    ...(provider === null ? {} : { provider }),
    sourceId: event.sourceId,
    rank,
    title: title.title,
    url: event.url,
    discussionUrl: discussionUrl(event.source, event.sourceId),
    points: event.points,
    comments: event.comments,
    publishedAt: formatInstant(event.publishedAt),
    percentile,
    event_title_verified: true,
    title_provenance: title.provenance,
  }
}

/** One way in which stored bytes are not the publication that a manifest names. */
export interface ObjectProblem {
  code: 'size_mismatch' | 'digest_mismatch' | 'envelope_invalid' | 'identity_mismatch'
  /** What differs, as the end of a sentence that begins with the object. */
  what: string
  expected: string | number | null
  actual: string | number | null
}

/** Members of an envelope by name, as parsed. */
type EnvelopeMembers = Readonly<Record<string, unknown>>

/** What can be told of stored bytes before it is known which publication they should be. */
export interface SeenBytes {
  byteSize: number
  /** Their digest, 64 lower-case hex digits. */
  sha256: string
  /** The identity by the two ends of the text, as {@link identityOf} writes it; null when only the whole text can tell. */
  identity: string | null
}

/** Size and digest of stored bytes against their manifest; none when they are the bytes that were sealed. */
function examineDigest(manifest: Manifest, bytes: Uint8Array): ObjectProblem[] {
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
function examineIdentity(manifest: Manifest, envelope: EnvelopeMembers): ObjectProblem[] {
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
function parseEnvelope(bytes: Uint8Array): { members: EnvelopeMembers } | { problem: ObjectProblem } {
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
