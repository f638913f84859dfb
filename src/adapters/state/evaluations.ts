import { and, eq, gte, isNotNull, sql } from 'drizzle-orm'
import type { LibSQLDatabase } from 'drizzle-orm/libsql'
import { EVALUATIONS_KEPT_DAYS } from '../../domain/models/evaluation-ledger.ts'
import { ANSWER_CLASSES } from '../../domain/models/answer-class.ts'
import type { CountedAttempt, EvaluationLedger } from '../../domain/models/evaluation-ledger.ts'
import { addDays, DAY_MS, dayOf } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import type { Database } from '../libsql/database.ts'
import { leaseOn } from '../libsql/lease.ts'
import type { StoreClient } from '../libsql/store-client.ts'
import { selectRows } from '../libsql/table-rows.ts'
import { COUNTED_OF_DAY } from './router-allowance.ts'
import { attemptOf, endColumns, scoreOfRow } from './rows.ts'
import {
  chatRouterRequests,
  evaluationAttempts,
  evaluationEndpoints,
  evaluationLease,
  evaluationRuns,
  evaluationScores,
} from './schema.ts'

/** Runs, attempts, scores and rejections on libSQL. */
export function libsqlEvaluations(database: Database): EvaluationLedger {
  return {
    ...leaseOn(database, evaluationLease),
    sweep: (now) => database.use(({ client }) => sweep(client, now)),
    beginRun: ({ day, refreshMode, startedAt }) =>
      database.use(({ client }) => beginRun(client, day, refreshMode, startedAt)),

    endRun: (run, end, rejections) =>
      database.use(async ({ client }) => {
        const { endedAt, outcome, rankingVersion, startsAMinute, reason } = end
        const rows = JSON.stringify(rejections.map((rejection) => [rejection.id, rejection.reason]))
        await client.batch(
          [
            { sql: END_RUN, args: [run, endedAt, outcome, rankingVersion, startsAMinute, reason] },
            { sql: INSERT_REJECTIONS, args: [run, rows] },
          ],
          'write',
        )
      }),

    abandonRun: (run, endedAt, reason) =>
      database.use(async ({ client }) => {
        await client.batch(
          [
            { sql: `${ABANDON_ATTEMPTS} AND run = ?2`, args: [endedAt, run] },
            { sql: `${END_OPEN} AND id = ?3`, args: [endedAt, reason, run] },
          ],
          'write',
        )
      }),

    countAttempt: (attempt, guard) => database.use(({ client }) => countAttempt(client, attempt, guard)),

    settleAttempt: (attempt, end) =>
      database.use(async ({ orm }) => {
        await orm.update(evaluationAttempts).set(endColumns(end)).where(eq(evaluationAttempts.id, attempt))
      }),

    saveScore: ({ model, day, evaluatedAt, complete, tasks }) =>
      database.use(async ({ client }) => {
        const points = tasks.reduce((sum, task) => sum + task.points, 0)
        const args = [model, day, evaluatedAt, complete ? 1 : 0, points, JSON.stringify(tasks)]
        await client.execute({ sql: UPSERT_SCORE, args })
      }),

    attemptsSince: (since) =>
      database.use(async ({ orm }) => {
        const sentSince = gte(evaluationAttempts.sentAt, since)
        return (await selectRows(orm, evaluationAttempts, 'id', sentSince)).map(attemptOf)
      }),

    scoresSince: (day) =>
      database.use(async ({ orm }) => {
        const rows = await selectRows(orm, evaluationScores, 'day', gte(evaluationScores.day, day))
        return rows.map(scoreOfRow)
      }),

    saveEndpoints: (records) =>
      database.use(async ({ client }) => {
        const rows = records.map(({ model, checkedAt, usable, latencyMs }) => [
          model,
          checkedAt,
          usable ? 1 : 0,
          latencyMs,
        ])
        await client.execute({ sql: UPSERT_ENDPOINTS, args: [JSON.stringify(rows)] })
      }),

    endpointsSince: (since) =>
      database.use(async ({ orm }) => {
        const recent = gte(evaluationEndpoints.checkedAt, since)
        const rows = await selectRows(orm, evaluationEndpoints, 'model', recent)
        return rows.map(({ usable, ...record }) => ({ ...record, usable: usable === 1 }))
      }),

    chatRequestsSince: (since) =>
      database.use(async ({ orm }) => {
        const rows = await selectRows(
          orm,
          chatRouterRequests,
          'sent_at',
          gte(chatRouterRequests.sentAt, since),
        )
        return rows.map(({ sentAt }) => sentAt)
      }),

    learnedSince: (since) =>
      database.use(async ({ orm }) => {
        const known = and(gte(evaluationRuns.startedAt, since), isNotNull(evaluationRuns.startsAMinute))
        const [lowest] = await selectRows(orm, evaluationRuns, 'starts_a_minute', known)
        return lowest?.startsAMinute ?? null
      }),

    versionsOf: (day) => database.use(({ orm }) => versionsOf(orm, day)),

    ping: () =>
      database.use(async ({ client }) => {
        await client.execute('SELECT 1 FROM evaluation_runs LIMIT 1')
      }),
  }
}

