import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { InStatement } from '@libsql/client'
import { createClient } from '@libsql/client/sqlite3'
import type { Clock } from '../../domain/ports.ts'
import type { ChangeToken } from '../../domain/year/ports.ts'
import { storageUnavailable } from '../../domain/refusal.ts'
import type { DatabaseLocation } from '../../domain/refusal.ts'
import { ABSENT, fileChangeToken } from '../change-token.ts'
import { isBusy, translateError, guardClient } from './guard.ts'
import type { Journal } from './guard.ts'
import { applyMigrations, migrationsOf } from './migrate.ts'
import type { StoreName } from './migrate.ts'
import type { StoreClient, SqlReader } from './rows.ts'

export interface DatabaseOptions {
  /** A file in an existing folder, created if missing; or a libSQL server, which may hold the other stores too. */
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

/**
 * A client that opens and migrates its database at its first use, and again after a failed attempt. Vendor errors become
 * Refusals if the store is unavailable or damaged.
 */
export interface Database extends StoreClient {
  /** Opens and migrates the database unless it is open. */
  open(): Promise<void>
  /**
   * Returns the change token of the whole database; always null if the engine has none.
   *
   * @param fileClock the clock that sets the file system's timestamps
   */
  changeToken(fileClock: Clock): ChangeToken
}

/** Describes a database without touching it; its first use opens it. */
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
  return lazyDatabase(engine, async (client) => readOnlyClient(client), owner)
}

/**
 * @param prepare makes an open client ready for use
 * @param owner opened before each use
 */
function lazyDatabase(
  engine: Engine,
  prepare: (client: StoreClient) => Promise<StoreClient>,
  owner: Database | null = null,
): Database {
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

  const use = async <T>(work: (client: StoreClient) => Promise<T>): Promise<T> => {
    try {
      await owner?.open()
      const isOpening = opening !== null && opened === null
      if (client && !isOpening && !engine.isCurrent()) reset()
      if (!opened) engine.requirePresent()
      opening ??= open()
      return await work(await opening)
    } catch (error) {
      throw translateError(error, engine.name)
    }
  }

  return {
    open: () => use(() => Promise.resolve()),
    changeToken: (fileClock) => engine.changeToken(fileClock),
    execute: (statement) => use((ready) => ready.execute(statement)),
    batch: (statements, mode) => use((ready) => ready.batch(statements, mode)),
    transact: (work) => use((ready) => ready.transact(work)),
    batchWithin(statements, ms) {
      const deadline = performance.now() + ms
      return use((ready) => ready.batchWithin(statements, deadline - performance.now()))
    },
    snapshot: (revision, read) => use((ready) => ready.snapshot(revision, read)),
    makeDurable: () => use((ready) => ready.makeDurable()),
    close: reset,
  }
}

/** Storage of a database: a file or a server. */
export interface Engine {
  /** Name of the database in error messages. */
  name: string
  /** @throws Refusal `storage_unavailable` */
  open(): Promise<StoreClient>
  /** Called after an opened database has been migrated. */
  ready(): void
  /** Returns false if the opened file has been replaced or removed, or did not exist and is not ready. */
  isCurrent(): boolean
  /** @throws Refusal `storage_unavailable` if a database that existed has disappeared */
  requirePresent(): void
  /** Returns the change token of the whole database. */
  changeToken(fileClock: Clock): ChangeToken
}

interface EngineOptions {
  nativeBusyMs: number
  retryMs: number
  /** Journal of a file; default `rollback`. */
  journal?: Journal
  /** If true, a file is never created, and its engine refuses writes. */
  readOnly?: boolean
  /** Executed on every connection of a file before each use. */
  settings?: string
}

export function engineOf(location: DatabaseLocation, options: EngineOptions): Engine {
  return location.url.startsWith('file:')
    ? fileEngine(location.url, options)
    : serverEngine(location, options)
}

