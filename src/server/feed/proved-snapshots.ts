import type { LiveFeed } from '../../domain/feed/live-items.ts'
import { parseLiveFeed, proveFeed } from '../../domain/feed/snapshot.ts'
import type { Snapshot, SnapshotFeed } from '../../domain/feed/snapshot.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import type { FeedStore } from '../../domain/ports.ts'
import { onceFor } from '../../domain/once.ts'
import { singleFlight } from '../single-flight.ts'
import { JSON_TYPE, publishedBody } from '../respond.ts'
import type { PublishedBody } from '../respond.ts'

/** The payload of one sort in the newest snapshot, verified by its digest. */
export interface ProvedFeed {
  snapshot: Snapshot
  published: PublishedBody
}

export interface ProvedSnapshots {
  /**
   * The newest snapshot's feed of a sort; null when there is no snapshot.
   *
   * @throws Refusal `storage_damaged` if verification fails; an older snapshot never replaces it
   */
  newest(sort: LiveSort): Promise<ProvedFeed | null>
}

export type SnapshotReader = Pick<FeedStore, 'newestSnapshot' | 'snapshotFeed'>

export const LIVE_CACHE = 'public, max-age=60, stale-while-revalidate=300'

export function publishedFrom(
  { generatedAt }: Snapshot,
  body: Buffer | string,
  contentType: string,
  sha256?: string,
): PublishedBody {
  const headers = { 'last-modified': new Date(generatedAt).toUTCString() }
  return publishedBody(body, { contentType, cacheControl: LIVE_CACHE, headers }, sha256)
}

/**
 * Reads the newest snapshot from the store for every request. One payload per sort is cached, and reused while that
 * snapshot names its digest (docs/decisions/0018-feed-snapshots.md).
 */
export function provedSnapshots(store: SnapshotReader): ProvedSnapshots {
  const cache = new Map<LiveSort, { name: string; proved: Promise<ProvedFeed> }>()
  const newestSnapshot = singleFlight(() => store.newestSnapshot())

  const read = async (snapshot: Snapshot, feed: SnapshotFeed): Promise<ProvedFeed> => {
    const bytes = proveFeed(snapshot.id, feed, await store.snapshotFeed(snapshot.id, feed))
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    return { snapshot, published: publishedFrom(snapshot, body, JSON_TYPE, feed.sha256) }
  }

  return {
    async newest(sort) {
      const snapshot = await newestSnapshot()
      const feed = snapshot?.feeds.find((each) => each.sort === sort)
      if (!snapshot || !feed) return null
      const name = `${snapshot.id} ${feed.sha256}`
      const cached = cache.get(sort)
      if (cached?.name === name) return cached.proved
      const proved = read(snapshot, feed)
      cache.set(sort, { name, proved })
      proved.catch(() => {
        if (cache.get(sort)?.proved === proved) cache.delete(sort)
      })
      return proved
    },
  }
}

/** The members of a verified payload, parsed once. @throws Refusal `storage_damaged` for another layout */
export const parseFeed = onceFor(({ snapshot, published: { body } }: ProvedFeed): LiveFeed =>
  parseLiveFeed(snapshot.id, body),
)
