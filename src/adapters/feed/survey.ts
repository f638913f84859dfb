import type { FeedFacts } from '../../domain/operations/survey.ts'
import type { Reader } from '../libsql/store-client.ts'

/** What an operator asks of the feed. */
export async function feedFacts(reader: Reader): Promise<FeedFacts> {
  const { rows } = await reader.execute('SELECT max(generated_at) FROM snapshots')
  const newest = rows[0]?.[0]
  return { snapshotAt: typeof newest === 'number' ? newest : null }
}
