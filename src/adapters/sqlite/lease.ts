import { randomUUID } from 'node:crypto'
import { integer } from 'drizzle-orm/sqlite-core/columns/integer'
import { text } from 'drizzle-orm/sqlite-core/columns/text'
import { sqliteTable } from 'drizzle-orm/sqlite-core/table'
import { getTableName } from 'drizzle-orm/table'
import type { HeldLease, LeaseGrant, LeaseHolder, LeaseKeeper } from '../../domain/lease.ts'
import type { Database } from './database.ts'
import { selectRows } from './rows.ts'
import type { SqlReader } from './rows.ts'

type LeaseTable = ReturnType<typeof leaseTable>

/** Attempts to take a lease that another process changes meanwhile. */
const LEASE_ATTEMPTS = 10

/** Keeps a lease in a table of a store. */
export function leaseOn(database: Database, lease: LeaseTable): LeaseKeeper {
  const table = getTableName(lease)
  const change = (sql: string, args: (string | number)[]): Promise<boolean> =>
    database.use(async (client) => (await client.execute({ sql, args })).rowsAffected === 1)
  return {
    takeLease: (holder, now, forMs, isDead) =>
      database.use(async (client) => {
        for (let attempt = 1; attempt <= LEASE_ATTEMPTS; attempt += 1) {
          const grant = await tryLease(client, lease, holder, now, forMs, isDead)
          if (grant !== null) return grant
        }
        throw new Error(`the lease changed its holder ${LEASE_ATTEMPTS} times while this run requested it`)
      }),

    renewLease: (token, now, forMs) =>
      change(`UPDATE ${table} SET expires_at = ? WHERE token = ? AND expires_at > ?`, [
        now + forMs,
        token,
        now,
      ]),

    releaseLease: async (token) => void (await change(`DELETE FROM ${table} WHERE token = ?`, [token])),
  }
}

/** Tries once to take the lease; null if it changed between reading and taking it. */
async function tryLease(
  client: SqlReader,
  lease: LeaseTable,
  { name, process }: LeaseHolder,
  now: number,
  forMs: number,
  isDead: (process: string) => boolean,
): Promise<LeaseGrant | null> {
  const [held] = await selectRows(client, lease, 'id')
  // A lease whose end is too far ahead was taken with a wrong clock; twice the length allows for skew.
  const ended = !held || held.expiresAt <= now || held.expiresAt > now + 2 * forMs
  if (!ended && (held.process === null || !isDead(held.process))) {
    return { granted: false, heldBy: held.holder, since: held.takenAt, until: held.expiresAt }
  }
  const token = randomUUID()
  const table = getTableName(lease)
  const columns = '(token, holder, process, taken_at, expires_at, id)'
  const sql = held
    ? `UPDATE ${table} SET ${columns} = (?1, ?2, ?3, ?4, ?5, 1) WHERE token = ?6 AND expires_at = ?7`
    : `INSERT INTO ${table} ${columns} VALUES (?1, ?2, ?3, ?4, ?5, 1) ON CONFLICT DO NOTHING`
  const args = [token, name, process, now, now + forMs, ...(held ? [held.token, held.expiresAt] : [])]
  const taken = await client.execute({ sql, args })
  return taken.rowsAffected === 1 ? { granted: true, token } : null
}

/** Reads the lease of a store that is opened read-only; null if it is free. */
export async function readLease(reader: SqlReader, lease: LeaseTable): Promise<HeldLease | null> {
  const [held] = await selectRows(reader, lease, 'id')
  if (held === undefined) return null
  const { holder, process, takenAt, expiresAt } = held
  return { holder, process, takenAt, expiresAt }
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
