import { drizzle } from 'drizzle-orm/libsql'
import type { LibSQLDatabase } from 'drizzle-orm/libsql'
import type { Clock, Witness } from '../../domain/ports.ts'
import type { DatabaseLocation } from '../../domain/storage.ts'
import { engineOf } from './engine.ts'
import { applyMigrations } from './migrate.ts'
import type { StoreName } from './migrations.ts'
import type { StoreClient } from './store-client.ts'
import { translate } from './vendor-errors.ts'

/** How to open one store's database. */
export interface DatabaseOptions {
  /**
   * A file, which is created in a folder that must exist; a libSQL server, which may hold the other stores too; or
   * `:memory:`, for tests.
   */
  location: DatabaseLocation
  store: StoreName
  /** Folder of the store's numbered migrations. */
  migrationsFolder: string
  /**
   * Longest a native call may wait for a lock. The driver of files waits synchronously, so a server gives a few
   * milliseconds and leaves the rest to `retryMs`.
   */
  nativeBusyMs: number
  /** How long to go on retrying a locked database before failing. */
  retryMs: number
}

interface OpenDatabase {
  client: StoreClient
  orm: LibSQLDatabase
}

/** A database that opens, and migrates, at its first use and again after a failed opening. */
export interface Database {
  /**
   * Runs `work` on the open database; vendor errors become Refusals where the store is unavailable or damaged.
   */
  use<T>(work: (open: OpenDatabase) => Promise<T>): Promise<T>
  /**
   * Witness of everything the database holds; always null where the engine cannot give one.
   *
   * @param fileClock the clock the file system stamps with
   */
  witness(fileClock: Clock): Witness
  close(): void
}

/** Describes a database without touching it; {@link Database.use} opens it. */
export function database(options: DatabaseOptions): Database {
  const engine = engineOf(options.location, options)
  let opening: Promise<OpenDatabase> | null = null
  let opened: StoreClient | null = null

  const forget = (): void => {
    opened?.close()
    opened = null
    opening = null
  }

  const open = async (): Promise<OpenDatabase> => {
    const client = await engine.open()
    try {
      await applyMigrations(client, options.store, options.migrationsFolder, engine.name)
    } catch (error) {
      client.close()
      throw error
    }
    engine.ready()
    opened = client
    return { client, orm: drizzle(client) }
  }

  return {
    witness: (fileClock) => engine.witness(fileClock),
    async use(work) {
      try {
        if (opened && !engine.isCurrent()) forget()
        engine.requireThere()
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
