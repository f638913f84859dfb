import { randomUUID } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { defineDriver } from 'unstorage'
import type { TransactionOptions } from 'unstorage'
import type { Clock } from '../../domain/ports.ts'
import { OBJECT_MAX_BYTES, storageDamaged, storageUnavailable } from '../../domain/refusal.ts'
import { ABSENT, fileChangeToken } from '../change-token.ts'

const TEMPORARY_PREFIX = '.writing-'

/**
 * An unstorage driver for files that are never changed, but for those that are replaced whole. unstorage's own truncates in place, never syncs and resolves with an Error
 * as the value; an archive cannot stand on that.
 *
 * A write is: temporary file in the target's folder, fsync, link without overwriting, fsync of the folder, read back.
 * A write with `replace` renames instead of linking: who reads meanwhile gets the old bytes or the new ones, whole.
 * Writes are synchronous on purpose: they belong to batch jobs, and each step must happen before the next is begun.
 *
 * @param root folder of the store; must exist
 * @param fileClock the clock the file system stamps with; see {@link fileChangeToken}
 */
export const immutableFiles = defineDriver(({ root, fileClock }: { root: string; fileClock: Clock }) => ({
  name: 'immutable-files',

  async getItem(): Promise<never> {
    throw new Error('objects are bytes: use getItemRaw')
  },

  async hasItem(key: string): Promise<boolean> {
    return statSync(pathOf(root, key), { throwIfNoEntry: false })?.isFile() ?? false
  },

  /** The bytes, or null when the root is there and the file is not. Anything but a regular file is damage. */
  async getItemRaw(key: string): Promise<Buffer | null> {
    const path = pathOf(root, key)
    // Without O_NONBLOCK a pipe in the file's place would block for ever; O_NOFOLLOW refuses a link.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    let file
    try {
      file = await open(path, flags)
    } catch (error) {
      requireRoot(root)
      if (codeOf(error) === 'ENOENT') return null
      throw notReadable(path, error)
    }
    try {
      const stat = await file.stat()
      if (!stat.isFile()) throw storageDamaged(`${path} is not a regular file`)
      if (stat.size > OBJECT_MAX_BYTES)
        throw storageDamaged(`${path} has ${stat.size} bytes, more than any object`)
      return await file.readFile()
    } finally {
      await file.close()
    }
  },

  async setItemRaw(
    key: string,
    value: Uint8Array,
    { replace = false }: TransactionOptions = {},
  ): Promise<void> {
    requireRoot(root)
    const path = pathOf(root, key)
    try {
      makeFolders(root, dirname(path))
    } catch (error) {
      throw notReadable(dirname(path), error)
    }
    storeFile(path, value, replace)
  },

  /** Paths of the files below a base, `a/b/c` from the root on; unfinished temporary files are none. */
  async getKeys(base = ''): Promise<string[]> {
    const folder = pathOf(root, base.replace(/:+$/, ''))
    try {
      const names = await readdir(folder, { recursive: true, withFileTypes: true })
      const below = join(root, '/').length
      return names
        .filter((entry) => !entry.isDirectory() && !entry.name.startsWith(TEMPORARY_PREFIX))
        .map((entry) => `${entry.parentPath}/${entry.name}`.slice(below))
    } catch (error) {
      requireRoot(root)
      if (codeOf(error) !== 'ENOENT') throw notReadable(folder, error)
      return []
    }
  },

  /** `changeToken` of the file or folder itself: see {@link fileChangeToken}. */
  async getMeta(key: string): Promise<{ changeToken: string | null }> {
    const changeToken = fileChangeToken([pathOf(root, key)], fileClock)
    // Absence in a store that is not there proves nothing.
    return { changeToken: changeToken === ABSENT && !isFolder(root) ? null : changeToken }
  },
}))

/** @throws Refusal `storage_unavailable` when the store's folder is not there: a disk not mounted is no empty store. */
export function requireRoot(root: string): void {
  if (!isFolder(root))
    throw storageUnavailable(`the object store's folder ${root} is not there or may not be entered`)
}

/** @throws Refusal `storage_unavailable` when the store's folder is not there or may not be written to */
export function requireWritableRoot(root: string): void {
  requireRoot(root)
  try {
    accessSync(root, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw storageUnavailable(`the object store's folder ${root} may not be written to by this user`, error)
  }
}

/**
 * Writes a file whole, durable and read back on return.
 *
 * @param replace false: a file that is there must hold the same bytes
 */
export function storeFile(path: string, bytes: Uint8Array, replace: boolean): void {
  const temporary = join(dirname(path), `${TEMPORARY_PREFIX}${process.pid}-${randomUUID()}`)
  try {
    writeDurably(temporary, bytes)
    if (replace) renameOver(temporary, path)
    else linkUnlessThere(temporary, path)
  } finally {
    unlinkIfThere(temporary)
  }
  syncFolder(dirname(path))
  if (!lstatSync(path).isFile() || Buffer.compare(readFileSync(path), bytes) !== 0) {
    throw storageDamaged(`${path} holds other bytes than the ones written to it`)
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
  } catch {
    return false
  }
}

function pathOf(root: string, key: string): string {
  return join(root, ...key.split(':'))
}

/** Creates the missing folders between the root and `folder`, each durable before the next. */
function makeFolders(root: string, folder: string): void {
  if (folder === root || isFolder(folder)) return
  makeFolders(root, dirname(folder))
  try {
    mkdirSync(folder)
  } catch (error) {
    if (!isFolder(folder)) throw error
  }
  syncFolder(dirname(folder))
}

function writeDurably(path: string, bytes: Uint8Array): void {
  const file = openSync(path, 'wx', 0o444)
  try {
    for (let written = 0; written < bytes.byteLength;) written += writeSync(file, bytes, written)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** An existing target stays what it is; the comparison after the write tells whether it is the same. */
function linkUnlessThere(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return
    if (codeOf(error) === 'EPERM' || codeOf(error) === 'ENOTSUP') {
      throw storageUnavailable(
        `${dirname(to)} is on a file system without hard links, which objects need`,
        error,
      )
    }
    throw error
  }
}

function renameOver(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    // A folder stands in the file's place.
    if (codeOf(error) === 'EISDIR' || codeOf(error) === 'ENOTEMPTY')
      throw storageDamaged(`${to} is not what belongs there`, error)
    throw error
  }
}

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** A place this user may not enter is unavailable, something else in its place is damage; the rest are faults. */
function notReadable(path: string, error: unknown): unknown {
  switch (codeOf(error)) {
    case 'EACCES':
    case 'EPERM':
      return storageUnavailable(`${path} may not be read or written by this user`, error)
    case 'ELOOP':
    case 'ENOTDIR':
    case 'ENXIO':
    case 'EEXIST':
      return storageDamaged(`${path} is not what belongs there`, error)
    default:
      return error
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
