import { LIVE_VERSION } from '../../domain/feed/live-schema.ts'
import type { LiveFeed } from '../../domain/feed/live-schema.ts'
import { storageDamaged } from '../../domain/storage.ts'
import type { ProvedFeed } from './proved-snapshots.ts'

/**
 * A proved payload as the feed it was sealed from: its schema held then, so that its version is enough. One that another
 * release stored may have another layout: it is served as it is, but not rewritten.
 *
 * @throws Refusal `storage_damaged` for another layout
 */
export function parseFeed({ snapshot, published }: ProvedFeed): LiveFeed {
  const feed = JSON.parse(published.body.toString('utf8')) as LiveFeed
  const layout: string = feed.algoVersion
  if (layout === LIVE_VERSION) return feed
  throw storageDamaged(`a feed of snapshot ${snapshot.id} has not the layout of ${LIVE_VERSION}`)
}
