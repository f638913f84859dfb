import type { LedgerFacts } from '../../domain/operations/survey.ts'
import { asJsonRows, selectJsonRows } from '../libsql/json-rows.ts'
import type { Reader } from '../libsql/store-client.ts'
import { readLease } from '../libsql/survey.ts'

const NEWEST = asJsonRows(
  'as_of_day, published_at',
  "SELECT as_of_day, published_at FROM entries WHERE kind = 'publication' ORDER BY published_at DESC LIMIT 1",
)

const GAPS = asJsonRows(
  'as_of_day, reason',
  "SELECT as_of_day, reason FROM entries WHERE kind = 'gap' ORDER BY as_of_day DESC LIMIT 30",
)

const COUNTS = asJsonRows(
  'publications, recorded',
  "SELECT count(*) FILTER (WHERE kind = 'publication') AS publications, max(recorded_at) AS recorded FROM entries",
)

/** What an operator asks of a ledger; it proves nothing. */
export async function ledgerFacts(reader: Reader): Promise<LedgerFacts> {
  const ask = (sql: string): Promise<unknown[][]> => selectJsonRows(reader, sql, [], 'the ledger')
  const [counts] = await ask(COUNTS)
  const [newest] = await ask(NEWEST)
  const gaps = await ask(GAPS)
  return {
    publications: Number(counts?.[0]),
    recordedAt: typeof counts?.[1] === 'number' ? counts[1] : null,
    newest: newest ? { asOfDay: String(newest[0]), publishedAt: Number(newest[1]) } : null,
    gaps: gaps.map(([asOfDay, reason]) => ({ asOfDay: String(asOfDay), reason: String(reason) })),
    lease: await readLease(reader, 'lease'),
  }
}
