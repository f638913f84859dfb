import type { StateFacts } from '../../domain/operations/survey.ts'
import type { Reader } from '../libsql/store-client.ts'
import { readLease } from '../libsql/survey.ts'

/** What an operator asks of the state. */
export async function stateFacts(reader: Reader): Promise<StateFacts> {
  const { rows } = await reader.execute('SELECT ended_at, ok, complete FROM audits ORDER BY id DESC LIMIT 1')
  const audit = rows[0]
  return {
    audit: audit
      ? { endedAt: Number(audit[0]), ok: Number(audit[1]) === 1, complete: Number(audit[2]) === 1 }
      : null,
    lease: await readLease(reader, 'evaluation_lease'),
  }
}
