import type { Client } from '@libsql/client'
import { drizzle } from 'drizzle-orm/libsql'
import { libsqlLedger } from '../../../src/adapters/ledger/ledger.ts'
import { legacyPublications } from '../../../src/adapters/ledger/schema.ts'
import type { LeaseHolder } from '../../../src/domain/jobs.ts'
import type { Clock } from '../../../src/domain/ports.ts'
import type { Ledger } from '../../../src/domain/year/ports.ts'
import type { LedgerContents, LedgerRow, LegacyRow, AppendRefusal } from '../../../src/domain/year/ledger.ts'
import { newDatabase, openStore, rawClient } from '../sqlite/lock-holder.ts'

/** A client for queries that bypass the ledger. */
export type RawClient = Pick<Client, 'execute' | 'batch' | 'executeMultiple'>

export interface OpenLedger {
  ledger: Ledger
  /** A client that bypasses the ledger, to change its database as another program could. */
  raw: RawClient
  /** Fills the legacy ledger, as `import archive` does before the first entry. */
  addLegacy(rows: readonly LegacyRow[]): Promise<void>
  /** The same ledger as another process sees it. */
  another(): OpenLedger
  close(): void
}

/** An empty ledger of the test's own; how a contract is run against an engine. */
export type LedgerOpener = () => Promise<OpenLedger>

interface LedgerFile extends OpenLedger {
  path: string
  url: string
}

/** A ledger in a folder of the test's own, closed and removed when it ends. */
export async function openLedger(fileClock?: Clock): Promise<LedgerFile> {
  const { path, url } = newDatabase('ledger.db')
  return { ...connectLedger(url, fileClock), path, url }
}

/** Opens the ledger at a URL through a separate connection. */
export function connectLedger(url: string, fileClock?: Clock): OpenLedger {
  const store = openStore('ledger', url)
  const ledger = libsqlLedger(store, fileClock)
  const raw = rawClient(url)
  return {
    ledger,
    raw,
    async addLegacy(rows) {
      await ledger.ping()
      if (rows.length > 0)
        await drizzle(raw)
          .insert(legacyPublications)
          .values([...rows])
    },
    another: () => connectLedger(url, fileClock),
    close: () => store.close(),
  }
}

/** Takes the triggers away that keep the ledger append-only. */
export async function dropTriggers(client: RawClient): Promise<void> {
  for (const name of await namesIn(client, "SELECT name FROM sqlite_schema WHERE type = 'trigger'"))
    await client.execute(`DROP TRIGGER ${name}`)
}

async function namesIn(client: RawClient, sql: string): Promise<string[]> {
  return (await client.execute(sql)).rows.map((row) => row['name'] as string)
}

/** Makes the columns of a table take values of any type, as a changed byte in a record's header does. */
export async function dropTypes(client: RawClient, table: string): Promise<void> {
  const columns = await namesIn(client, `SELECT name FROM pragma_table_info('${table}')`)
  await client.batch(
    [
      `CREATE TABLE untyped (${columns.join(', ')})`,
      `INSERT INTO untyped SELECT * FROM ${table}`,
      `DROP TABLE ${table}`,
      `ALTER TABLE untyped RENAME TO ${table}`,
    ],
    'write',
  )
}

/** Takes a lease, which must be free; returns its token. */
export async function leaseOf(
  ledger: Ledger,
  now: number,
  forMs: number,
  holder: LeaseHolder = { name: 'the test', process: null },
): Promise<string> {
  const grant = await ledger.takeLease(holder, now, forMs, () => false)
  if (!grant.granted) throw new Error(`the lease is held by ${grant.heldBy}`)
  return grant.token
}

/** Takes a lease that never expires. */
export const anyLease = (ledger: Ledger): Promise<string> => leaseOf(ledger, 0, Number.MAX_SAFE_INTEGER)

/** Appends a row at the very time it is recorded. */
export function appendNow(ledger: Ledger, row: LedgerRow, token: string): Promise<AppendRefusal | null> {
  return ledger.append(row, { token, clock: () => row.recordedAt, withinMs: 10_000 })
}

/** Fills both ledgers; throws when an entry is refused. */
export async function fill(
  { ledger, addLegacy }: OpenLedger,
  contents: Pick<LedgerContents, 'rows' | 'legacy'>,
): Promise<string> {
  await addLegacy(contents.legacy)
  const token = await anyLease(ledger)
  for (const row of contents.rows) {
    const refusal = await appendNow(ledger, row, token)
    if (refusal !== null) throw new Error(`entry ${row.seq} was refused: ${refusal}`)
  }
  return token
}
