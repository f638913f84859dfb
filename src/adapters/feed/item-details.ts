import type { ItemDetails } from '../../domain/feed/item-details.ts'
import { saveKey } from '../../domain/feed/source.ts'
import { asJsonRows, selectJsonRows } from '../libsql/json-rows.ts'
import { isTooLarge } from '../libsql/store-client.ts'
import type { Reader, StoreClient } from '../libsql/store-client.ts'

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

const DETAILS = asJsonRows(
  'source, source_id, author, json(tags), description, collected_at',
  `SELECT source, source_id, author, tags, description, collected_at
  FROM json_each(?) JOIN item_details ON source = value ->> 0 AND source_id = value ->> 1`,
)

type DetailsRow = [string, string, string | null, string[], string | null, number]

/** What sources say of the given events, by save key. */
export async function readDetails(
  reader: Reader,
  events: readonly { source: string; sourceId: string }[],
): Promise<Map<string, ItemDetails>> {
  const found = new Map<string, ItemDetails>()
  let atOnce = AT_ONCE
  for (let start = 0; start < events.length;) {
    const asked = events.slice(start, start + atOnce)
    const rows = await readSome(reader, asked)
    if (rows === 'too-large') {
      atOnce = Math.ceil(atOnce / 4)
      continue
    }
    for (const [source, sourceId, author, tags, description, collectedAt] of rows) {
      const details = { source, sourceId, author, tags, description, collectedAt }
      found.set(saveKey(source, sourceId), details)
    }
    start += asked.length
  }
  return found
}

async function readSome(
  reader: Reader,
  asked: readonly { source: string; sourceId: string }[],
): Promise<DetailsRow[] | 'too-large'> {
  const wanted = JSON.stringify(asked.map(({ source, sourceId }) => [source, sourceId]))
  try {
    return (await selectJsonRows(reader, DETAILS, [wanted], 'the details of items')) as DetailsRow[]
  } catch (error) {
    if (asked.length > 1 && isTooLarge(error)) return 'too-large'
    throw error
  }
}
