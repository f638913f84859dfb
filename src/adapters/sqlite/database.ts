import { drizzle } from 'drizzle-orm/libsql'
import type { LibSQLDatabase } from 'drizzle-orm/libsql'
import type { Client } from '@libsql/client'
import type { Clock, ChangeToken } from '../../domain/ports.ts'
import type { DatabaseLocation } from '../../domain/refusal.ts'
import { engineOf, readOnlyClient } from './engine.ts'
import type { Engine } from './engine.ts'
import { applyMigrations, migrationsOf } from './migrate.ts'
import type { StoreName } from './migrate.ts'
import type { StoreClient } from './rows.ts'
import { translate } from './vendor-errors.ts'

/** How to open one store's database. */
export interface DatabaseOptions {
  /**
   * A file, which is created in a folder that must exist; a libSQL server, which may hold the other stores too; or
   * `:memory:`, for tests.
   */
  location: DatabaseLocation
  store: StoreName
  /**
   * Longest a native call may wait for a lock. The driver of files waits synchronously, so a server gives a few
   * milliseconds and leaves the rest to `retryMs`.
   */
  nativeBusyMs: number
  /** How long to go on retrying a locked database before failing. */
  retryMs: number
  /**
   * True: a power cut may take what was written to a file since {@link StoreClient.makeDurable}, while the death of the
   * process takes nothing. Of the state alone.
   */
  fast?: boolean
}

/** Drizzle on a store's client, which has no interactive transaction: a batch is one, by `StoreClient.batch`. */
export type Orm = Omit<LibSQLDatabase, 'transaction' | 'batch'>

interface OpenDatabase {
  client: StoreClient
  orm: Orm
}

/** A database that opens, and migrates, at its first use and again after a failed opening. */
export interface Database {
  /**
   * Runs `work` on the open database; vendor errors become Refusals where the store is unavailable or damaged.
   */
  use<T>(work: (open: OpenDatabase) => Promise<T>): Promise<T>
  /**
   * Change token of everything the database holds; always null where the engine cannot give one.
   *
   * @param fileClock the clock the file system stamps with
   */
  changeToken(fileClock: Clock): ChangeToken
  close(): void
}

/** Describes a database without touching it; {@link Database.use} opens it. */
export function database(options: DatabaseOptions): Database {
  const journal = options.store !== 'state' ? 'rollback' : options.fast === true ? 'wal-fast' : 'wal'
  const engine = engineOf(options.location, { ...options, journal })
  return openedAtFirstUse(engine, async () => {
    const client = await engine.open()
    try {
      await applyMigrations(client, options.store, migrationsOf(options.store), engine.name)
      return client
    } catch (error) {
      client.close()
      throw error
    }
  })
}

/**
 * A second handle on a database, through which nothing can be written: a file's engine refuses it, and nothing but SELECT
 * is sent to a server, where a token that may only read makes the server refuse it too.
 *
 * @param owner creates and migrates the database before each use; this handle never does
 */
export function readOnlyDatabase(
  options: Pick<DatabaseOptions, 'location' | 'nativeBusyMs' | 'retryMs'>,
  owner: Database,
): Database {
  const engine = engineOf(options.location, { ...options, readOnly: true })
  const own = openedAtFirstUse(engine, async () => readOnlyClient(await engine.open()))
  return {
    ...own,
    async use(work) {
      await owner.use(() => Promise.resolve())
      return own.use(work)
    },
  }
}

function openedAtFirstUse(engine: Engine, openClient: () => Promise<StoreClient>): Database {
  let opening: Promise<OpenDatabase> | null = null
  let opened: StoreClient | null = null

  const forget = (): void => {
    opened?.close()
    opened = null
    opening = null
  }

  const open = async (): Promise<OpenDatabase> => {
    const client = await openClient()
    engine.ready()
    opened = client
    // Drizzle only executes statements on it: `Orm` leaves out what a store's client does not have.
    return { client, orm: drizzle(client as unknown as Client) }
  }

  return {
    changeToken: (fileClock) => engine.changeToken(fileClock),
    async use(work) {
      try {
        if (opened && !engine.isCurrent()) forget()
        if (!opened) engine.requireThere()
        opening ??= open()
        const ready = await opening
        return await work(ready)
      } catch (error) {
        if (!opened) opening = null
        throw translate(error, engine.name)
      }
    },
    close: forget,
  }
}
