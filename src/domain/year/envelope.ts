import { sha256Hex } from '../digest.ts'
import { discussionUrl } from '../feed/source.ts'
import { storageDamaged } from '../storage.ts'
import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import { examineDigest, examineIdentity, parseEnvelope } from './identity.ts'
import type { ObjectProblem } from './identity.ts'
import type { Manifest } from './ledger.ts'
import type { RankedEvent, RankedYear } from './rank.ts'
import { yearEnvelopeSchema } from './schema.ts'
import type { Coverage, YearEnvelope, YearFeed, YearItem } from './schema.ts'
import type { YearWindow } from './window.ts'

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
