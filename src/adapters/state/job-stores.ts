import { z } from 'zod'
import type { StateFacts } from '../../domain/inspection.ts'
import { JOBS } from '../../domain/jobs.ts'
import type { Job } from '../../domain/jobs.ts'
import { RESPONSE_CLASSES, EVALUATIONS_KEPT_DAYS } from '../../domain/models/evaluation.ts'
import type { ResponseClass, AttemptEnd, ModelAttempt } from '../../domain/models/evaluation.ts'
import { taskSchema } from '../../domain/models/lite/suite.ts'
import type { TaskResult } from '../../domain/models/lite/suite.ts'
import { RESERVED_REQUESTS } from '../../domain/models/quota.ts'
import type { State } from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import { dayOf } from '../../domain/time.ts'
import type { AuditRecord } from '../../domain/year/finding.ts'
import type { Database } from '../sqlite/database.ts'
import { leaseOn } from '../sqlite/lease.ts'
import {
  asJsonRows,
  insertAll,
  insertRow,
  selectJsonRows,
  selectRows,
  upsert,
  upsertRow,
} from '../sqlite/rows.ts'
import type { SqlReader } from '../sqlite/rows.ts'
import { SHARES } from '../../domain/agent/admission.ts'
import { requestsSentBy } from './admission.ts'
import {
  audits,
  evaluationAttempts,
  evaluationEndpoints,
  evaluationLease,
  evaluationRuns,
  jobs,
} from './schema.ts'

export function libsqlJobLog(database: Database): State['jobs'] {
  return {
    async record({ job, startedAt, endedAt, exitCode }) {
      const success = exitCode === 0 ? { lastSuccessAt: endedAt } : {}
      await database.execute(upsertRow('jobs', ['job'], { job, startedAt, endedAt, exitCode, ...success }))
    },

    async states() {
      const rows = await selectRows(database, jobs, 'job')
      // A later release may have recorded other jobs.
      return rows.flatMap(({ job, ...run }) => (isJob(job) ? [{ job, ...run }] : []))
    },
  }
}

function isJob(name: string): name is Job {
  return JOBS.some((job) => job === name)
}

const KEPT_AUDITS = 100

