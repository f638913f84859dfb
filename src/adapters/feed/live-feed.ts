import type { FeedEvent } from '../../domain/feed/event.ts'
import { LONGEST_PERIOD_MS } from '../../domain/feed/live-sort.ts'
import { isTitleTooLong } from '../../domain/feed/row.ts'
import { saveKey } from '../../domain/feed/source.ts'
import type { LiveFeedStore } from '../../domain/ports.ts'
import { dayOf } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { Database } from '../libsql/database.ts'
import type { StoreClient } from '../libsql/store-client.ts'
import { readDetails } from './item-details.ts'
import { newestSnapshot, saveSnapshot, snapshotFeed } from './snapshots.ts'
import { readEvents, REVISION, verifiedTitles } from './window.ts'

/** The live feed on libSQL, in the feed's own database. */
export function libsqlLiveFeed(database: Database): LiveFeedStore {
  return {
    liveEvents: (now) => database.use(({ client }) => liveEvents(client, now)),
    details: (events) => database.use(({ client }) => readDetails(client, events)),
    saveSnapshot: (sealed, options) => database.use(({ client }) => saveSnapshot(client, sealed, options)),
    newestSnapshot: () => database.use(({ client }) => newestSnapshot(client)),
    snapshotFeed: (id, feed) => database.use(({ client }) => snapshotFeed(client, id, feed)),
  }
}

function liveEvents(client: StoreClient, now: Instant): Promise<FeedEvent[]> {
  return client.snapshot(REVISION, async (reader) => {
    const range = { windowStart: now - LONGEST_PERIOD_MS, windowEnd: now + 1, asOfDay: dayOf(now) }
    const events = await readEvents(reader, range)
    const titles = await verifiedTitles(
      reader,
      events.filter(({ titleProvenance }) => titleProvenance === null),
    )
    return events.map((event) => {
      const verified = titles.get(saveKey(event.source, event.sourceId))
      if (event.titleProvenance !== null || !verified || isTitleTooLong(verified.title)) return event
      return { ...event, title: verified.title, titleProvenance: verified.provenance }
    })
  })
}
