import { LIVE_VERSION } from '../../domain/feed/live-items.ts'
import type { LiveFeed } from '../../domain/feed/live-items.ts'
import { proveFeed } from '../../domain/feed/snapshot.ts'
import type { Snapshot, SnapshotFeed } from '../../domain/feed/snapshot.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import type { FeedStore } from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import { singleFlight } from '../single-flight.ts'
import { published } from '../respond.ts'
import type { Published } from '../respond.ts'

/** The payload of one sort in the newest snapshot, proved by its digest. */
export interface ProvedFeed {
  snapshot: Snapshot
  published: Published
}

export interface ProvedSnapshots {
  /**
   * The newest snapshot's feed of a sort; null when there is no snapshot.
   *
   * @throws Refusal `storage_damaged` when it cannot be proved; no older one ever stands in
   */
  newest(sort: LiveSort): Promise<ProvedFeed | null>
}

/** Where the store is read: which snapshot is the newest, and the bytes of its feeds. */
export type SnapshotReader = Pick<FeedStore, 'newestSnapshot' | 'snapshotFeed'>

const CACHE_CONTROL = 'public, max-age=60, stale-while-revalidate=300'

/** A published text of the live feed, by the snapshot it was made from. */
export function publishedFrom(
  { generatedAt }: Snapshot,
  body: Buffer,
  contentType: string,
  sha256?: string,
): Published {
  const headers = { 'last-modified': new Date(generatedAt).toUTCString() }
  return published(body, { contentType, cacheControl: CACHE_CONTROL, headers }, sha256)
}

/**
 * Asks the store for the newest snapshot at every request. Bytes stay in memory, one payload a sort, and are used again
 * only while that snapshot names their digest (docs/decisions/0018-feed-snapshots.md).
 */
export function provedSnapshots(store: SnapshotReader): ProvedSnapshots {
  const kept = new Map<LiveSort, { name: string; proved: Promise<ProvedFeed> }>()
  const newestSnapshot = singleFlight(() => store.newestSnapshot())

  const read = async (snapshot: Snapshot, feed: SnapshotFeed): Promise<ProvedFeed> => {
    const bytes = proveFeed(snapshot.id, feed, await store.snapshotFeed(snapshot.id, feed))
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const type = 'application/json; charset=utf-8'
    return { snapshot, published: publishedFrom(snapshot, body, type, feed.sha256) }
  }

  return {
    async newest(sort) {
      const snapshot = await newestSnapshot()
      const feed = snapshot?.feeds.find((each) => each.sort === sort)
      if (!snapshot || !feed) return null
      const name = `${snapshot.id} ${feed.sha256}`
      const known = kept.get(sort)
      if (known?.name === name) return known.proved
      const proved = read(snapshot, feed)
      kept.set(sort, { name, proved })
      proved.catch(() => {
        if (kept.get(sort)?.proved === proved) kept.delete(sort)
      })
      return proved
    },
  }
}

/**
 * A proved payload as the feed it was sealed from: its schema held then, so that its version is enough. One that another
 * release stored may have another layout: it is served as it is, but not rewritten.
 *
 * @throws Refusal `storage_damaged` for another layout
 */
export function parseFeed({ snapshot, published: { body } }: ProvedFeed): LiveFeed {
  const feed = JSON.parse(body.toString('utf8')) as LiveFeed
  const layout: string = feed.algoVersion
  if (layout === LIVE_VERSION) return feed
  throw storageDamaged(`a feed of snapshot ${snapshot.id} has not the layout of ${LIVE_VERSION}`)
}
