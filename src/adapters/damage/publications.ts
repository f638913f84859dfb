import { sha256Hex } from '../../domain/digest.ts'
import { addDays, DAY_MS, formatInstant, startOfDay } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { coverageOf } from '../../domain/year/coverage.ts'
import { sealYear } from '../../domain/year/envelope.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { rankYear } from '../../domain/year/rank.ts'
import type { YearEvent } from '../../domain/year/rank.ts'
import { windowEnding } from '../../domain/year/window.ts'

/** A publication of the sample: the bytes of its object and the manifest that names them. */
export interface Publication {
  manifest: Manifest
  bytes: Uint8Array
}

/** Every publication of the sample is made this long after the midnight that ends its day. */
const PUBLISHED_AFTER_MS = 600_000

/** A small publication of today's version, valid down to its last item. */
export function ownPublication(asOfDay: Day, title: string): Publication {
  const window = windowEnding(asOfDay)
  const events = ['hn', 'lobsters', 'lesswrong'].flatMap((source) =>
    [1, 2].map((number): YearEvent => ({
      source,
      sourceId: `${source}${number}`,
      title: `${title} ${number} of ${source}`,
      url: `https://example.org/${source}/${number}`,
      points: 10 * number,
      comments: number,
      publishedAt: window.windowEnd - number * DAY_MS,
      titleProvenance: `${source}:self-test`,
    })),
  )
  const ranked = rankYear(events, new Map())
  if (ranked.do !== 'ranked') throw new Error('the sample asks for titles')
  const publishedAt = publishedAtOf(asOfDay)
  const coverage = coverageOf(window, [], ranked.year)
  const { manifest, bytes } = sealYear(window, ranked.year, coverage, publishedAt - 1, publishedAt)
  return { manifest, bytes }
}

/** A publication of version 1 or 2, as another writer laid it out. */
export function olderPublication(version: 1 | 2, asOfDay: Day): Publication {
  const { windowStart, windowEnd } = windowEnding(asOfDay)
  const algorithmVersion = `top-year-v${version}`
  const publishedAt = publishedAtOf(asOfDay)
  const envelope = {
    schemaVersion: version,
    kind: 'top-year-publication',
    publicationId: `${algorithmVersion}-${asOfDay}`,
    algorithmVersion,
    asOfDay,
    generatedAt: formatInstant(publishedAt - 1),
    windowStart: formatInstant(windowStart),
    windowEnd: formatInstant(windowEnd),
    coverage: { targetDays: 365 },
    feed: { popular: [{ title: `of version ${version} on ${asOfDay}` }] },
    archivedAt: formatInstant(publishedAt),
  }
  const bytes = new TextEncoder().encode(`${JSON.stringify(envelope)}\n`)
  const { publicationId, schemaVersion, kind } = envelope
  const instants = { windowStart, windowEnd, generatedAt: publishedAt - 1, publishedAt }
  const identity = { publicationId, algorithmVersion, schemaVersion, kind, asOfDay, ...instants }
  return { manifest: { ...identity, sha256: sha256Hex(bytes), byteSize: bytes.byteLength }, bytes }
}

export function publishedAtOf(asOfDay: Day): Instant {
  return startOfDay(addDays(asOfDay, 1)) + PUBLISHED_AFTER_MS
}

/** The same publication with other bytes, named by its manifest as if they had always been its own. */
export function withText(publication: Publication, change: (text: string) => string): Publication {
  const bytes = new TextEncoder().encode(change(new TextDecoder().decode(publication.bytes)))
  const identity = { sha256: sha256Hex(bytes), byteSize: bytes.byteLength }
  return { manifest: { ...publication.manifest, ...identity }, bytes }
}
