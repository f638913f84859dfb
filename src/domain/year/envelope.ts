import { sha256Hex } from '../digest.ts'
import { listedItem } from '../feed/columns.ts'
import { storageDamaged } from '../refusal.ts'
import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import { examineDigest, examineIdentity, parseEnvelope } from './examine.ts'
import type { ObjectProblem } from './examine.ts'
import type { Manifest, YearWindow } from './ledger.ts'
import type { RankedEvent, RankedYear } from './rank.ts'
import { yearEnvelopeSchema } from './schema.ts'
import type { Coverage, YearEnvelope, YearFeed, YearItem } from './schema.ts'

/** Version of the publications made here; only its layout is parsed. */
export const ALGORITHM_VERSION = 'top-year-v3'
const SCHEMA_VERSION = 3
const ENVELOPE_KIND = 'top-year-publication'

/** Largest publication made here; older and imported ones have the limit of every object. */
const PUBLICATION_MAX_BYTES = 8 * 1024 * 1024

/** The sealed bytes exceed the limit of a publication made here. */
export class PublicationTooLarge extends Error {
  override readonly name = 'PublicationTooLarge'
}

/** A sealed publication: its exact bytes and their manifest. */
export interface SealedYear {
  manifest: Manifest
  bytes: Uint8Array
  envelope: YearEnvelope
}

/**
 * Returns the function that seals a ranked window at its publication time. It gives the publication's bytes
 * (docs/ranking.md): UTF-8 JSON, keys in the contract's order, no indentation, no trailing newline. The same arguments
 * give the same bytes.
 *
 * @param generatedAt when the ranking was made
 * @returns from `publishedAt`, which becomes `archivedAt`: the ledger's publication time
 * @throws ZodError when the ranked items do not form a valid version-3 payload, PublicationTooLarge when it has more than
 *   8 MiB: before there is a function to seal it
 */
export function yearSealer(
  { asOfDay, windowStart, windowEnd }: YearWindow,
  ranked: RankedYear,
  coverage: Coverage,
  generatedAt: Instant,
): (publishedAt: Instant) => SealedYear {
  const identity = {
    schemaVersion: SCHEMA_VERSION,
    kind: ENVELOPE_KIND,
    publicationId: `${ALGORITHM_VERSION}-${asOfDay}`,
    algorithmVersion: ALGORITHM_VERSION,
    asOfDay,
  } as const
  const ranking = {
    ...identity,
    generatedAt: formatInstant(generatedAt),
    windowStart: formatInstant(windowStart),
    windowEnd: formatInstant(windowEnd),
    coverage,
    feed: feedOf(ranked),
  }
  const seal = (publishedAt: Instant): SealedYear => {
    const envelope = { ...ranking, archivedAt: formatInstant(publishedAt) }
    const bytes = new TextEncoder().encode(JSON.stringify(envelope))
    const instants = { windowStart, windowEnd, generatedAt, publishedAt }
    const manifest = { ...identity, ...instants, sha256: sha256Hex(bytes), byteSize: bytes.byteLength }
    return { manifest, bytes, envelope }
  }
  // Every time of publication has the same length, and is as valid as this one.
  const { envelope, bytes } = seal(generatedAt)
  yearEnvelopeSchema.parse(envelope)
  if (bytes.byteLength > PUBLICATION_MAX_BYTES) {
    const allowed = `the maximum is ${PUBLICATION_MAX_BYTES}`
    throw new PublicationTooLarge(`the publication has ${bytes.byteLength} bytes; ${allowed}`)
  }
  return seal
}

/**
 * Proves stored bytes to be the publication a manifest names (docs/api.md): digest, size, and
 * every identity field of the envelope; for version 3 also the whole payload's schema, title evidence included.
 *
 * @param bytes as the object store returned them, or null when the object is absent
 * @returns the same bytes, to be served as they are
 * @throws Refusal `storage_damaged` naming what differs
 */
export function proveBytes(manifest: Manifest, bytes: Uint8Array | null): Uint8Array {
  const object = `object ${manifest.sha256} of ${manifest.publicationId}`
  if (bytes === null) throw storageDamaged(`${object} is missing`)
  const [problem] = examineWhole(manifest, bytes)
  if (problem) throw storageDamaged(`${object} ${problem.difference}`)
  return bytes
}

/** Checks everything that {@link proveBytes} proves, and lists the problems. */
export function examineWhole(manifest: Manifest, bytes: Uint8Array): ObjectProblem[] {
  const changed = examineDigest(manifest, { byteSize: bytes.byteLength, sha256: sha256Hex(bytes) })
  if (changed.length > 0) return changed
  const parsed = parseEnvelope(bytes)
  if ('problem' in parsed) return [parsed.problem]
  const problems = examineIdentity(manifest, parsed.members)
  if (manifest.algorithmVersion !== ALGORITHM_VERSION) return problems
  const [issue] = yearEnvelopeSchema.safeParse(parsed.members).error?.issues ?? []
  if (!issue) return problems
  const valid = `a valid ${ALGORITHM_VERSION} payload`
  const actual = `${issue.path.join('.')}: ${issue.message}`
  return [...problems, { code: 'envelope_invalid', difference: `is not ${valid}`, expected: valid, actual }]
}

export function countItems({ virality: _virality, github, ...lists }: YearFeed): Record<string, number> {
  const counted = Object.entries({ ...lists, github: github.items })
  return Object.fromEntries(counted.map(([name, items]) => [name, items.length]))
}

export function countDistinctItems({ github, virality: _virality, ...lists }: YearFeed): number {
  return new Set([...Object.values(lists), github.items].flat().map(({ key }) => key)).size
}

function feedOf(ranked: RankedYear): YearFeed {
  const { columns, hype, popular, midjourney } = ranked
  const listedItems = [columns.hn, columns.lobsters, columns.lesswrong, hype, popular].flat()
  return {
    hackerNews: columns.hn.map(itemOf),
    lobsters: columns.lobsters.map(itemOf),
    lessWrong: columns.lesswrong.map(itemOf),
    hypeReplicate: hype.map(itemOf),
    popular: popular.map(itemOf),
    midjourney: midjourney.map(itemOf),
    github: { status: 'collecting', items: [] },
    virality: Object.fromEntries(
      listedItems.map(({ key, percentile }) => [key, Math.round(percentile * 10_000) / 100]),
    ),
  }
}

function itemOf(ranked: RankedEvent): YearItem {
  const { title, provenance } = ranked.title
  return {
    ...listedItem(ranked, ranked.rank, title),
    event_title_verified: true,
    title_provenance: provenance,
  }
}
