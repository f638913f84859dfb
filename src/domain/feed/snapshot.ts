import { sha256Hex } from '../digest.ts'
import { COLUMN_NAMES } from './columns.ts'
import { Refusal, OBJECT_MAX_BYTES, storageDamaged } from '../refusal.ts'
import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import { LIVE_VERSION, listsOf, liveFeedSchema } from './live-items.ts'
import type { Details, LiveFeed } from './live-items.ts'
import type { LiveSort, RankedPeriods } from './live-sort.ts'

type SnapshotRefusal = 'snapshot_too_large'

export interface SnapshotFeed {
  sort: LiveSort
  /** Digest of the payload's bytes. */
  sha256: string
  byteSize: number
}

/** A snapshot of the live periods: id, time, and digests of its payloads. */
export interface Snapshot {
  /** `feed-<instant>-<first 8 hex digits of the digest of its lists>`; sorts by time. */
  id: string
  generatedAt: Instant
  feeds: readonly SnapshotFeed[]
}

/** A snapshot ready to be stored. */
export interface SealedSnapshot {
  snapshot: Snapshot
  /** The bytes of each feed as served. */
  payloads: ReadonlyMap<LiveSort, Uint8Array>
  feeds: readonly LiveFeed[]
}

/**
 * The result of saving a snapshot: the number of removed ones, or the newest one when it is not earlier. Its
 * `generatedAt` is null when the stored time is damaged.
 */
export type SnapshotSaving =
  { saved: true; removed: number } | { saved: false; newest: { id: string; generatedAt: Instant | null } }

/**
 * Seals a snapshot: UTF-8 JSON without indentation. The same arguments give the same bytes.
 *
 * @param previous feeds of the snapshot before, from which the stays of items follow; none if it is not known
 * @throws ZodError when an item does not fit its schema, Refusal `snapshot_too_large` when a feed is larger than what
 *   is read back; nothing is sealed then
 */
export function sealSnapshot(
  ranked: RankedPeriods,
  details: Details,
  generatedAt: Instant,
  previous: readonly LiveFeed[] = [],
): SealedSnapshot {
  const lists = ranked.map(([sort, period]) => {
    const before = previous.find(({ sortMode }) => sortMode === sort)
    return { sort, inSort: listsOf(period, details, staysAfter(before, generatedAt)) }
  })
  const id = `${idStart(generatedAt)}${sha256Hex(JSON.stringify(lists)).slice(0, 8)}`
  const run = { generatedAt: formatInstant(generatedAt), algoVersion: LIVE_VERSION } as const
  const feeds = lists.map(({ sort, inSort }): LiveFeed => ({
    ...run,
    sortMode: sort,
    snapshotId: id,
    ...inSort,
  }))
  for (const feed of feeds) liveFeedSchema.parse(feed)
  const payloads = new Map(
    feeds.map((feed) => [feed.sortMode, new TextEncoder().encode(JSON.stringify(feed))] as const),
  )
  const described = [...payloads].map(([sort, bytes]) => {
    if (bytes.byteLength > OBJECT_MAX_BYTES) throw tooLarge(sort, bytes.byteLength)
    return { sort, sha256: sha256Hex(bytes), byteSize: bytes.byteLength }
  })
  return { snapshot: { id, generatedAt, feeds: described }, payloads, feeds }
}

/** The start of an item's stay in the lists of a feed, by its save key. @param before the same feed of the snapshot before */
function staysAfter(before: LiveFeed | undefined, generatedAt: Instant): (key: string) => string | null {
  if (before === undefined) return () => null
  const stays = new Map(
    COLUMN_NAMES.flatMap((name) => before[name]).map(({ key, listedSince }) => [key, listedSince]),
  )
  const now = formatInstant(generatedAt)
  return (key) => (stays.has(key) ? (stays.get(key) ?? null) : now)
}

function tooLarge(sort: LiveSort, byteSize: number): Refusal<SnapshotRefusal> {
  const sizes = `the feed ${sort} would have ${byteSize} bytes; the maximum is ${OBJECT_MAX_BYTES}`
  const remedy = 'import shorter titles and URLs for the stored signals of the last 30 days'
  return new Refusal('snapshot_too_large', `${sizes}; ${remedy}`)
}

function idStart(generatedAt: Instant): string {
  return `feed-${formatInstant(generatedAt).replace(/[-:.]/g, '')}-`
}

/** The largest number of milliseconds before or after 1970 that a date can hold. */
const LAST_INSTANT = 8.64e15

/** True when the stored time matches the snapshot's id. */
export function isInstantOf(id: string, generatedAt: number): boolean {
  return Math.abs(generatedAt) <= LAST_INSTANT && id.startsWith(idStart(generatedAt))
}

/**
 * Proves that stored bytes are the payload of a snapshot.
 *
 * @param bytes as the store returned them; null when they are missing
 * @throws Refusal `storage_damaged` naming the difference
 */
export function proveFeed(id: string, feed: SnapshotFeed, bytes: Uint8Array | null): Uint8Array {
  const where = `the feed ${feed.sort} of snapshot ${id}`
  if (bytes === null) throw storageDamaged(`${where} is missing`)
  if (bytes.byteLength !== feed.byteSize || sha256Hex(bytes) !== feed.sha256) {
    throw storageDamaged(`${where} was changed: its digest differs`)
  }
  return bytes
}

/**
 * The members of a proved payload. Its schema was checked when it was sealed, so only its version is checked.
 *
 * @throws Refusal `storage_damaged` for the layout of another release
 */
export function parseLiveFeed(id: string, bytes: Uint8Array): LiveFeed {
  const feed = JSON.parse(new TextDecoder().decode(bytes)) as LiveFeed
  const layout: string = feed.algoVersion
  if (layout === LIVE_VERSION) return feed
  throw storageDamaged(`a feed of snapshot ${id} does not have the layout of ${LIVE_VERSION}`)
}
