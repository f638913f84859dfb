import { JOBS } from '../../domain/job-run.ts'
import type { Job } from '../../domain/job-run.ts'
import type { State } from '../../domain/ports.ts'
import type { StateFacts } from '../../domain/inspection.ts'
import type { AuditRecord } from '../../domain/year/finding.ts'
import type { Database } from '../sqlite/database.ts'
import { insertAll, selectRows } from '../sqlite/rows.ts'
import type { SqlReader } from '../sqlite/rows.ts'
import { audits, jobs } from './schema.ts'

export function libsqlJobLog(database: Database): State['jobs'] {
  return {
    record: ({ job, startedAt, endedAt, exitCode }) =>
      database.use(async (client) => {
        const args = [job, startedAt, endedAt, exitCode, exitCode === 0 ? endedAt : null]
        await client.batch([{ sql: UPSERT, args }], 'write')
      }),

    states: () =>
      database.use(async (client) => {
        const rows = await selectRows(client, jobs, 'job')
        // A later release may have recorded other jobs.
        return rows.flatMap(({ job, ...run }) => (isJob(job) ? [{ job, ...run }] : []))
      }),
  }
}

function isJob(name: string): name is Job {
  return JOBS.some((job) => job === name)
}

const UPSERT = `
  INSERT INTO jobs (job, started_at, ended_at, exit_code, last_success_at)
  VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (job) DO UPDATE SET
    started_at = excluded.started_at,
    ended_at = excluded.ended_at,
    exit_code = excluded.exit_code,
    last_success_at = coalesce(excluded.last_success_at, last_success_at)`

const KEPT_AUDITS = 100

export function libsqlAudits(database: Database): State['audits'] {
  return {
    record: ({ head, ...audit }) =>
      database.use(async (client) => {
        const row = { ...audit, headSeq: head.seq, headLeaf: head.leaf }
        await client.batch([insertAll(audits, [row]), { sql: REMOVE_OLD, args: [KEPT_AUDITS] }], 'write')
      }),

    newest: () => database.use((client) => newestAudit(client)),
  }
}

async function newestAudit(reader: SqlReader): Promise<AuditRecord | null> {
  const [row] = await selectRows(reader, audits, 'id', 'id = (SELECT max(id) FROM audits)')
  return row ? toAuditRecord(row) : null
}

function toAuditRecord({
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

const REMOVE_OLD = 'DELETE FROM audits WHERE id <= (SELECT max(id) FROM audits) - ?'

export async function stateFacts(reader: SqlReader): Promise<StateFacts> {
  return { audit: await newestAudit(reader) }
}
