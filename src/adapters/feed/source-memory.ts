import type { KeptAnswer } from '../../domain/feed/live-source.ts'
import type { FeedStore } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'
import type { Database } from '../sqlite/database.ts'
import { asJsonRows, selectJsonRows } from '../sqlite/rows.ts'
import type { StoreClient } from '../sqlite/store-client.ts'

const KEPT = asJsonRows(
  'etag, last_modified, body, kept_at',
  'SELECT etag, last_modified, body, kept_at FROM kept_answers WHERE url = ?1 AND kept_at > ?2 AND kept_at <= ?3',
)

const KEEP = `
  INSERT INTO kept_answers (url, etag, last_modified, body, kept_at) VALUES (?1, ?2, ?3, ?4, ?5)
  ON CONFLICT (url) DO UPDATE SET
    etag = excluded.etag, last_modified = excluded.last_modified, body = excluded.body, kept_at = excluded.kept_at`

const PAUSED = 'SELECT paused_until FROM source_pauses WHERE host = ?'

const PAUSE = `
  INSERT INTO source_pauses (host, paused_until) VALUES (?, ?)
  ON CONFLICT (host) DO UPDATE SET paused_until = max(paused_until, excluded.paused_until)`

/** The part of the feed that remembers sources from one run to the next. */
export function sourceMemory(
  database: Database,
): Pick<FeedStore, 'keptAnswer' | 'keepAnswer' | 'pausedUntil' | 'pauseUntil'> {
  return {
    keptAnswer: (url, since, now) => database.use(({ client }) => keptAnswer(client, url, since, now)),
    keepAnswer: (url, { etag, lastModified, body, keptAt }, since) =>
      database.use(async ({ client }) => {
        await client.batch(
          [
            { sql: KEEP, args: [url, etag, lastModified, body, keptAt] },
            { sql: 'DELETE FROM kept_answers WHERE kept_at <= ?', args: [since] },
          ],
          'write',
        )
      }),
    pausedUntil: (host) =>
      database.use(async ({ client }) => {
        const { rows } = await client.execute({ sql: PAUSED, args: [host] })
        const until = rows[0]?.['paused_until']
        return until === undefined ? null : Number(until)
      }),
    pauseUntil: (host, until) =>
      database.use(async ({ client }) => {
        await client.execute({ sql: PAUSE, args: [host, until] })
      }),
  }
}

async function keptAnswer(
  client: StoreClient,
  url: string,
  since: Instant,
  now: Instant,
): Promise<KeptAnswer | null> {
  const rows = await selectJsonRows(client, KEPT, [url, since, now], 'the kept answers')
  const row = rows[0] as [string | null, string | null, string, Instant] | undefined
  if (!row) return null
  const [etag, lastModified, body, keptAt] = row
  return { etag, lastModified, body, keptAt }
}
