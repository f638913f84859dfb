import { randomUUID } from 'node:crypto'
import { and, eq, gt } from 'drizzle-orm/sql/expressions/conditions'
import { integer } from 'drizzle-orm/sqlite-core/columns/integer'
import { text } from 'drizzle-orm/sqlite-core/columns/text'
import { sqliteTable } from 'drizzle-orm/sqlite-core/table'
import { getTableName } from 'drizzle-orm/table'
import type { HeldLease, LeaseGrant, LeaseHolder } from '../../domain/lease.ts'
import type { LeaseKeeper } from '../../domain/ports.ts'
import type { Database, Orm } from './database.ts'
import { rowDecoder, selectAllAsJson, selectJsonRows, selectRows } from './rows.ts'
import type { SqlReader } from './rows.ts'

type LeaseTable = ReturnType<typeof leaseTable>

/** Attempts to take a lease that another process changes meanwhile. */
const LEASE_ATTEMPTS = 10

/** Keeps a lease in a table of a store. */
export function leaseOn(database: Database, lease: LeaseTable): LeaseKeeper {
  return {
    takeLease: (holder, now, forMs, isDead) =>
      database.use(async ({ orm }) => {
        for (let attempt = 1; attempt <= LEASE_ATTEMPTS; attempt += 1) {
          const grant = await tryLease(orm, lease, holder, now, forMs, isDead)
          if (grant !== null) return grant
        }
        throw new Error(`the lease changed its holder ${LEASE_ATTEMPTS} times while this run requested it`)
      }),

    renewLease: (token, now, forMs) =>
      database.use(async ({ orm }) => {
        const renewed = await orm
          .update(lease)
          .set({ expiresAt: now + forMs })
          .where(and(eq(lease.token, token), gt(lease.expiresAt, now)))
        return renewed.rowsAffected === 1
      }),

    releaseLease: (token) =>
      database.use(async ({ orm }) => {
        await orm.delete(lease).where(eq(lease.token, token))
      }),
  }
}

/** Tries once to take the lease; null if it changed between reading and taking it. */
async function tryLease(
  orm: Orm,
  lease: LeaseTable,
  holder: LeaseHolder,
  now: number,
  forMs: number,
  isDead: (process: string) => boolean,
): Promise<LeaseGrant | null> {
  const [held] = await selectRows(orm, lease, 'id', undefined)
  // A lease whose end is too far ahead was taken with a wrong clock; twice the length allows for skew.
  const ended = !held || held.expiresAt <= now || held.expiresAt > now + 2 * forMs
  if (!ended && (held.process === null || !isDead(held.process))) {
    return { granted: false, heldBy: held.holder, since: held.takenAt, until: held.expiresAt }
  }
  const token = randomUUID()
  const row = { token, holder: holder.name, process: holder.process, takenAt: now, expiresAt: now + forMs }
  const taken = held
    ? await orm
        .update(lease)
        .set(row)
        .where(and(eq(lease.token, held.token), eq(lease.expiresAt, held.expiresAt)))
    : await orm
        .insert(lease)
        .values({ id: 1, ...row })
        .onConflictDoNothing()
  return taken.rowsAffected === 1 ? { granted: true, token } : null
}

/** Reads the lease of a store that is opened read-only; null if it is free. */
export async function readLease(reader: SqlReader, lease: LeaseTable): Promise<HeldLease | null> {
  const [cells] = await selectJsonRows(
    reader,
    selectAllAsJson(lease, 'id'),
    [],
    `the table ${getTableName(lease)}`,
  )
  if (cells === undefined) return null
  const { holder, process, takenAt, expiresAt } = rowDecoder(lease)(cells)
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
