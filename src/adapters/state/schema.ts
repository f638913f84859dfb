import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { leaseTable } from '../libsql/lease-table.ts'

/** Tables of the state database; migrations/state tells what each column holds. */

export const evaluationRuns = sqliteTable('evaluation_runs', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  day: text('day').notNull(),
  refreshMode: text('refresh_mode').notNull(),
  startedAt: integer('started_at').notNull(),
  endedAt: integer('ended_at'),
  outcome: text('outcome'),
  rankingVersion: text('ranking_version'),
  startsAMinute: integer('starts_a_minute'),
  reason: text('reason'),
})

export const evaluationAttempts = sqliteTable('evaluation_attempts', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  run: integer('run').notNull(),
  model: text('model').notNull(),
  kind: text('kind').notNull(),
  day: text('day').notNull(),
  sentAt: integer('sent_at').notNull(),
  settledAt: integer('settled_at'),
  class: text('class'),
  status: integer('status'),
  latencyMs: integer('latency_ms'),
  asAsked: integer('as_asked'),
  tasks: text('tasks'),
})

export const evaluationScores = sqliteTable(
  'evaluation_scores',
  {
    model: text('model').notNull(),
    day: text('day').notNull(),
    evaluatedAt: integer('evaluated_at').notNull(),
    complete: integer('complete').notNull(),
    points: integer('points').notNull(),
    tasks: text('tasks').notNull(),
  },
  (table) => [primaryKey({ columns: [table.model, table.day] })],
)

export const evaluationRejections = sqliteTable(
  'evaluation_rejections',
  {
    run: integer('run').notNull(),
    model: text('model').notNull(),
    reason: text('reason').notNull(),
  },
  (table) => [primaryKey({ columns: [table.run, table.model] })],
)

export const evaluationLease = leaseTable('evaluation_lease')
