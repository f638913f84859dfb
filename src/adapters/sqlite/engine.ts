import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { InStatement } from '@libsql/client'
import { createClient } from '@libsql/client/sqlite3'
import type { Clock, ChangeToken } from '../../domain/ports.ts'
import { storageUnavailable } from '../../domain/refusal.ts'
import type { DatabaseLocation } from '../../domain/refusal.ts'
import { ABSENT, fileChangeToken } from '../change-token.ts'
import { guardClient, logOf } from './guard.ts'
import type { Journal } from './guard.ts'
import type { Reader, StoreClient } from './rows.ts'

/** Where a database is held: in a file, on a server, or in memory for tests. */
export interface Engine {
  /** As errors name the database. */
  name: string
  /** @throws Refusal `storage_unavailable` */
  open(): Promise<StoreClient>
  /** Told once what was opened is migrated. */
  ready(): void
  /** False when what was opened is no longer what its place holds, also when that holds nothing. */
  isCurrent(): boolean
  /** @throws Refusal `storage_unavailable` when a database that was there is no more */
  requireThere(): void
  /** Change token of everything the database holds. */
  changeToken(fileClock: Clock): ChangeToken
}

interface EngineOptions {
  nativeBusyMs: number
  retryMs: number
  /** Of a file; `rollback` unless it is said. */
  journal?: Journal
  /** A file is then never created, and its engine refuses whatever would write. */
  readOnly?: boolean
}

export function engineOf(location: DatabaseLocation, options: EngineOptions): Engine {
  if (location.url === ':memory:') return memoryEngine(options)
  if (location.url.startsWith('file:')) return fileEngine(location.url, options)
  return serverEngine(location, options)
}

function fileEngine(url: string, options: EngineOptions): Engine {
  const { nativeBusyMs, retryMs, readOnly = false, journal = 'rollback' } = options
  const path = fileURLToPath(url)
  const name = `the database ${path}`
  const log = journal === 'rollback' ? null : logOf(path)
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
      if (readOnly && inode() === null) throw storageUnavailable(`${name} is not there`)
      const client = createClient({ url, timeout: nativeBusyMs, concurrency: 1 })
      return guardClient(client, retryMs, { journal, log, settings: readOnly ? QUERY_ONLY : '' })
    },
    ready() {
      existed = true
      openedInode = inode()
    },
    // A file replaced or removed under an open connection would go on being read through the old descriptor.
    isCurrent: () => openedInode !== null && inode() === openedInode,
    requireThere() {
      // Opening creates a missing file: right for the first start, but an empty stand-in for one that was there.
      if (existed && inode() === null) throw storageUnavailable(`${name} has disappeared`)
    },
    changeToken(fileClock) {
      // Held open or about to be rolled back, the journal means that the file alone does not tell the state.
      const journals = fileChangeToken([`${path}-journal`, `${path}-wal`], fileClock)
      return journals === `${ABSENT}|${ABSENT}` ? fileChangeToken([path], fileClock) : null
    },
  }
}

/** @throws Refusal `storage_unavailable` when a folder is not there: a disk not mounted holds no empty database */
export function requireFolder(folder: string): void {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK)
  } catch (cause) {
    throw storageUnavailable(`the folder ${folder} is not there or may not be entered`, cause)
  }
}

/** No change token: a server says nothing by which an unchanged ledger could be told without reading it. */
function serverEngine(location: DatabaseLocation, { retryMs }: EngineOptions): Engine {
  const { protocol, host, pathname } = new URL(location.url)
  // Without user, password or query, which may hold secrets.
  const name = `the database server ${protocol}//${host}${pathname === '/' ? '' : pathname}`
  return {
    ...UNWATCHED,
    name,
    // The client of servers takes longer to load than a small archive to audit.
    open: async () => (await import('./server-client.ts')).serverClient(location, name, retryMs),
  }
}

function memoryEngine({ nativeBusyMs, retryMs }: EngineOptions): Engine {
  const open = async (): Promise<StoreClient> =>
    guardClient(createClient({ url: ':memory:', timeout: nativeBusyMs, concurrency: 1 }), retryMs)
  return { ...UNWATCHED, name: 'the database in memory', open }
}

const UNWATCHED = {
  ready: (): void => undefined,
  isCurrent: (): boolean => true,
  requireThere: (): void => undefined,
  changeToken: (): ChangeToken => null,
}

/**
 * Given to every connection of a file before each use: the engine then refuses whatever would write, with
 * SQLITE_READONLY.
 */
export const QUERY_ONLY = 'PRAGMA query_only = ON'

/**
 * A client that takes nothing but single SELECT statements. It stands before an engine that refuses writes itself, and
 * keeps from it what that leaves open: settings, and files that would be attached.
 */
export function readOnlyClient(client: StoreClient): StoreClient {
  return {
    execute: selecting(client),
    batch: (statements) => (statements.every(isSelection) ? client.batch(statements, 'read') : refuse()),
    snapshot: (revision, read) => client.snapshot(revision, (reader) => read({ execute: selecting(reader) })),
    batchWithin: refuse,
    makeDurable: refuse,
    close: () => client.close(),
  }
}

function selecting(reader: Reader): Reader['execute'] {
  return (statement) => (isSelection(statement) ? reader.execute(statement) : refuse())
}

/** No statement of SQLite's that begins so writes. */
function isSelection(statement: InStatement): boolean {
  return /^\s*SELECT\b/i.test(typeof statement === 'string' ? statement : statement.sql)
}

function refuse(): Promise<never> {
  return Promise.reject(new Error('this handle only reads: nothing but SELECT is taken'))
}
