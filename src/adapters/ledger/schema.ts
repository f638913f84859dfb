import { integer } from 'drizzle-orm/sqlite-core/columns/integer'
import { text } from 'drizzle-orm/sqlite-core/columns/text'
import { primaryKey } from 'drizzle-orm/sqlite-core/primary-keys'
import { sqliteTable } from 'drizzle-orm/sqlite-core/table'
import type { FoundingMark } from '../../domain/year/ledger.ts'
import { leaseTable } from '../sqlite/lease.ts'

/** Tables of the ledger database; migrations/ledger holds the constraints and triggers that keep them append-only. */

export const entries = sqliteTable('entries', {
  seq: integer('seq').primaryKey(),
  kind: text('kind').notNull(),
  recordedAt: integer('recorded_at').notNull(),
  asOfDay: text('as_of_day'),
  publicationId: text('publication_id'),
  algorithmVersion: text('algorithm_version'),
  schemaVersion: integer('schema_version'),
  envelopeKind: text('envelope_kind'),
  windowStart: integer('window_start'),
  windowEnd: integer('window_end'),
  generatedAt: integer('generated_at'),
  publishedAt: integer('published_at'),
  sha256: text('sha256'),
  byteSize: integer('byte_size'),
  reason: text('reason'),
  attempts: integer('attempts'),
  legacyRows: integer('legacy_rows'),
  legacyDigest: text('legacy_digest'),
  previousLeaf: text('previous_leaf').notNull(),
  leaf: text('leaf').notNull(),
})

export const legacyPublications = sqliteTable('legacy_publications', {
  position: integer('position').primaryKey(),
  publicationId: text('publication_id').notNull(),
  algorithmVersion: text('algorithm_version').notNull(),
  schemaVersion: integer('schema_version').notNull(),
  envelopeKind: text('envelope_kind').notNull(),
  asOfDay: text('as_of_day').notNull(),
  windowStart: integer('window_start').notNull(),
  windowEnd: integer('window_end').notNull(),
  generatedAt: integer('generated_at').notNull(),
  publishedAt: integer('published_at').notNull(),
  sha256: text('sha256').notNull(),
  byteSize: integer('byte_size').notNull(),
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

/** What the one row of the table `founding` says. */
export function markOf(row: typeof founding.$inferSelect | undefined): FoundingMark | null {
  return row ? { seq: row.seq, leaf: row.leaf, beganAt: row.beganAt } : null
}