async function sweep(client: StoreClient, now: Instant): Promise<number> {
  const [, ended] = await client.batch(
    [
      { sql: ABANDON_ATTEMPTS, args: [now] },
      { sql: END_OPEN, args: [now, 'killed'] },
    ],
    'write',
  )
  return ended?.rowsAffected ?? 0
}

async function countAttempt(
  client: StoreClient,
  { run, model, kind, sentAt }: Parameters<EvaluationLedger['countAttempt']>[0],
  { token, sentBeforeAtMost, countedBeforeAtMost }: Parameters<EvaluationLedger['countAttempt']>[1],
): Promise<CountedAttempt> {
  const day = dayOf(sentAt)
  const guards = [day, sentAt, model, token, sentBeforeAtMost, KEPT_BACK]
  // The reasons are of the same instant as the refusal: a batch is one transaction.
  const [inserted, looked] = await client.batch(
    [
      { sql: COUNT_ATTEMPT, args: [...guards, countedBeforeAtMost, run, kind] },
      { sql: `SELECT ${HAS_LEASE}, ${MODEL_HAS_LEFT}`, args: guards },
    ],
    'write',
  )
  const counted = inserted?.rows[0]?.[0]
  if (counted !== undefined && counted !== null) return { counted: Number(counted) }
  const [hasLease, modelHasLeft] = looked ? Array.from(looked.rows[0] ?? [], Number) : []
  if (hasLease !== 1) return { refused: 'lease_lost' }
  return { refused: modelHasLeft === 1 ? 'day_spent' : 'model_spent' }
}

async function beginRun(
  client: StoreClient,
  day: Day,
  refreshMode: string,
  startedAt: Instant,
): Promise<number> {
  const oldestDay = addDays(dayOf(startedAt), -EVALUATIONS_KEPT_DAYS)
  const oldest = startedAt - EVALUATIONS_KEPT_DAYS * DAY_MS
  const results = await client.batch(
    [
      { sql: 'DELETE FROM evaluation_attempts WHERE sent_at < ?', args: [oldest] },
      { sql: 'DELETE FROM evaluation_scores WHERE day < ?', args: [oldestDay] },
      { sql: 'DELETE FROM evaluation_runs WHERE started_at < ?', args: [oldest] },
      { sql: 'DELETE FROM evaluation_endpoints WHERE checked_at < ?', args: [oldest] },
      { sql: 'DELETE FROM chat_router_requests WHERE sent_at < ?', args: [oldest] },
      'DELETE FROM evaluation_rejections WHERE run NOT IN (SELECT id FROM evaluation_runs)',
      {
        sql: 'INSERT INTO evaluation_runs (day, refresh_mode, started_at) VALUES (?, ?, ?) RETURNING id',
        args: [day, refreshMode, startedAt],
      },
    ],
    'write',
  )
  return Number(results.at(-1)?.rows[0]?.[0])
}

async function versionsOf(orm: Pick<LibSQLDatabase, 'values'>, day: Day): Promise<string[]> {
  const given = and(eq(evaluationRuns.day, day), isNotNull(evaluationRuns.rankingVersion))
  const rows = await selectRows(orm, evaluationRuns, 'id', given ?? sql`false`)
  return rows.flatMap(({ rankingVersion }) => rankingVersion ?? [])
}

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

/** Classes of answers by which the account's limits kept a request from its model. */
const KEPT_BACK = JSON.stringify(
  Object.entries(ANSWER_CLASSES).flatMap(([name, { scope }]) => (scope === 'account' ? [name] : [])),
)

const HAS_LEASE = 'EXISTS (SELECT 1 FROM evaluation_lease WHERE token = ?4 AND expires_at > ?2)'

const MODEL_HAS_LEFT = `
  (SELECT count(*) FROM evaluation_attempts WHERE day = ?1 AND model = ?3
    AND (class IS NULL OR class NOT IN (SELECT value FROM json_each(?6)))) <= ?5`

const COUNT_ATTEMPT = `
  INSERT INTO evaluation_attempts (run, model, kind, day, sent_at) SELECT ?8, ?3, ?9, ?1, ?2
  WHERE ${HAS_LEASE} AND ${MODEL_HAS_LEFT} AND (?7 IS NULL OR ${COUNTED_OF_DAY} <= ?7)
  RETURNING id`

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
