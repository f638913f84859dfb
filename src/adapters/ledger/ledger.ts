import { randomUUID } from 'node:crypto'
import { and, eq, gt, isNull, max, sql } from 'drizzle-orm'
import type { LibSQLDatabase } from 'drizzle-orm/libsql'
import type { Clock, Ledger } from '../../domain/ports.ts'
import { GENESIS_LEAF } from '../../domain/year/chain.ts'
import { ABSENT, fileWitness } from '../file-witness.ts'
import type { Database } from '../libsql/database.ts'
import { decodeJsonRows } from '../libsql/json-rows.ts'
import { rowReader, selectAllAsJson, selectRows } from './rows.ts'
import { attempts, entries, lease, legacyPublications } from './schema.ts'

type Orm = Pick<LibSQLDatabase, 'select' | 'insert' | 'update' | 'delete'>

/**
 * The ledger on libSQL. Every write is one transaction on a rollback journal with `synchronous=FULL`, the driver's
 * default, so that what was acknowledged survives a crash.
 *
 * @param fileClock the clock the file system stamps with; see {@link fileWitness}
 */
export function libsqlLedger(database: Database, fileClock: Clock = Date.now): Ledger {
  return {
    read: () =>
      database.use(async ({ client }) => {
        const [versioned, legacy] = await client.batch(
          [selectAllAsJson(entries, 'seq'), selectAllAsJson(legacyPublications, 'position')],
          'read',
        )
        if (!versioned || !legacy) throw new Error('a batch of two statements gave fewer than two results')
        return {
          rows: decodeJsonRows(versioned.rows[0]?.[0], 'the ledger').map(rowReader(entries)),
          legacy: decodeJsonRows(legacy.rows[0]?.[0], 'the legacy ledger').map(rowReader(legacyPublications)),
        }
      }),

    async witness() {
      // Held open or about to be rolled back, the journal means that the file alone does not tell the state.
      const journals = fileWitness([`${database.path}-journal`, `${database.path}-wal`], fileClock)
      return journals === `${ABSENT}|${ABSENT}` ? fileWitness([database.path], fileClock) : null
    },

    attempts: (asOfDay) =>
      database.use(({ orm }) => selectRows(orm, attempts, 'attempt', eq(attempts.asOfDay, asOfDay))),

    firstAttemptDay: () =>
      database.use(async ({ orm }) => {
        const first = sql`${attempts.asOfDay} = (SELECT min(as_of_day) FROM attempts)`
        const [row] = await selectRows(orm, attempts, 'attempt', first)
        return row?.asOfDay ?? null
      }),

    takeLease: (holder, now, forMs, isDead) =>
      database.use(({ orm }) =>
        orm.transaction(async (transaction) => {
          const [held] = await selectRows(transaction, lease, 'id', undefined)
          const free = !held || held.expiresAt <= now || (held.process !== null && isDead(held.process))
          if (!free) {
            return { granted: false, heldBy: held.holder, since: held.takenAt, until: held.expiresAt }
          }
          const token = randomUUID()
          const row = {
            token,
            holder: holder.name,
            process: holder.process,
            takenAt: now,
            expiresAt: now + forMs,
          }
          await transaction
            .insert(lease)
            .values({ id: 1, ...row })
            .onConflictDoUpdate({ target: lease.id, set: row })
          return { granted: true, token }
        }),
      ),

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

    countAttempt: (asOfDay, attempt, startedAt, token) =>
      database.use(({ orm }) =>
        orm.transaction(async (transaction) => {
          if (!(await holdsLease(transaction, token, startedAt))) return false
          const [last] = await transaction
            .select({ attempt: max(attempts.attempt) })
            .from(attempts)
            .where(eq(attempts.asOfDay, asOfDay))
          if ((last?.attempt ?? 0) !== attempt - 1) return false
          await transaction.insert(attempts).values({ asOfDay, attempt, startedAt })
          return true
        }),
      ),

    failAttempt: (asOfDay, attempt, failedAt, reason) =>
      database.use(async ({ orm }) => {
        await orm
          .update(attempts)
          .set({ failedAt, reason })
          .where(and(eq(attempts.asOfDay, asOfDay), eq(attempts.attempt, attempt), isNull(attempts.failedAt)))
      }),

    append: (row, { token, clock, withinMs }) =>
      database.use(({ orm }) =>
        orm.transaction(async (transaction) => {
          const [newest] = await transaction.select({ seq: max(entries.seq) }).from(entries)
          const [last] = await selectRows(transaction, entries, 'seq', eq(entries.seq, row.seq - 1))
          const follows =
            (newest?.seq ?? 0) === row.seq - 1 && (last?.leaf ?? GENESIS_LEAF) === row.previousLeaf
          if (!follows) return 'ledger-moved'
          if (row.publishedAt !== null && row.publishedAt <= (await lastPublishedAt(transaction))) {
            return 'clock-went-back'
          }
          const now = clock()
          if (!(await holdsLease(transaction, token, now))) return 'lease-lost'
          if (now < row.recordedAt) return 'clock-went-back'
          if (now - row.recordedAt > withinMs) return 'too-late'
          await transaction.insert(entries).values(row)
          return null
        }),
      ),

    ping: () =>
      database.use(async ({ orm }) => {
        await orm.select({ seq: max(entries.seq) }).from(entries)
      }),
  }
}

async function holdsLease(orm: Orm, token: string, now: number): Promise<boolean> {
  const held = await orm
    .select({ id: lease.id })
    .from(lease)
    .where(and(eq(lease.token, token), gt(lease.expiresAt, now)))
  return held.length === 1
}

async function lastPublishedAt(orm: Orm): Promise<number> {
  const [own] = await orm.select({ at: max(entries.publishedAt) }).from(entries)
  const [legacy] = await orm.select({ at: max(legacyPublications.publishedAt) }).from(legacyPublications)
  return Math.max(own?.at ?? Number.NEGATIVE_INFINITY, legacy?.at ?? Number.NEGATIVE_INFINITY)
}
