import { integer } from 'drizzle-orm/sqlite-core/columns/integer'
import { text } from 'drizzle-orm/sqlite-core/columns/text'
import { primaryKey } from 'drizzle-orm/sqlite-core/primary-keys'
import { sqliteTable } from 'drizzle-orm/sqlite-core/table'
import { ENTRY_COLUMNS, LEGACY_COLUMNS } from '../../domain/year/ledger.ts'
import type { Columns, FoundingMark } from '../../domain/year/ledger.ts'
import { leaseTable } from '../sqlite/lease.ts'
import { snakeCase } from '../sqlite/rows.ts'

/** Tables of the ledger database; migrations/ledger holds the constraints and triggers that keep them append-only. */

const BUILDERS = {
  integer: (name: string) => integer(name).notNull(),
  'integer?': (name: string) => integer(name),
  text: (name: string) => text(name).notNull(),
  'text?': (name: string) => text(name),
}

type BuiltColumns<C extends Columns> = { [Name in keyof C]: ReturnType<(typeof BUILDERS)[C[Name]]> }

/** Converts the domain's column definitions to columns in `snake_case`. */
function buildColumns<C extends Columns>(columns: C): BuiltColumns<C> {
  const pairs = Object.entries(columns).map(([name, type]) => [name, BUILDERS[type](snakeCase(name))])
  return Object.fromEntries(pairs) as BuiltColumns<C>
}

export const entries = sqliteTable('entries', {
  ...buildColumns(ENTRY_COLUMNS),
  seq: integer('seq').primaryKey(),
})

export const legacyPublications = sqliteTable('legacy_publications', {
  ...buildColumns(LEGACY_COLUMNS),
  position: integer('position').primaryKey(),
})

export const attempts = sqliteTable(
  'attempts',
  {
    asOfDay: text('as_of_day').notNull(),
    attempt: integer('attempt').notNull(),
    startedAt: integer('started_at').notNull(),
    failedAt: integer('failed_at'),
    reason: text('reason'),
  },
  (table) => [primaryKey({ columns: [table.asOfDay, table.attempt] })],
)

export const lease = leaseTable('lease')

export const founding = sqliteTable('founding', {
  id: integer('id').primaryKey(),
  seq: integer('seq').notNull(),
  leaf: text('leaf').notNull(),
  beganAt: integer('began_at').notNull(),
})

/** Converts the only row of the table `founding`. */
export function toFoundingMark(row: typeof founding.$inferSelect | undefined): FoundingMark | null {
  return row ? { seq: row.seq, leaf: row.leaf, beganAt: row.beganAt } : null
}
