import { randomUUID } from 'node:crypto'
import type { InValue, Transaction } from '@libsql/client'
import { and, eq, getTableColumns, gt, isNull, max, sql } from 'drizzle-orm'
import type { LibSQLDatabase } from 'drizzle-orm/libsql'
import type { AppendRefusal, Clock, Ledger } from '../../domain/ports.ts'
import { GENESIS_LEAF } from '../../domain/year/chain.ts'
import type { FoundingMark, LedgerRow } from '../../domain/year/ledger.ts'
import { ABSENT, fileWitness } from '../file-witness.ts'
import type { Database } from '../libsql/database.ts'
import { isBusy } from '../libsql/guard.ts'
import { decodeJsonRows, selectJsonRows } from '../libsql/json-rows.ts'
import { beginFounding, found } from './founding.ts'
import { rowReader, selectAllAsJson, selectRows } from './rows.ts'
import { attempts, entries, founding, lease, legacyPublications } from './schema.ts'

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
        const [versioned, legacy, begun] = await client.batch(
          [
            selectAllAsJson(entries, 'seq'),
            selectAllAsJson(legacyPublications, 'position'),
            selectAllAsJson(founding, 'id'),
          ],
          'read',
        )
        if (!versioned || !legacy || !begun)
          throw new Error('a batch of three statements gave fewer than three results')
        return {
          rows: decodeJsonRows(versioned.rows[0]?.[0], 'the ledger').map(rowReader(entries)),
          legacy: decodeJsonRows(legacy.rows[0]?.[0], 'the legacy ledger').map(rowReader(legacyPublications)),
          founding: markOf(decodeJsonRows(begun.rows[0]?.[0], 'the founding').map(rowReader(founding))),
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
          // A lease that ends later than any could was taken by a clock that was ahead; twice its length allows for skew.
          const ended = !held || held.expiresAt <= now || held.expiresAt > now + 2 * forMs
          const free = ended || (held.process !== null && isDead(held.process))
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
      database.use(async ({ client }) => {
        const transaction = await client.transaction('write')
        try {
          const now = clock()
          const refusal = await appendRefusal(transaction, row, token, now, withinMs)
          if (refusal !== null) {
            await transaction.rollback()
            return refusal
          }
          await transaction.execute(insertEntry(row))
          // A reader can hold the commit up; it must not come later than the row allows.
          await transaction.commitWithin(withinMs - (now - row.recordedAt))
          return null
        } catch (error) {
          transaction.close()
          if (isBusy(error)) return 'too-late'
          throw error
        }
      }),

    beginFounding: (mark, guard) => database.use(({ client }) => beginFounding(client, mark, guard)),

    found: (beginning, seal, guard) => database.use(({ client }) => found(client, beginning, seal, guard)),

    ping: () =>
      database.use(async ({ orm }) => {
        await orm.select({ seq: max(entries.seq) }).from(entries)
      }),
  }
}

function markOf([row]: readonly (typeof founding.$inferSelect)[]): FoundingMark | null {
  return row ? { seq: row.seq, leaf: row.leaf, beganAt: row.beganAt } : null
}

async function holdsLease(orm: Orm, token: string, now: number): Promise<boolean> {
  const held = await orm
    .select({ id: lease.id })
    .from(lease)
    .where(and(eq(lease.token, token), gt(lease.expiresAt, now)))
  return held.length === 1
}

/** Why a row may not be appended now, judged inside the transaction that would append it. */
async function appendRefusal(
  transaction: Pick<Transaction, 'execute'>,
  row: LedgerRow,
  token: string,
  now: number,
  withinMs: number,
): Promise<AppendRefusal | null> {
  const [newest] = (await transaction.execute('SELECT max(seq) AS seq FROM entries')).rows
  const last = await selectJsonRows(transaction, SELECT_LEAF, [row.seq - 1], 'the ledger')
  const lastLeaf = last[0]?.[0] ?? GENESIS_LEAF
  if (Number(newest?.['seq'] ?? 0) !== row.seq - 1 || lastLeaf !== row.previousLeaf) return 'ledger-moved'
  const [published] = (await transaction.execute(SELECT_LAST_PUBLISHED)).rows
  const lastPublishedAt = published?.['at'] ?? null
  if (row.publishedAt !== null && lastPublishedAt !== null && row.publishedAt <= Number(lastPublishedAt)) {
    return 'clock-went-back'
  }
  const held = await transaction.execute({ sql: SELECT_HELD_LEASE, args: [token, now] })
  if (held.rows.length !== 1) return 'lease-lost'
  if (now < row.recordedAt) return 'clock-went-back'
  return now - row.recordedAt > withinMs ? 'too-late' : null
}

const SELECT_LEAF = 'SELECT CAST(json_group_array(json_array(leaf)) AS BLOB) FROM entries WHERE seq = ?'

const SELECT_LAST_PUBLISHED = `
  SELECT max(at) AS at FROM (
    SELECT max(published_at) AS at FROM entries UNION ALL SELECT max(published_at) FROM legacy_publications
  )`

const SELECT_HELD_LEASE = 'SELECT id FROM lease WHERE token = ? AND expires_at > ?'

function insertEntry(row: LedgerRow): { sql: string; args: InValue[] } {
  const columns = Object.entries(getTableColumns(entries))
  const names = columns.map(([, { name }]) => name).join(', ')
  const marks = columns.map(() => '?').join(', ')
  const values = new Map<string, InValue>(Object.entries(row))
  return {
    sql: `INSERT INTO entries (${names}) VALUES (${marks})`,
    args: columns.map(([property]) => values.get(property) ?? null),
  }
}
