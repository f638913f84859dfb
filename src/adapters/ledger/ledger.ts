import type { InStatement, InValue, ResultSet } from '@libsql/client'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core/table'
import type { Clock } from '../../domain/ports.ts'
import type { Ledger, Objects, YearReader } from '../../domain/year/ports.ts'
import { GENESIS_LEAF } from '../../domain/year/chain.ts'
import { proveLedger } from '../../domain/year/check.ts'
import type {
  AppendRefusal,
  Attempt,
  FoundingMark,
  FoundingRefusal,
  LedgerContents,
  LedgerRow,
} from '../../domain/year/ledger.ts'
import type { Founding } from '../../domain/year/legacy-import.ts'
import type { Database } from '../sqlite/database.ts'
import { leaseOn } from '../sqlite/lease.ts'
import {
  DeadlineExceeded,
  decodeJsonRows,
  insertAll,
  rowDecoder,
  selectAllAsJson,
  selectObjects,
  selectRows,
} from '../sqlite/rows.ts'
import type { ObjectColumns, StoreClient } from '../sqlite/rows.ts'
import { attempts, entries, founding, lease, legacyPublications, toFoundingMark } from './schema.ts'

/**
 * Creates the ledger on libSQL. Every write is one statement, batch or transaction, so that it happens as a whole or not
 * at all on every engine. The conditions that it depends on are checked in it, so that no other write can come between.
 *
 * @param fileClock the clock that sets the file system's timestamps; see {@link Database.changeToken}
 */
export function libsqlLedger(database: Database, fileClock: Clock = Date.now): Ledger {
  return {
    async read() {
      const [versioned, legacy, begun] = await database.batch(
        [
          selectAllAsJson(entries, 'seq'),
          selectAllAsJson(legacyPublications, 'position'),
          selectAllAsJson(founding, 'id'),
        ],
        'read',
      )
      return {
        rows: decodeRows(entries, versioned, 'the ledger'),
        legacy: decodeRows(legacyPublications, legacy, 'the legacy ledger'),
        founding: toFoundingMark(decodeRows(founding, begun, 'the founding')[0]),
      }
    },

    changeToken: () => Promise.resolve(database.changeToken(fileClock)),

    attempts: (asOfDay) =>
      selectRows(database, attempts, 'as_of_day, attempt', '?1 IS NULL OR as_of_day = ?1', [asOfDay ?? null]),

    ...leaseOn(database, lease),

    async countAttempt(asOfDay, attempt, startedAt, token) {
      const args = [asOfDay, attempt, startedAt, token]
      const counted = await database.execute({ sql: COUNT_ATTEMPT, args })
      return counted.rowsAffected === 1
    },

    async failAttempt(asOfDay, attempt, failedAt, reason) {
      await database.execute({ sql: FAIL_ATTEMPT, args: [asOfDay, attempt, failedAt, reason] })
    },

    async append(row, { token, clock, withinMs }) {
      const now = clock()
      if (now < row.recordedAt) return 'clock-went-back'
      const leftMs = withinMs - (now - row.recordedAt)
      if (leftMs < 0) return 'too-late'
      try {
        const conditions = conditionsOf(row, token, now)
        const [met, inserted] = await database.batchWithin(appendStatements(row, conditions), leftMs)
        if (inserted?.rowsAffected === 1) return null
        const unmet = conditions.find((_, index) => met?.rows[0]?.[index] !== 1)
        if (unmet) return unmet.refusal
        throw new Error(`entry ${row.seq} was not appended; the reason is unknown`)
      } catch (error) {
        if (error instanceof DeadlineExceeded) return 'too-late'
        throw error
      }
    },

    beginFounding: (mark, guard) => writeWithLease(database, guard, beginFounding(mark)),

    commitFounding: (beginning, seal, guard) =>
      writeWithLease(database, guard, commitFounding(beginning, seal)),

    adopt: (contents, counted, before, guard) =>
      writeWithLease(database, guard, adopt(contents, counted, before)),

    ping: async () => void (await database.execute('SELECT max(seq) FROM entries')),
  }
}

function decodeRows<T extends SQLiteTable>(
  table: T,
  result: ResultSet | undefined,
  label: string,
): T['$inferSelect'][] {
  return decodeJsonRows(result?.rows[0]?.[0], label).map(rowDecoder(table))
}

const FAIL_ATTEMPT = `
  UPDATE attempts SET failed_at = ?3, reason = ?4
  WHERE as_of_day = ?1 AND attempt = ?2 AND failed_at IS NULL`

const COUNT_ATTEMPT = `
  INSERT INTO attempts (as_of_day, attempt, started_at) SELECT ?1, ?2, ?3
  WHERE EXISTS (SELECT 1 FROM lease WHERE token = ?4 AND expires_at > ?3)
    AND coalesce((SELECT max(attempt) FROM attempts WHERE as_of_day = ?1), 0) = ?2 - 1`

const LAST_SEQ = 'coalesce((SELECT max(seq) FROM entries), 0)'

const LAST_PUBLISHED = `(SELECT max(at) FROM (
  SELECT max(published_at) AS at FROM entries UNION ALL SELECT max(published_at) FROM legacy_publications
))`

const LAST_RECORDED = '(SELECT max(recorded_at) FROM entries)'

const LEASE_HELD = 'EXISTS (SELECT 1 FROM lease WHERE token = ? AND expires_at > ?)'

/** A condition of an append, and the refusal if it does not hold. */
interface AppendCondition {
  refusal: AppendRefusal
  sql: string
  args: InValue[]
}

