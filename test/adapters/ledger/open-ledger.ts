import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Client } from '@libsql/client'
import { onTestFinished } from 'vitest'
import { libsqlLedger } from '../../../src/adapters/ledger/ledger.ts'
import { legacyPublications } from '../../../src/adapters/ledger/schema.ts'
import { database } from '../../../src/adapters/sqlite/database.ts'
import type { Database } from '../../../src/adapters/sqlite/database.ts'
import { migrationsOf } from '../../../src/adapters/sqlite/migrate.ts'
import type { Clock, Ledger } from '../../../src/domain/ports.ts'
import type { LedgerContents, LedgerRow, LegacyRow, AppendRefusal } from '../../../src/domain/year/ledger.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { rawClient } from '../sqlite/lock-holder.ts'

/** What tests ask past the ledger. */
export type RawClient = Pick<Client, 'execute' | 'batch' | 'executeMultiple'>

export interface OpenLedger {
  ledger: Ledger
  /** A client past the ledger, for what somebody else may do to its database. */
  raw: RawClient
  /** Fills the legacy ledger, as `import archive` does before the first entry. */
  addLegacy(rows: readonly LegacyRow[]): Promise<void>
  /** The same ledger as another process sees it; in memory there is but one. */
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
  const path = join(await temporaryFolder(), 'ledger.db')
  const url = pathToFileURL(path).href
  return { ...connectLedger(url, fileClock), path, url }
}

export async function openMemoryLedger(): Promise<OpenLedger> {
  const store = openDatabase(':memory:')
  const raw = await store.use(({ client }) => Promise.resolve(client))
  const same: OpenLedger = { ...ledgerOn(store), raw, another: () => same, close: () => undefined }
  return same
}

/** The ledger at a URL through a connection of its own. */
export function connectLedger(url: string, fileClock?: Clock): OpenLedger {
  const store = openDatabase(url)
  return {
    ...ledgerOn(store, fileClock),
    raw: rawClient(url),
    another: () => connectLedger(url, fileClock),
    close: () => store.close(),
  }
}

function openDatabase(url: string): Database {
  const location = { url, authToken: null }
  const migrationsFolder = migrationsOf('ledger')
  const store = database({ location, store: 'ledger', migrationsFolder, nativeBusyMs: 10, retryMs: 5_000 })
  onTestFinished(() => store.close())
  return store
}

function ledgerOn(store: Database, fileClock?: Clock): Pick<OpenLedger, 'ledger' | 'addLegacy'> {
  return {
    ledger: libsqlLedger(store, fileClock),
    addLegacy: (rows) =>
      store.use(async ({ orm }) => {
        for (const row of rows) await orm.insert(legacyPublications).values(row)
      }),
  }
}

/** Takes the triggers away that keep the ledger append-only. */
export async function dropTriggers(client: RawClient): Promise<void> {
  const { rows } = await client.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
  for (const { name } of rows) if (typeof name === 'string') await client.execute(`DROP TRIGGER ${name}`)
}

async function namesIn(client: RawClient, sql: string): Promise<string[]> {
  const { rows } = await client.execute(sql)
  return rows.map((row) => (typeof row['name'] === 'string' ? row['name'] : ''))
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

/** A lease that holds whatever the time. */
export async function anyLease(ledger: Ledger): Promise<string> {
  const grant = await ledger.takeLease(
    { name: 'the test', process: null },
    0,
    Number.MAX_SAFE_INTEGER,
    () => false,
  )
  if (!grant.granted) throw new Error(`the lease is held by ${grant.heldBy}`)
  return grant.token
}

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
