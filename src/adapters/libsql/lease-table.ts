import { integer } from 'drizzle-orm/sqlite-core/columns/integer'
import { text } from 'drizzle-orm/sqlite-core/columns/text'
import { sqliteTable } from 'drizzle-orm/sqlite-core/table'

/** The table of a lease, which has one row while the lease is held. */
// oxlint-disable-next-line typescript/explicit-module-boundary-types -- the type of a table is its columns
export const leaseTable = (name: string) =>
  sqliteTable(name, {
    id: integer('id').primaryKey(),
    token: text('token').notNull(),
    holder: text('holder').notNull(),
    process: text('process'),
    takenAt: integer('taken_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
  })