function conditionsOf(
  { seq, recordedAt, previousLeaf, publishedAt }: LedgerRow,
  token: string,
  now: number,
): AppendCondition[] {
  return [
    {
      refusal: 'ledger-moved',
      sql: `${LAST_SEQ} = ? AND coalesce((SELECT leaf FROM entries WHERE seq = ?), ?) = ?`,
      args: [seq - 1, seq - 1, GENESIS_LEAF, previousLeaf],
    },
    {
      refusal: 'clock-went-back',
      sql: `coalesce(? > ${LAST_PUBLISHED}, true) AND coalesce(? >= ${LAST_RECORDED}, true)`,
      args: [publishedAt, recordedAt],
    },
    { refusal: 'lease-lost', sql: LEASE_HELD, args: [token, now] },
  ]
}

/** Returns the statements that read which conditions hold, and that insert a row if all do. */
function appendStatements(row: LedgerRow, conditions: readonly AppendCondition[]): InStatement[] {
  const args = conditions.flatMap((condition) => condition.args)
  const all = conditions.map(({ sql }) => `(${sql})`)
  return [{ sql: `SELECT ${all.join(', ')}`, args }, insertAll(entries, [row], all.join(' AND '), args)]
}

/** The state that decides whether a ledger may be founded or adopted. */
interface LedgerState {
  held: 0 | 1
  entries: number
  /** Of the last entry. */
  leaf: string | null
  legacy: number
  /** Number and leaf of the founding mark. */
  mark: string | null
}

const STATE: ObjectColumns<LedgerState> = {
  held: LEASE_HELD,
  entries: '(SELECT count(*) FROM entries)',
  leaf: '(SELECT leaf FROM entries ORDER BY seq DESC LIMIT 1)',
  legacy: '(SELECT count(*) FROM legacy_publications)',
  mark: "(SELECT seq || ' ' || leaf FROM founding)",
}

/**
 * Runs statements in one transaction while the lease is held.
 *
 * @param decide returns the statements; null if the ledger is not as they require
 */
function writeWithLease(
  client: StoreClient,
  { token, now }: Parameters<Ledger['commitFounding']>[2],
  decide: (state: LedgerState) => InStatement[] | null,
): Promise<FoundingRefusal | null> {
  return client.transact(async (tx) => {
    const [state] = await selectObjects(tx, STATE, '(SELECT 1)', [token, now], 'the ledger')
    if (state?.held !== 1) return 'lease-lost'
    const statements = decide(state)
    if (statements === null) return 'ledger-moved'
    if (statements.length > 0) await tx.batch(statements)
    return null
  })
}

/** The mark of a founding, as {@link LedgerState} has it. */
function markOf(last: Pick<LedgerRow, 'seq' | 'leaf'> | undefined): string | null {
  return last ? `${last.seq} ${last.leaf}` : null
}

function beginFounding(mark: FoundingMark): (state: LedgerState) => InStatement[] | null {
  return (state) => {
    if (state.entries > 0) return null
    if (state.mark === null) return [insertAll(founding, [{ id: 1, ...mark }])]
    return state.mark === markOf(mark) ? [] : null
  }
}

function commitFounding(
  { legacy, rows }: Founding,
  seal: LedgerRow,
): (state: LedgerState) => InStatement[] | null {
  return (state) => {
    const isEmpty = state.entries === 0 && state.legacy === 0
    if (!isEmpty || state.mark !== markOf(rows.at(-1))) return null
    // Entries follow the legacy rows, because the legacy ledger accepts no row once there is an entry.
    return [insertAll(legacyPublications, legacy), insertAll(entries, [...rows, seal])]
  }
}

/** See {@link Ledger.adopt}. Existing attempts stay unchanged, as the database requires. */
function adopt(
  contents: LedgerContents,
  counted: readonly Attempt[],
  before: LedgerContents,
): (state: LedgerState) => InStatement[] | null {
  return (state) => {
    const last = before.rows.at(-1)
    const isSame = state.entries === before.rows.length && state.leaf === (last?.leaf ?? null)
    if (!isSame || state.legacy !== before.legacy.length) return null
    const mark = state.mark === null && contents.founding ? [{ id: 1, ...contents.founding }] : []
    const isNew = `NOT EXISTS (SELECT 1 FROM attempts WHERE as_of_day = value ->> 0 AND attempt = value ->> 1)`
    return [
      insertAll(founding, mark),
      insertAll(legacyPublications, contents.legacy.slice(before.legacy.length)),
      insertAll(entries, contents.rows.slice(before.rows.length)),
      insertAll(attempts, counted, isNew),
    ]
  }
}

/** Maximum number of reads. Publishers commit once a day, so repeated conflicts indicate another fault. */
const READ_ATTEMPTS = 5

/**
 * Reads and proves both ledgers against the newest head. The head is read first: one commit in between leaves the
 * ledger one entry ahead, which is valid. Several commits in between would look like lost heads, so a failed proof
 * counts only if the head is unchanged afterwards.
 */
export function yearReader(ledger: Pick<Ledger, 'read'>, objects: Pick<Objects, 'newestHead'>): YearReader {
  return {
    async read() {
      let head = await objects.newestHead()
      for (let attempt = 1; ; attempt += 1) {
        const contents = await ledger.read()
        // Reading and proving ten years take about twenty milliseconds each: a server must handle other work in
        // between.
        await new Promise((resolve) => setImmediate(resolve))
        try {
          return { proved: proveLedger(contents, head), contents, head }
        } catch (error) {
          const newest = await objects.newestHead()
          if (newest?.seq === head?.seq || attempt === READ_ATTEMPTS) throw error
          head = newest
        }
      }
    },
  }
}
