import type { InStatement, InValue, ResultSet } from '@libsql/client'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { z } from 'zod'
import { RESPONSE_CLASSES, EVALUATIONS_KEPT_DAYS } from '../../domain/models/evaluation.ts'
import type { ResponseClass, AttemptEnd, ModelAttempt } from '../../domain/models/evaluation.ts'
import { taskSchema } from '../../domain/models/lite/suite.ts'
import type { TaskResult } from '../../domain/models/lite/suite.ts'
import { RESERVED_REQUESTS } from '../../domain/models/quota.ts'
import type { State } from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import { dayOf } from '../../domain/time.ts'
import type { Database } from '../sqlite/database.ts'
import { leaseOn } from '../sqlite/lease.ts'
import { selectRows } from '../sqlite/rows.ts'
import { SHARES } from '../../domain/agent/admission.ts'
import { requestsSentBy } from './admission.ts'
import {
  chatRouterRequests,
  evaluationAttempts,
  evaluationEndpoints,
  evaluationLease,
  evaluationRuns,
  evaluationScores,
} from './schema.ts'

/** The day's requests of the evaluation and the chat together; the day is parameter 1. */
const COUNTED_OF_DAY = `
  ((SELECT count(*) FROM evaluation_attempts WHERE day = ?1)
    + (SELECT count(*) FROM chat_router_requests WHERE day = ?1))`

/** Creates the count of the chat's share of the account's daily requests, on libSQL. */
export function libsqlRouterAllowance(database: Database): State['allowance'] {
  return {
    countChatRequest: (model, sentAt, limit, turnShare) =>
      database.use(async (client) => {
        const maxRequests = limit - RESERVED_REQUESTS
        const args = [
          dayOf(sentAt),
          model,
          sentAt,
          maxRequests,
          turnShare?.turn ?? null,
          turnShare?.perAddress ?? null,
        ]
        const { rows } = await client.execute({ sql: COUNT_CHAT_REQUEST, args })
        return rows.length > 0
      }),
  }
}

const COUNT_CHAT_REQUEST = `
  INSERT INTO chat_router_requests (day, model, sent_at, turn) SELECT ?1, ?2, ?3, ?5
  WHERE ${COUNTED_OF_DAY} < ?4 AND NOT EXISTS (
    SELECT 1 FROM (SELECT address, network, ?1 AS day FROM chat_turns WHERE id = ?5) AS requester
    WHERE ${requestsSentBy('address', 'requester')} >= ?6 OR ${requestsSentBy('network', 'requester')} >= ${SHARES.network} * ?6)
  RETURNING id`

/** Creates the store of runs, attempts, scores and rejections on libSQL. */
export function libsqlEvaluations(database: Database): State['evaluations'] {
  const write = (...statements: InStatement[]): Promise<ResultSet[]> =>
    database.use((client) => client.batch(statements, 'write'))
  const selectWhere = <T extends SQLiteTable>(table: T, orderBy: string, where: string, ...args: InValue[]) =>
    database.use((client) => selectRows(client, table, orderBy, where, args))
  return {
    ...leaseOn(database, evaluationLease),

    async sweep(now) {
      const [, ended] = await write(
        { sql: ABANDON_ATTEMPTS, args: [now] },
        { sql: END_OPEN, args: [now, 'killed'] },
      )
      return ended?.rowsAffected ?? 0
    },

    async beginRun({ day, refreshMode, startedAt }) {
      const results = await write(
        `DELETE FROM evaluation_attempts WHERE day < ${OLDEST_DAY}`,
        `DELETE FROM evaluation_scores WHERE day < ${OLDEST_DAY}`,
        `DELETE FROM evaluation_endpoints WHERE date(checked_at / 1000, 'unixepoch') < ${OLDEST_DAY}`,
        `DELETE FROM chat_router_requests WHERE day < ${OLDEST_DAY}`,
        `DELETE FROM evaluation_runs WHERE day < ${OLDEST_DAY}`,
        'DELETE FROM evaluation_rejections WHERE run NOT IN (SELECT id FROM evaluation_runs)',
        {
          sql: 'INSERT INTO evaluation_runs (day, refresh_mode, started_at) VALUES (?, ?, ?) RETURNING id',
          args: [day, refreshMode, startedAt],
        },
      )
      return Number(results.at(-1)?.rows[0]?.[0])
    },

    async endRun(run, { endedAt, outcome, rankingVersion, startsAMinute, reason }, rejections) {
      const rows = JSON.stringify(rejections.map((rejection) => [rejection.id, rejection.reason]))
      await write(
        { sql: END_RUN, args: [run, endedAt, outcome, rankingVersion, startsAMinute, reason] },
        { sql: INSERT_REJECTIONS, args: [run, rows] },
      )
    },

    async abandonRun(run, endedAt, reason) {
      await write(
        { sql: `${ABANDON_ATTEMPTS} AND run = ?2`, args: [endedAt, run] },
        { sql: `${END_OPEN} AND id = ?3`, args: [endedAt, reason, run] },
      )
    },

    countAttempt: ({ run, model, kind, sentAt }, { token, maxCountedBefore }) =>
      database.use((client) =>
        client.transact(async (tx) => {
          const { rows: found } = await tx.execute({
            sql: COUNTED,
            args: [dayOf(sentAt), sentAt, token],
          })
          const [held, counted] = Array.from(found[0] ?? [], Number)
          if (held !== 1) return { refused: 'lease_lost' }
          if (maxCountedBefore !== null && Number(counted) > maxCountedBefore) return { refused: 'day_spent' }
          const { rows } = await tx.execute({
            sql: INSERT_ATTEMPT,
            args: [run, model, kind, dayOf(sentAt), sentAt],
          })
          return { counted: Number(rows[0]?.[0]) }
        }),
      ),

    async settleAttempt(attempt, { settledAt, class: responseClass, status, latencyMs, asAsked, tasks }) {
      const asked = asAsked === null ? null : Number(asAsked)
      const tasksJson = tasks === null ? null : JSON.stringify(tasks)
      const args = [attempt, settledAt, responseClass, status, latencyMs, asked, tasksJson]
      await write({ sql: SETTLE_ATTEMPT, args })
    },

    async saveScore({ model, day, evaluatedAt, complete, tasks }) {
      const points = tasks.reduce((sum, task) => sum + task.points, 0)
      const args = [model, day, evaluatedAt, complete ? 1 : 0, points, JSON.stringify(tasks)]
      await write({ sql: UPSERT_SCORE, args })
    },

    attemptsSince: async (since) =>
      (await selectWhere(evaluationAttempts, 'id', 'sent_at >= ?', since)).map(toAttempt),

    async scoresSince(since) {
      const rows = await selectWhere(evaluationScores, 'day', 'day >= ?', since)
      return rows.map(({ model, day, evaluatedAt, complete, tasks }) => ({
        model,
        day,
        evaluatedAt,
        complete: complete === 1,
        tasks: parseTasks(tasks),
      }))
    },

    async saveEndpoints(records) {
      const rows = records.map(({ model, checkedAt, usable, latencyMs }) => {
        return [model, checkedAt, usable ? 1 : 0, latencyMs]
      })
      await write({ sql: UPSERT_ENDPOINTS, args: [JSON.stringify(rows)] })
    },

    async endpointsSince(since) {
      const rows = await selectWhere(evaluationEndpoints, 'model', 'checked_at >= ?', since)
      return rows.map((record) => ({ ...record, usable: record.usable === 1 }))
    },

    async chatRequestsSince(since) {
      const rows = await selectWhere(chatRouterRequests, 'sent_at', 'sent_at >= ?', since)
      return rows.map(({ sentAt }) => sentAt)
    },

    async lowestRateBetween(since, until) {
      const known = 'started_at BETWEEN ? AND ? AND starts_a_minute IS NOT NULL'
      const [lowest] = await selectWhere(evaluationRuns, 'starts_a_minute', known, since, until)
      return lowest?.startsAMinute ?? null
    },

    async versionsOf(day) {
      const ranked = 'day = ? AND ranking_version IS NOT NULL'
      const rows = await selectWhere(evaluationRuns, 'id', ranked, day)
      return rows.flatMap(({ rankingVersion }) => rankingVersion ?? [])
    },

    ping: () =>
      database.use(async (client) => {
        await client.execute('SELECT 1 FROM evaluation_runs LIMIT 1')
      }),
  }
}

