import type { Clock, ChangeToken } from '../../domain/ports.ts'
import type { DatabaseLocation } from '../../domain/refusal.ts'
import { engineOf, readOnlyClient } from './engine.ts'
import type { Engine } from './engine.ts'
import type { Journal } from './guard.ts'
import { applyMigrations, migrationsOf } from './migrate.ts'
import type { StoreName } from './migrate.ts'
import type { StoreClient } from './rows.ts'
import { isBusy, translateError } from './guard.ts'

/** Options for opening one store's database. */
export interface DatabaseOptions {
  /**
   * A file in an existing folder, created if missing; a libSQL server, which may hold the other stores too; or
   * `:memory:`, for tests.
   */
  location: DatabaseLocation
  store: StoreName
  /**
   * Time in milliseconds that a native call may wait for a lock. The driver of files waits synchronously, so a
   * server process allows a few milliseconds and leaves the rest to `retryMs`.
   */
  nativeBusyMs: number
  /** Time in milliseconds for retrying a locked database before failing. */
  retryMs: number
  /**
   * If true, a power cut can lose what was written to a file since {@link StoreClient.makeDurable}; the death of
   * the process loses nothing. Used for the state only.
   */
  fast?: boolean
  /** If true, the death of the process can damage a file. For files that are deleted when the process ends. */
  temporary?: boolean
}

/** A database that is opened and migrated at its first use, and again after a failed attempt. */
export interface Database {
  /** Runs `work` on the open database. Vendor errors become Refusals if the store is unavailable or damaged. */
  use<T>(work: (client: StoreClient) => Promise<T>): Promise<T>
  /**
   * Returns the change token of the whole database; always null if the engine has none.
   *
   * @param fileClock the clock that sets the file system's timestamps
   */
  changeToken(fileClock: Clock): ChangeToken
  close(): void
}

/** Describes a database without touching it; {@link Database.use} opens it. */
export function database(options: DatabaseOptions): Database {
  const engine = engineOf(options.location, { ...options, journal: journalOf(options) })
  return lazyDatabase(engine, async (client) => {
    await applyMigrations(client, options.store, migrationsOf(options.store), engine.name)
    return client
  })
}

function journalOf({ store, fast = false, temporary = false }: DatabaseOptions): Journal {
  if (temporary) return 'temporary'
  if (store !== 'state') return 'rollback'
  return fast ? 'wal-fast' : 'wal'
}

/**
 * Creates a second handle on a database that cannot write. A file's engine refuses writes. A server receives only
 * SELECT statements, and also refuses writes if the token is read-only.
 *
 * @param owner creates and migrates the database before each use of this handle; null if another process does
 */
export function readOnlyDatabase(
  options: Pick<DatabaseOptions, 'location' | 'nativeBusyMs' | 'retryMs'> & { settings?: string },
  owner: Database | null,
): Database {
  const engine = engineOf(options.location, { ...options, readOnly: true })
  const readOnly = lazyDatabase(engine, async (client) => readOnlyClient(client))
  if (owner === null) return readOnly
  return {
    ...readOnly,
    async use(work) {
      await owner.use(() => Promise.resolve())
      return readOnly.use(work)
    },
  }
}

/** @param prepare makes an open client ready for use */
function lazyDatabase(engine: Engine, prepare: (client: StoreClient) => Promise<StoreClient>): Database {
  let client: StoreClient | null = null
  let opening: Promise<StoreClient> | null = null
  let opened: StoreClient | null = null

  const reset = (): void => {
    client?.close()
    client = null
    opened = null
    opening = null
  }

  const open = async (): Promise<StoreClient> => {
    try {
      client ??= await engine.open()
      opened = await prepare(client)
      engine.ready()
      return opened
    } catch (error) {
      // The driver frees the descriptors of a closed client late: a locked database keeps its client.
      if (isBusy(error)) opening = null
      else reset()
      throw error
    }
  }

  return {
    changeToken: (fileClock) => engine.changeToken(fileClock),
    async use(work) {
      try {
        const isOpening = opening !== null && opened === null
        if (client && !isOpening && !engine.isCurrent()) reset()
        if (!opened) engine.requirePresent()
        opening ??= open()
        return await work(await opening)
      } catch (error) {
        throw translateError(error, engine.name)
      }
    },
    close: reset,
  }
}
