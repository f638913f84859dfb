/**
 * Reads the window with the naive query: every event at its latest day, by grouping all signals ever stored.
 * A peer of the publish bench; it only reads, and neither ranks nor writes.
 *
 *     node bench/naive-window.mjs FEED.DB AS-OF-DAY    prints the number of eligible events
 */
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'

const DAY_MS = 86_400_000

const QUERY = `
  SELECT s.source, s.source_id, s.title, s.url, s.points, s.comments, s.published_at, s.title_provenance
  FROM signals s JOIN (
    SELECT source, source_id, max(day) AS day FROM signals WHERE day <= ?1 GROUP BY source, source_id
  ) latest USING (source, source_id, day)
  WHERE s.published_at >= ?2 AND s.published_at < ?3 AND s.points IS NOT NULL`

const [path, asOfDay] = process.argv.slice(2)
const windowEnd = Date.parse(asOfDay) + DAY_MS
const client = createClient({ url: pathToFileURL(path).href, concurrency: 1 })
const { rows } = await client.execute({ sql: QUERY, args: [asOfDay, windowEnd - 365 * DAY_MS, windowEnd] })
console.log(rows.length)
client.close()
