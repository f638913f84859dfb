import { JOBS } from '../../domain/job-run.ts'
import type { Job } from '../../domain/job-run.ts'
import type { JobLog } from '../../domain/ports.ts'
import type { Database } from '../libsql/database.ts'
import { selectRows } from '../libsql/table-rows.ts'
import { jobs } from './schema.ts'

/** How jobs went, on libSQL. */
export function libsqlJobLog(database: Database): JobLog {
  return {
    record: ({ job, startedAt, endedAt, exitCode }) =>
      database.use(async ({ client }) => {
        const args = [job, startedAt, endedAt, exitCode, exitCode === 0 ? endedAt : null]
        await client.batch([{ sql: UPSERT, args }], 'write')
      }),

    states: () =>
      database.use(async ({ orm }) => {
        const rows = await selectRows(orm, jobs, 'job', undefined)
        // A later release may know of more.
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
    last_success_at = coalesce(excluded.last_success_at, last_success_at)
  WHERE excluded.ended_at >= ended_at`
