import { randomUUID } from 'node:crypto'
import { integer } from 'drizzle-orm/sqlite-core/columns/integer'
import { text } from 'drizzle-orm/sqlite-core/columns/text'
import { sqliteTable } from 'drizzle-orm/sqlite-core/table'
import { getTableName } from 'drizzle-orm/table'
import type { LeaseGrant, LeaseHolder, LeaseKeeper } from '../../domain/jobs.ts'
import type { Database } from './database.ts'
import { insertRow, selectRows } from './rows.ts'
import type { SqlTransaction } from './rows.ts'

type LeaseTable = ReturnType<typeof leaseTable>

/** Keeps a lease in a table of a store. */
export function leaseOn(database: Database, lease: LeaseTable): LeaseKeeper {
  const table = getTableName(lease)
  const change = async (sql: string, args: (string | number)[]): Promise<boolean> =>
    (await database.execute({ sql, args })).rowsAffected === 1
  return {
    takeLease: (holder, now, forMs, isDead) =>
      database.transact((tx) => takeLease(tx, lease, holder, now, forMs, isDead)),

    renewLease: (token, now, forMs) =>
      change(`UPDATE ${table} SET expires_at = ? WHERE token = ? AND expires_at > ?`, [
        now + forMs,
        token,
        now,
      ]),

    releaseLease: async (token) => void (await change(`DELETE FROM ${table} WHERE token = ?`, [token])),
  }
}

async function takeLease(
  tx: SqlTransaction,
  lease: LeaseTable,
  holder: LeaseHolder,
  now: number,
  forMs: number,
  isDead: (process: string) => boolean,
): Promise<LeaseGrant> {
  const [held] = await selectRows(tx, lease, 'id')
  // A lease whose end is too far ahead was taken with a wrong clock; twice the length allows for skew.
  const ended = !held || held.expiresAt <= now || held.expiresAt > now + 2 * forMs
  if (!ended && (held.process === null || !isDead(held.process))) {
    return { granted: false, heldBy: held.holder, since: held.takenAt, until: held.expiresAt }
  }
  const token = randomUUID()
  const table = getTableName(lease)
  const { name, process } = holder
  const row = { id: 1, token, holder: name, process, takenAt: now, expiresAt: now + forMs }
  await tx.batch([`DELETE FROM ${table}`, insertRow(table, row)])
  return { granted: true, token }
}

/** Defines the table of a lease, which has one row while the lease is held. */
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