function fileEngine(url: string, options: EngineOptions): Engine {
  const { nativeBusyMs, retryMs, readOnly = false, journal = 'rollback', settings = '' } = options
  const path = fileURLToPath(url)
  const name = `the database ${path}`
  const walPath = journal === 'wal' || journal === 'wal-fast' ? `${path}-wal` : null
  let existed = false
  let openedInode: bigint | null = null

  const inode = (): bigint | null => {
    try {
      return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino ?? null
    } catch (cause) {
      throw storageUnavailable(`${name} cannot be reached`, cause)
    }
  }

  return {
    name,
    async open() {
      requireFolder(dirname(path))
      if (readOnly && inode() === null) throw storageUnavailable(`${name} does not exist`)
      const client = createClient({ url, timeout: nativeBusyMs, concurrency: 1 })
      openedInode = inode()
      return guardClient(client, retryMs, {
        journal,
        walPath,
        settings: readOnly ? `${QUERY_ONLY};${settings}` : settings,
      })
    },
    ready() {
      existed = true
      openedInode = inode()
    },
    // An open connection would keep reading a replaced or removed file through the old descriptor.
    isCurrent: () => openedInode !== null && inode() === openedInode,
    requirePresent() {
      // Opening creates a missing file, which is right at the first start and wrong for a file that has
      // disappeared.
      if (existed && inode() === null) throw storageUnavailable(`${name} has disappeared`)
    },
    changeToken(fileClock) {
      // While a journal exists, the file alone does not determine the contents.
      const journalToken = fileChangeToken([`${path}-journal`, `${path}-wal`], fileClock)
      return journalToken === `${ABSENT}|${ABSENT}` ? fileChangeToken([path], fileClock) : null
    },
  }
}

/** @throws Refusal `storage_unavailable` if a folder is missing: an unmounted disk is not an empty database */
export function requireFolder(folder: string): void {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK)
  } catch (cause) {
    throw storageUnavailable(`the folder ${folder} does not exist or this user cannot open it`, cause)
  }
}

/**
 * Creates the engine of a server. It has no change token: a server reports nothing that identifies an unchanged
 * ledger.
 */
function serverEngine(location: DatabaseLocation, { retryMs }: EngineOptions): Engine {
  const { protocol, host, pathname } = new URL(location.url)
  // Omits user, password and query, which may hold secrets.
  const name = `the database server ${protocol}//${host}${pathname === '/' ? '' : pathname}`
  return {
    name,
    ready: () => undefined,
    isCurrent: () => true,
    requirePresent: () => undefined,
    changeToken: () => null,
    // Loading the client of servers takes longer than auditing a small archive.
    open: async () => (await import('./server-client.ts')).serverClient(location, name, retryMs),
  }
}

/** Makes the engine refuse writes with SQLITE_READONLY. */
export const QUERY_ONLY = 'PRAGMA query_only = ON'

/**
 * Wraps a client so that it accepts only single SELECT statements. The engine itself refuses writes; this also
 * excludes settings and ATTACH.
 */
function readOnlyClient(client: StoreClient): StoreClient {
  return {
    execute: selectOnly(client),
    batch: (statements) => (statements.every(isSelect) ? client.batch(statements, 'read') : refuseWrite()),
    snapshot: (revision, read) =>
      client.snapshot(revision, (reader) => read({ execute: selectOnly(reader) })),
    batchWithin: refuseWrite,
    transact: refuseWrite,
    makeDurable: refuseWrite,
    close: () => client.close(),
  }
}

function selectOnly(reader: SqlReader): SqlReader['execute'] {
  return (statement) => (isSelect(statement) ? reader.execute(statement) : refuseWrite())
}

/** No statement that begins with SELECT writes in SQLite. */
function isSelect(statement: InStatement): boolean {
  return /^\s*SELECT\b/i.test(typeof statement === 'string' ? statement : statement.sql)
}

function refuseWrite(): Promise<never> {
  return Promise.reject(new Error('this handle is read-only and accepts only SELECT'))
}