/** The oldest day that is kept; null while there are fewer. Without the clock: one that is ahead must not delete. */
const OLDEST_DAY = `
  (SELECT DISTINCT day FROM evaluation_runs ORDER BY day DESC LIMIT 1 OFFSET ${EVALUATIONS_KEPT_DAYS - 1})`

const ABANDON_ATTEMPTS = `
  UPDATE evaluation_attempts SET settled_at = ?1, class = 'abandoned'
  WHERE settled_at IS NULL AND run IN (SELECT id FROM evaluation_runs WHERE ended_at IS NULL)`

const END_OPEN = `
  UPDATE evaluation_runs SET ended_at = ?1, outcome = 'failed', reason = ?2 WHERE ended_at IS NULL`

const END_RUN = `
  UPDATE evaluation_runs SET ended_at = ?2, outcome = ?3, ranking_version = ?4, starts_a_minute = ?5, reason = ?6
  WHERE id = ?1`

const INSERT_REJECTIONS = `
  INSERT INTO evaluation_rejections (run, model, reason)
  SELECT ?1, value ->> 0, value ->> 1 FROM json_each(?2) WHERE true
  ON CONFLICT (run, model) DO NOTHING`

/** The lease, and all requests of the day. */
const COUNTED = `
  SELECT EXISTS (SELECT 1 FROM evaluation_lease WHERE token = ?3 AND expires_at > ?2), ${COUNTED_OF_DAY}`

const INSERT_ATTEMPT = `
  INSERT INTO evaluation_attempts (run, model, kind, day, sent_at) VALUES (?, ?, ?, ?, ?) RETURNING id`

const SETTLE_ATTEMPT = `
  UPDATE evaluation_attempts
  SET settled_at = ?2, class = ?3, status = ?4, latency_ms = ?5, as_asked = ?6, tasks = ?7
  WHERE id = ?1`

const UPSERT_ENDPOINTS = `
  INSERT INTO evaluation_endpoints (model, checked_at, usable, latency_ms)
  SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?1) WHERE true
  ON CONFLICT (model) DO UPDATE SET
    checked_at = excluded.checked_at, usable = excluded.usable, latency_ms = excluded.latency_ms`

const UPSERT_SCORE = `
  INSERT INTO evaluation_scores (model, day, evaluated_at, complete, points, tasks) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
  ON CONFLICT (model, day) DO UPDATE SET
    evaluated_at = excluded.evaluated_at, complete = excluded.complete, points = excluded.points,
    tasks = excluded.tasks
  WHERE excluded.complete >= complete`

/**
 * Converts a row to an attempt.
 *
 * @throws Refusal `storage_damaged` if the row is invalid
 */
function toAttempt(row: typeof evaluationAttempts.$inferSelect): ModelAttempt {
  const { id, run, model, kind, day, sentAt, settledAt, status, latencyMs, asAsked, tasks } = row
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
  return { id, run, model, kind, day, sentAt, end }
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
