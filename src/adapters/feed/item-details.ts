import type { ItemDetails } from '../../domain/feed/item-details.ts'
import type { StoreClient } from '../libsql/store-client.ts'

const UPSERT_DETAILS = `
  INSERT INTO item_details (source, source_id, author, tags, description, collected_at)
  SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
  FROM json_each(?) WHERE true
  ON CONFLICT (source, source_id) DO UPDATE SET
    author = excluded.author, tags = excluded.tags, description = excluded.description,
    collected_at = excluded.collected_at
  WHERE excluded.collected_at >= collected_at`

/** Items stored by one statement; a server takes no parameter larger than 5 MiB. */
const AT_ONCE = 1_000

/** Stores what sources say of items in one transaction; see the port. */
export async function saveDetails(client: StoreClient, details: readonly ItemDetails[]): Promise<void> {
  const statements = []
  for (let start = 0; start < details.length; start += AT_ONCE) {
    const rows = details
      .slice(start, start + AT_ONCE)
      .map(({ source, sourceId, author, tags, description, collectedAt }) => [
        source,
        sourceId,
        author,
        JSON.stringify(tags),
        description,
        collectedAt,
      ])
    statements.push({ sql: UPSERT_DETAILS, args: [JSON.stringify(rows)] })
  }
  if (statements.length > 0) await client.batch(statements, 'write')
}
