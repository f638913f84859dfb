import type { FeedStore } from '../../domain/ports.ts'
import type { Database } from '../libsql/database.ts'
import { importSignals } from './import.ts'
import { saveDetails } from './item-details.ts'
import { verifiedTitles as verifiedTitlesTable } from './schema.ts'
import { latestDay, readWindow, verifiedTitles } from './window.ts'

/** Daily signals and verified titles on libSQL. */
export function libsqlFeed(database: Database): FeedStore {
  return {
    importSignals: (signals) => database.use(({ client }) => importSignals(client, signals)),
    readWindow: (window) => database.use(({ client }) => readWindow(client, window)),
    verifiedTitles: (events) => database.use(({ client }) => verifiedTitles(client, events)),
    latestDay: (event, asOfDay) => database.use(({ client }) => latestDay(client, event, asOfDay)),
    saveDetails: (details) => database.use(({ client }) => saveDetails(client, details)),
    saveVerifiedTitle: (source, sourceId, { title, provenance }, verifiedAt) =>
      database.use(async ({ orm }) => {
        await orm
          .insert(verifiedTitlesTable)
          .values({ source, sourceId, title, provenance, verifiedAt })
          .onConflictDoUpdate({
            target: [verifiedTitlesTable.source, verifiedTitlesTable.sourceId],
            set: { title, provenance, verifiedAt },
          })
      }),
    ping: () =>
      database.use(async ({ client }) => {
        await client.execute('SELECT 1 FROM verified_titles LIMIT 1')
      }),
  }
}
