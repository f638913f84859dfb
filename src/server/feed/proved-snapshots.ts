import { proveFeed } from '../../domain/feed/snapshot.ts'
import type { Snapshot, SnapshotFeed } from '../../domain/feed/snapshot.ts'
import type { LiveSort } from '../../domain/feed/columns.ts'
import type { FeedStore } from '../../domain/ports.ts'
import { coalesce } from '../single-flight.ts'
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
 * Asks the store for the newest snapshot at every question. Bytes stay in memory, one payload a sort, and are used again
 * only while that snapshot names their digest (docs/decisions/0018-snapshots-and-subscriptions.md).
 */
export function provedSnapshots(store: SnapshotReader): ProvedSnapshots {
  const kept = new Map<LiveSort, ProvedFeed>()
  const running = new Map<string, Promise<ProvedFeed>>()
  const newestSnapshot = coalesce(() => store.newestSnapshot())

  const read = async (snapshot: Snapshot, feed: SnapshotFeed): Promise<ProvedFeed> => {
    const bytes = proveFeed(snapshot.id, feed, await store.snapshotFeed(snapshot.id, feed))
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const type = 'application/json; charset=utf-8'
    const proved = { snapshot, published: publishedFrom(snapshot, body, type, feed.sha256) }
    kept.set(feed.sort, proved)
    return proved
  }

  const readOnce = (snapshot: Snapshot, feed: SnapshotFeed): Promise<ProvedFeed> => {
    const name = `${snapshot.id} ${feed.sha256}`
    const reading = running.get(name) ?? read(snapshot, feed).finally(() => running.delete(name))
    running.set(name, reading)
    return reading
  }

  return {
    async newest(sort) {
      const snapshot = await newestSnapshot()
      const feed = snapshot?.feeds.find((each) => each.sort === sort)
      if (!snapshot || !feed) return null
      const known = kept.get(sort)
      const isSame = known?.snapshot.id === snapshot.id && known.published.etag === `"${feed.sha256}"`
      return isSame ? known : readOnce(snapshot, feed)
    },
  }
}
