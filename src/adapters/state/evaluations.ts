import { and, eq, gte, isNotNull, sql } from 'drizzle-orm'
import type { LibSQLDatabase } from 'drizzle-orm/libsql'
import { EVALUATIONS_KEPT_DAYS } from '../../domain/models/evaluation-ledger.ts'
import type { EvaluationLedger } from '../../domain/models/evaluation-ledger.ts'
import { addDays, DAY_MS, dayOf } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import type { Database } from '../libsql/database.ts'
import { leaseOn } from '../libsql/lease.ts'
import type { StoreClient } from '../libsql/store-client.ts'
import { selectRows } from '../libsql/table-rows.ts'
import { attemptOf, endColumns, scoreOfRow } from './rows.ts'
import { evaluationAttempts, evaluationLease, evaluationRuns, evaluationScores } from './schema.ts'

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

    countAttempt: ({ run, model, kind, sentAt }, { token, sentBeforeAtMost }) =>
      database.use(async ({ client }) => {
        const args = [run, model, kind, dayOf(sentAt), sentAt, token, sentBeforeAtMost]
        const { rows } = await client.execute({ sql: COUNT_ATTEMPT, args })
        return rows[0] ? Number(rows[0][0]) : null
      }),

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
      { sql: END_KILLED, args: [now] },
    ],
    'write',
  )
  return ended?.rowsAffected ?? 0
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
  UPDATE evaluation_attempts SET settled_at = ?, class = 'abandoned'
  WHERE settled_at IS NULL AND run IN (SELECT id FROM evaluation_runs WHERE ended_at IS NULL)`

const END_KILLED = `
  UPDATE evaluation_runs SET ended_at = ?, outcome = 'failed', reason = 'killed' WHERE ended_at IS NULL`

const END_RUN = `
  UPDATE evaluation_runs SET ended_at = ?2, outcome = ?3, ranking_version = ?4, starts_a_minute = ?5, reason = ?6
  WHERE id = ?1`

const INSERT_REJECTIONS = `
  INSERT INTO evaluation_rejections (run, model, reason)
  SELECT ?1, value ->> 0, value ->> 1 FROM json_each(?2) WHERE true
  ON CONFLICT (run, model) DO NOTHING`

const COUNT_ATTEMPT = `
  INSERT INTO evaluation_attempts (run, model, kind, day, sent_at) SELECT ?1, ?2, ?3, ?4, ?5
  WHERE EXISTS (SELECT 1 FROM evaluation_lease WHERE token = ?6 AND expires_at > ?5)
    AND (SELECT count(*) FROM evaluation_attempts WHERE day = ?4 AND model = ?2) <= ?7
  RETURNING id`

const UPSERT_SCORE = `
  INSERT INTO evaluation_scores (model, day, evaluated_at, complete, points, tasks) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
  ON CONFLICT (model, day) DO UPDATE SET
    evaluated_at = excluded.evaluated_at, complete = excluded.complete, points = excluded.points,
    tasks = excluded.tasks
  WHERE excluded.complete >= complete`
