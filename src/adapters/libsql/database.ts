import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient, LibsqlError } from '@libsql/client'
import { drizzle } from 'drizzle-orm/libsql'
import type { LibSQLDatabase } from 'drizzle-orm/libsql'
import { Refusal } from '../../domain/refusal.ts'
import { storageDamaged, storageUnavailable } from '../../domain/storage.ts'
import { guardClient, isBusy } from './guard.ts'
import type { GuardedClient } from './guard.ts'
import { applyMigrations } from './migrate.ts'

/** How to open one store's database. */
export interface DatabaseOptions {
  /** `file:` URL of the database. Its folder must exist; the file is created. */
  url: string
  /** Folder of the store's numbered migrations. */
  migrationsFolder: string
  /**
   * Longest a native call may wait for a lock. The driver waits synchronously, so a server gives a few
   * milliseconds and leaves the rest to `retryMs`.
   */
  nativeBusyMs: number
  /** How long to go on retrying a locked database before failing. */
  retryMs: number
}

interface OpenDatabase {
  client: GuardedClient
  orm: LibSQLDatabase
}

/** A database that opens, and migrates, at its first use and again after a failed opening. */
export interface Database {
  /**
   * Runs `work` on the open database; vendor errors become Refusals where the store is unavailable or damaged.
   */
  use<T>(work: (open: OpenDatabase) => Promise<T>): Promise<T>
  /** Path of the database file. */
  path: string
  close(): void
}

/** Describes a database without touching it; {@link Database.use} opens it. */
export function database(options: DatabaseOptions): Database {
  const path = fileURLToPath(options.url)
  let opening: Promise<OpenDatabase> | null = null
  let opened: { client: GuardedClient; inode: bigint } | null = null
  let existed = false

  const forget = (): void => {
    opened?.client.close()
    opened = null
    opening = null
  }

  const open = async (): Promise<OpenDatabase> => {
    const folder = dirname(path)
    requireFolder(folder)
    const native = createClient({ url: options.url, timeout: options.nativeBusyMs, concurrency: 1 })
    const client = guardClient(native, options.retryMs)
    try {
      await applyMigrations(client, options.migrationsFolder, path)
    } catch (error) {
      client.close()
      throw error
    }
    existed = true
    opened = { client, inode: statSync(path, { bigint: true }).ino }
    return { client, orm: drizzle(client) }
  }

  return {
    path,
    async use(work) {
      try {
        // A file replaced or removed under an open connection would go on being read through the old descriptor.
        if (opened && inodeOf(path) !== opened.inode) forget()
        // Opening creates a missing file: right for the first start, but an empty stand-in for one that was there.
        if (existed && inodeOf(path) === null)
          throw storageUnavailable(`the database ${path} has disappeared`)
        opening ??= open()
        const ready = await opening
        return await work(ready)
      } catch (error) {
        if (!opened) opening = null
        throw translate(error, path)
      }
    },
    close: forget,
  }
}

function requireFolder(folder: string): void {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK)
  } catch (cause) {
    throw storageUnavailable(`the folder ${folder} is not there or may not be entered`, cause)
  }
}

function inodeOf(path: string): bigint | null {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino ?? null
  } catch (cause) {
    throw storageUnavailable(`the database ${path} cannot be reached`, cause)
  }
}

/** Vendor error to Refusal where the contract tells them apart; anything else stays what it is, a fault. */
function translate(error: unknown, path: string): unknown {
  if (error instanceof Refusal || isBusy(error)) return error
  if (error instanceof Error && error.message.includes('ConnectionFailed')) {
    const mend = 'this user must be able to read and write it and its folder'
    return storageUnavailable(`the database ${path} cannot be opened; ${mend}`, error)
  }
  const vendor = vendorError(error)
  if (!vendor) return error
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(vendor.code)) {
    return storageDamaged(`the database ${path} is damaged: ${vendor.message}`, error)
  }
  if (/JSON cannot hold BLOB/.test(vendor.message)) {
    return storageDamaged(`the database ${path} holds bytes where a text belongs`, error)
  }
  if (/no such (table|column)/.test(vendor.message)) {
    return storageDamaged(`the database ${path} lacks a part of its schema: ${vendor.message}`, error)
  }
  if (/^SQLITE_(CANTOPEN|PERM|AUTH|READONLY)/.test(vendor.code)) {
    return storageUnavailable(`the database ${path} cannot be opened: ${vendor.message}`, error)
  }
  return error
}

function vendorError(error: unknown): { code: string; message: string } | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof LibsqlError) return cause
    if (cause.name === 'SqliteError' && 'code' in cause && typeof cause.code === 'string') {
      return { code: cause.code, message: cause.message }
    }
  }
  return null
}
