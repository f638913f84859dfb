import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Client } from '@libsql/client'
import { onTestFinished } from 'vitest'
import { libsqlLedger } from '../../../src/adapters/ledger/ledger.ts'
import { legacyPublications } from '../../../src/adapters/ledger/schema.ts'
import { database } from '../../../src/adapters/libsql/database.ts'
import { migrationsOf } from '../../../src/adapters/libsql/migrations.ts'
import type { AppendRefusal, Clock, Ledger } from '../../../src/domain/ports.ts'
import type { LedgerContents, LedgerRow, LegacyRow } from '../../../src/domain/year/ledger.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { rawClient } from '../libsql/lock-holder.ts'

export interface OpenLedger {
  ledger: Ledger
  path: string
  url: string
  /** A client past the ledger, for what somebody else may do to its file. */
  raw: Client
  /** Fills the legacy ledger, as `import archive` does before the first entry. */
  addLegacy(rows: readonly LegacyRow[]): Promise<void>
  close(): void
}

/** A ledger in a folder of the test's own, closed and removed when it ends. */
export async function openLedger(fileClock?: Clock): Promise<OpenLedger> {
  return reopenLedger(join(await temporaryFolder(), 'ledger.db'), fileClock)
}

/** The ledger of a file through a connection of its own. */
export function reopenLedger(path: string, fileClock?: Clock): OpenLedger {
  const url = pathToFileURL(path).href
  const store = database({ url, migrationsFolder: migrationsOf('ledger'), nativeBusyMs: 10, retryMs: 5_000 })
  onTestFinished(() => store.close())
  return {
    ledger: libsqlLedger(store, fileClock),
    path,
    url,
    raw: rawClient(url),
    addLegacy: (rows) =>
      store.use(async ({ orm }) => {
        for (const row of rows) await orm.insert(legacyPublications).values(row)
      }),
    close: () => store.close(),
  }
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
