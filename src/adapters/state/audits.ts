import { sql } from 'drizzle-orm'
import type { AuditLog } from '../../domain/ports.ts'
import type { AuditRecord } from '../../domain/year/audit-record.ts'
import type { Database } from '../libsql/database.ts'
import { selectRows } from '../libsql/table-rows.ts'
import { audits } from './schema.ts'

const KEPT = 100

/** Records of audits on libSQL. */
export function libsqlAudits(database: Database): AuditLog {
  return {
    record: ({ endedAt, ok, complete, whole, publications, objects, bytes, gaps, damage, head }) =>
      database.use(async ({ client }) => {
        const flags = [ok, complete, whole].map(Number)
        const args = [endedAt, ...flags, publications, objects, bytes, gaps, damage, head.seq, head.leaf]
        await client.batch(
          [
            { sql: INSERT, args },
            { sql: REMOVE_OLD, args: [KEPT] },
          ],
          'write',
        )
      }),

    newest: () =>
      database.use(async ({ orm }) => {
        const newest = sql`${audits.id} = (SELECT max(id) FROM ${audits})`
        const [row] = await selectRows(orm, audits, 'id', newest)
        return row ? recordOf(row) : null
      }),
  }
}

function recordOf({
  id: _id,
  ok,
  complete,
  whole,
  headSeq,
  headLeaf,
  ...numbers
}: typeof audits.$inferSelect): AuditRecord {
  const head = { seq: headSeq, leaf: headLeaf }
  return { ...numbers, ok: ok === 1, complete: complete === 1, whole: whole === 1, head }
}

const INSERT = `
  INSERT INTO audits (ended_at, ok, complete, whole, publications, objects, bytes, gaps, damage, head_seq, head_leaf)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const REMOVE_OLD = 'DELETE FROM audits WHERE id <= (SELECT max(id) FROM audits) - ?'
