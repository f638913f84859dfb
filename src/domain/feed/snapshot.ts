import { sha256Hex } from '../digest.ts'
import { Refusal, OBJECT_MAX_BYTES, storageDamaged } from '../refusal.ts'
import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import { LIVE_VERSION, listsOf, liveFeedSchema } from './live-items.ts'
import type { Details, LiveFeed } from './live-items.ts'
import type { LiveSort } from './live-sort.ts'
import type { RankedPeriods } from './rank-live.ts'

type SnapshotRefusal = 'snapshot_too_large'

/** What a snapshot holds for one sort. */
export interface SnapshotFeed {
  sort: LiveSort
  /** Digest of the payload's bytes. */
  sha256: string
  byteSize: number
}

/** One run over the live periods: its name, its instant, and the digests of its payloads. */
export interface Snapshot {
  /** `feed-<instant>-<first 8 hex digits of the digest of its lists>`; sorts by time. */
  id: string
  generatedAt: Instant
  feeds: readonly SnapshotFeed[]
}

/** A snapshot ready to be stored. */
export interface SealedSnapshot {
  snapshot: Snapshot
  /** The bytes of each feed, as they are served. */
  payloads: ReadonlyMap<LiveSort, Uint8Array>
  feeds: readonly LiveFeed[]
}

/**
 * Whether a snapshot was stored and how many others were removed, or which one is not earlier; `generatedAt` is null when
 * its stored time is damaged.
 */
export type SnapshotSaving =
  { saved: true; removed: number } | { saved: false; newest: { id: string; generatedAt: Instant | null } }

/**
 * The bytes of a snapshot: UTF-8 JSON without indentation. The same arguments give the same bytes.
 *
 * @throws ZodError when an item does not fit its schema, Refusal `snapshot_too_large` when a feed is larger than what is
 *   read back; nothing is sealed then
 */
export function sealSnapshot(ranked: RankedPeriods, details: Details, generatedAt: Instant): SealedSnapshot {
  const lists = ranked.map(([sort, period]) => ({ sort, inSort: listsOf(period, details) }))
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

function tooLarge(sort: LiveSort, byteSize: number): Refusal<SnapshotRefusal> {
  const sizes = `the feed ${sort} would have ${byteSize} bytes, at most ${OBJECT_MAX_BYTES} are read back`
  const remedy = 'import shorter titles and URLs for the stored signals of the last 30 days'
  return new Refusal('snapshot_too_large', `${sizes}; ${remedy}`)
}

function idStart(generatedAt: Instant): string {
  return `feed-${formatInstant(generatedAt).replace(/[-:.]/g, '')}-`
}

/** Milliseconds on either side of 1970 beyond which there are no dates. */
const LAST_INSTANT = 8.64e15

/** Whether a stored time is the one a snapshot's id was made with. */
export function isInstantOf(id: string, generatedAt: number): boolean {
  return Math.abs(generatedAt) <= LAST_INSTANT && id.startsWith(idStart(generatedAt))
}

/**
 * Proves stored bytes to be the payload a snapshot names.
 *
 * @param bytes as the store returned them, or null when they are absent
 * @throws Refusal `storage_damaged` naming what differs
 */
export function proveFeed(id: string, feed: SnapshotFeed, bytes: Uint8Array | null): Uint8Array {
  const where = `the feed ${feed.sort} of snapshot ${id}`
  if (bytes === null) throw storageDamaged(`${where} is absent`)
  if (bytes.byteLength !== feed.byteSize || sha256Hex(bytes) !== feed.sha256) {
    throw storageDamaged(`${where} is not the one that was stored: its digest differs`)
  }
  return bytes
}