export function libsqlAudits(database: Database): State['audits'] {
  return {
    async record({ head, ...audit }) {
      const row = { ...audit, headSeq: head.seq, headLeaf: head.leaf }
      await database.batch([insertAll(audits, [row]), { sql: REMOVE_OLD_AUDITS, args: [KEPT_AUDITS] }])
    },

    newest: () => newestAudit(database),
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

const REMOVE_OLD_AUDITS = 'DELETE FROM audits WHERE id <= (SELECT max(id) FROM audits) - ?'

export async function stateFacts(reader: SqlReader): Promise<StateFacts> {
  return { audit: await newestAudit(reader) }
}

/** The day's requests of the evaluation and the chat together; the day is parameter 1. */
const COUNTED_OF_DAY = `
  ((SELECT count(*) FROM evaluation_attempts WHERE day = ?1)
    + (SELECT count(*) FROM chat_router_requests WHERE day = ?1))`

/** Creates the count of the chat's share of the account's daily requests, on libSQL. */
export function libsqlRouterAllowance(database: Database): State['allowance'] {
  return {
    async countChatRequest(model, sentAt, limit, turnShare) {
      const maxRequests = limit - RESERVED_REQUESTS
      const args = [
        dayOf(sentAt),
        model,
        sentAt,
        maxRequests,
        turnShare?.turn ?? null,
        turnShare?.perAddress ?? null,
      ]
      const { rows } = await database.execute({ sql: COUNT_CHAT_REQUEST, args })
      return rows.length > 0
    },
  }
}

const COUNT_CHAT_REQUEST = `
  INSERT INTO chat_router_requests (day, model, sent_at, turn) SELECT ?1, ?2, ?3, ?5
  WHERE ${COUNTED_OF_DAY} < ?4 AND NOT EXISTS (
    SELECT 1 FROM (SELECT address, network, ?1 AS day FROM chat_turns WHERE id = ?5) AS requester
    WHERE ${requestsSentBy('address', 'requester')} >= ?6 OR ${requestsSentBy('network', 'requester')} >= ${SHARES.network} * ?6)
  RETURNING id`

/** Creates the store of the runs of the evaluation and their requests on libSQL. */
export function libsqlEvaluations(database: Database): State['evaluations'] {
  return {
    ...leaseOn(database, evaluationLease),

    async sweep(now) {
      const [ended] = await database.batch([
        { sql: ABANDON_ATTEMPTS, args: [now] },
        deleteOldDays('evaluation_attempts'),
        deleteOldDays('chat_router_requests'),
        deleteOldDays('evaluation_runs'),
      ])
      return ended?.rowsAffected ?? 0
    },

    recordRun: async (run) => void (await database.execute(insertAll(evaluationRuns, [run]))),

    async lowestRateBetween(since, until) {
      const known = 'started_at BETWEEN ? AND ? AND starts_a_minute IS NOT NULL'
      const [lowest] = await selectRows(database, evaluationRuns, 'starts_a_minute', known, [since, until])
      return lowest?.startsAMinute ?? null
    },

    countAttempt: ({ model, kind, sentAt }, { token, maxCountedBefore }) =>
      database.transact(async (tx) => {
        const day = dayOf(sentAt)
        const { rows: found } = await tx.execute({ sql: COUNTED, args: [day, sentAt, token] })
        const [held, counted] = Array.from(found[0] ?? [], Number)
        if (held !== 1) return { refused: 'lease_lost' }
        if (maxCountedBefore !== null && Number(counted) > maxCountedBefore) return { refused: 'day_spent' }
        const attempt = { model, kind, day, sentAt }
        const { rows } = await tx.execute(insertRow('evaluation_attempts', attempt, 'RETURNING id'))
        return { counted: Number(rows[0]?.[0]) }
      }),

    async settleAttempt(attempt, { settledAt, class: responseClass, status, latencyMs, asAsked, tasks }) {
      const asked = asAsked === null ? null : Number(asAsked)
      const tasksJson = tasks === null ? null : JSON.stringify(tasks)
      const args = [attempt, settledAt, responseClass, status, latencyMs, asked, tasksJson]
      await database.execute({ sql: SETTLE_ATTEMPT, args })
    },

    async attemptsSince(since) {
      const rows = await selectRows(database, evaluationAttempts, 'id', 'sent_at >= ?', [since])
      return rows.map(toAttempt)
    },

    async saveEndpoints(records) {
      const rows = records.map(({ model, checkedAt, usable, latencyMs }) => {
        return [model, checkedAt, usable ? 1 : 0, latencyMs]
      })
      await database.execute({ sql: UPSERT_ENDPOINTS, args: [JSON.stringify(rows)] })
    },

    async endpointsSince(since) {
      const rows = await selectRows(database, evaluationEndpoints, 'model', 'checked_at >= ?', [since])
      return rows.map((record) => ({ ...record, usable: record.usable === 1 }))
    },

    async requestsSince(since) {
      const rows = await selectJsonRows(database, REQUESTS, [since], 'the requests with the key')
      return rows.map(([sentAt]) => Number(sentAt))
    },
  }
}

/** Deletes all but the newest days of a table. Without the clock: one that is ahead must not delete. */
function deleteOldDays(table: string): string {
  const newest = `SELECT DISTINCT day FROM ${table} ORDER BY day DESC LIMIT 1`
  return `DELETE FROM ${table} WHERE day < (${newest} OFFSET ${EVALUATIONS_KEPT_DAYS - 1})`
}

const ABANDON_ATTEMPTS = `
  UPDATE evaluation_attempts SET settled_at = ?, class = 'abandoned' WHERE settled_at IS NULL`

/** The lease, and all requests of the day. */
const COUNTED = `
  SELECT EXISTS (SELECT 1 FROM evaluation_lease WHERE token = ?3 AND expires_at > ?2), ${COUNTED_OF_DAY}`

const SETTLE_ATTEMPT = `
  UPDATE evaluation_attempts
  SET settled_at = ?2, class = ?3, status = ?4, latency_ms = ?5, as_asked = ?6, tasks = ?7
  WHERE id = ?1`

const UPSERT_ENDPOINTS = upsert('evaluation_endpoints', ['model'], ['checkedAt', 'usable', 'latencyMs'])

const REQUESTS = asJsonRows(
  'sent_at',
  `SELECT sent_at FROM evaluation_attempts WHERE sent_at >= ?1
    UNION ALL SELECT sent_at FROM chat_router_requests WHERE sent_at >= ?1 ORDER BY sent_at`,
)

/**
 * Converts a row to an attempt.
 *
 * @throws Refusal `storage_damaged` if the row is invalid
 */
function toAttempt(row: typeof evaluationAttempts.$inferSelect): ModelAttempt {
  const { id, model, kind, day, sentAt, settledAt, status, latencyMs, asAsked, tasks } = row
  if (kind !== 'tool' && kind !== 'text') throw damaged(`an attempt of kind ${JSON.stringify(kind)}`)
  const end =
    settledAt === null
      ? null
      : {
          settledAt,
          class: parseClass(row.class),
          status,
          latencyMs,
          asAsked: asAsked === null ? null : asAsked === 1,
          tasks: tasks === null ? null : parseTasks(tasks),
        }
  return { id, model, kind, day, sentAt, end }
}

function parseClass(name: string | null): AttemptEnd['class'] {
  if (name === 'abandoned') return name
  if (name !== null && Object.hasOwn(RESPONSE_CLASSES, name)) return name as ResponseClass
  throw damaged(`an attempt of class ${JSON.stringify(name)}`)
}

const tasksSchema = z.array(taskSchema)

function parseTasks(text: string): TaskResult[] {
  try {
    return tasksSchema.parse(JSON.parse(text))
  } catch (cause) {
    throw damaged('tasks in an unknown format', cause)
  }
}

function damaged(found: string, cause?: unknown): Error {
  return storageDamaged(`the state database contains ${found}`, cause)
}
