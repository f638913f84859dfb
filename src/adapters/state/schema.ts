import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { leaseTable } from '../sqlite/lease.ts'

/** Tables of the state database that are read as whole rows; migrations/state describes all tables and columns. */

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

export const evaluationEndpoints = sqliteTable('evaluation_endpoints', {
  model: text('model').primaryKey(),
  checkedAt: integer('checked_at').notNull(),
  usable: integer('usable').notNull(),
  latencyMs: integer('latency_ms'),
})

export const evaluationLease = leaseTable('evaluation_lease')

export const chatKeys = sqliteTable('chat_keys', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  name: text('name').notNull(),
  digest: text('digest').notNull(),
  perDay: integer('per_day').notNull(),
  perMinute: integer('per_minute').notNull(),
  createdAt: integer('created_at').notNull(),
  revokedAt: integer('revoked_at'),
})

export const audits = sqliteTable('audits', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  endedAt: integer('ended_at').notNull(),
  ok: integer('ok').notNull(),
  complete: integer('complete').notNull(),
  whole: integer('whole').notNull(),
  publications: integer('publications').notNull(),
  objects: integer('objects').notNull(),
  bytes: integer('bytes').notNull(),
  gaps: integer('gaps').notNull(),
  damage: integer('damage').notNull(),
  headSeq: integer('head_seq').notNull(),
  headLeaf: text('head_leaf').notNull(),
})

export const jobs = sqliteTable('jobs', {
  job: text('job').primaryKey(),
  startedAt: integer('started_at').notNull(),
  endedAt: integer('ended_at').notNull(),
  exitCode: integer('exit_code').notNull(),
  lastSuccessAt: integer('last_success_at'),
})
