import { randomUUID } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { defineDriver } from 'unstorage'
import type { TransactionOptions } from 'unstorage'
import type { Clock } from '../../domain/ports.ts'
import { OBJECT_MAX_BYTES, errorCode, storageDamaged, storageUnavailable } from '../../domain/refusal.ts'
import { ABSENT, fileChangeToken } from '../change-token.ts'

const TEMPORARY_PREFIX = '.writing-'

/** How files and folders are written. */
interface WriteOptions {
  /** True if every user may read them, whatever the umask is. Default: false. */
  isPublic?: boolean
  /** False if a power cut may lose them. Default: true. */
  isDurable?: boolean
}

/** Files that every user may read. */
const PUBLIC: WriteOptions = { isPublic: true }

interface FileDriverOptions extends WriteOptions {
  root: string
  fileClock: Clock
}

/**
 * An unstorage driver for files that are never changed, only replaced as a whole. unstorage's own driver truncates
 * in place, never syncs and resolves with an Error as the value, which is unsafe for an archive.
 *
 * A write creates a temporary file in the target's folder, syncs it, links it without overwriting, syncs the folder
 * and reads the file back. A write with `replace` renames instead of linking: a concurrent reader gets either the
 * old bytes or the new ones. Writes are synchronous: they belong to batch jobs, and each step must complete before
 * the next one begins.
 *
 * @param root folder of the store; must exist
 * @param fileClock the clock that sets the file system's timestamps; see {@link fileChangeToken}
 */
export const immutableFiles = defineDriver(({ root, fileClock, ...writing }: FileDriverOptions) => ({
  name: 'immutable-files',

  async getItem(): Promise<never> {
    throw new Error('objects are bytes: use getItemRaw')
  },

  async hasItem(key: string): Promise<boolean> {
    requireRoot(root)
    return statSync(pathOf(root, key), { throwIfNoEntry: false })?.isFile() ?? false
  },

  /** Returns the bytes, or null if the root exists and the file does not. Anything but a regular file is damage. */
  async getItemRaw(key: string): Promise<Buffer | null> {
    const path = pathOf(root, key)
    // Without O_NONBLOCK, opening a pipe would block forever; O_NOFOLLOW refuses a link.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    let file
    try {
      file = await open(path, flags)
    } catch (error) {
      requireRoot(root)
      if (errorCode(error) === 'ENOENT') return null
      throw accessError(path, error)
    }
    try {
      const stat = await file.stat()
      if (!stat.isFile()) throw storageDamaged(`${path} is not a regular file`)
      if (stat.size > OBJECT_MAX_BYTES)
        throw storageDamaged(`${path} has ${stat.size} bytes, more than any object may have`)
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
    storeFile(preparedPath(root, key, writing), value, replace, writing)
  },

  /** Returns the paths of the files below a base, `a/b/c` relative to the root, without temporary files. */
  async getKeys(base = ''): Promise<string[]> {
    const folder = pathOf(root, base.replace(/:+$/, ''))
    try {
      const entries = await readdir(folder, { recursive: true, withFileTypes: true })
      const prefixLength = join(root, '/').length
      return entries
        .filter((entry) => !entry.isDirectory() && !entry.name.startsWith(TEMPORARY_PREFIX))
        .map((entry) => `${entry.parentPath}/${entry.name}`.slice(prefixLength))
    } catch (error) {
      requireRoot(root)
      if (errorCode(error) !== 'ENOENT') throw accessError(folder, error)
      return []
    }
  },

  /** Returns the change token of the file or folder itself; see {@link fileChangeToken}. */
  async getMeta(key: string): Promise<{ changeToken: string | null }> {
    const changeToken = fileChangeToken([pathOf(root, key)], fileClock)
    // Absence proves nothing in a missing store.
    return { changeToken: changeToken === ABSENT && !isFolder(root) ? null : changeToken }
  },
}))

/**
 * Requires the folder of the store.
 *
 * @throws Refusal `storage_unavailable` if it is missing: an unmounted disk is not an empty store
 */
export function requireRoot(root: string): void {
  if (!isFolder(root))
    throw storageUnavailable(
      `the folder ${root} of the object store does not exist or this user cannot open it`,
    )
}

/**
 * Requires the folder of the store, with permission to write.
 *
 * @throws Refusal `storage_unavailable` if it is missing or not writable
 */
export function requireWritableRoot(root: string): void {
  requireRoot(root)
  try {
    accessSync(root, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw storageUnavailable(`this user cannot write to the folder ${root}; give it access`, error)
  }
}

/**
 * Replaces a public file whole, durable and read back on return. The comparison and the replacement are two system calls
 * without a pause between them.
 *
 * @param before the bytes that the file must have; null if it must be missing
 * @returns false if it has other bytes
 */
export function replaceFile(
  root: string,
  key: string,
  before: Uint8Array | null,
  bytes: Uint8Array,
): boolean {
  return storeFile(preparedPath(root, key, PUBLIC), bytes, (path) => hasBytes(path, before), PUBLIC)
}

/** Creates the folders of a file and returns its path. */
function preparedPath(root: string, key: string, writing: WriteOptions): string {
  requireWritableRoot(root)
  const path = pathOf(root, key)
  try {
    makeFolders(dirname(path), { root, ...writing })
  } catch (error) {
    throw accessError(dirname(path), error)
  }
  return path
}

function hasBytes(path: string, bytes: Uint8Array | null): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined || bytes === null) return stat === undefined && bytes === null
  return stat.isFile() && Buffer.compare(readFileSync(path), bytes) === 0
}

/**
 * Writes a file whole, durable unless it need not be, and read back on return.
 *
 * @param replace false: a file that is there must hold the same bytes; a function: it decides, just before the file is
 *   replaced, whether it is
 * @returns false if the function decided against it
 */
export function storeFile(
  path: string,
  bytes: Uint8Array,
  replace: boolean | ((path: string) => boolean),
  writing: WriteOptions = {},
): boolean {
  const temporary = join(dirname(path), `${TEMPORARY_PREFIX}${process.pid}-${randomUUID()}`)
  try {
    writeFile(temporary, bytes, writing)
    if (typeof replace === 'function' && !replace(path)) return false
    if (replace) renameOver(temporary, path)
    else linkIfAbsent(temporary, path)
  } finally {
    rmSync(temporary, { force: true })
  }
  if (writing.isDurable !== false) syncFolder(dirname(path))
  if (!hasBytes(path, bytes))
    throw storageDamaged(`${path} does not contain the bytes that were written to it`)
  return true
}

export function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
  } catch {
    return false
  }
}

function pathOf(root: string, key: string): string {
  return join(root, ...key.split(':'))
}

/**
 * Creates the missing folders down to `folder`, and makes each durable before the next.
 *
 * @param root a folder that must exist; without it every missing parent is created
 */
export function makeFolders(folder: string, options: WriteOptions & { root?: string } = {}): void {
  if (folder === options.root || isFolder(folder)) return
  makeFolders(dirname(folder), options)
  try {
    mkdirSync(folder)
    if (options.isPublic) chmodSync(folder, 0o755)
  } catch (error) {
    if (!isFolder(folder)) throw error
  }
  if (options.isDurable !== false) syncFolder(dirname(folder))
}

function writeFile(
  path: string,
  bytes: Uint8Array,
  { isPublic = false, isDurable = true }: WriteOptions,
): void {
  const file = openSync(path, 'wx', 0o444)
  try {
    if (isPublic) fchmodSync(file, 0o444)
    for (let written = 0; written < bytes.byteLength;) written += writeSync(file, bytes, written)
    if (isDurable) fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Links a file unless the target exists; the comparison after the write detects other bytes. */
function linkIfAbsent(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return
    if (errorCode(error) === 'EPERM' || errorCode(error) === 'ENOTSUP') {
      throw storageUnavailable(
        `${dirname(to)} is on a file system without hard links, which the object store needs; use another disk`,
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
    // The target is a folder.
    if (errorCode(error) === 'EISDIR' || errorCode(error) === 'ENOTEMPTY')
      throw storageDamaged(`${to} does not have the expected content`, error)
    throw error
  }
}

/** Makes the names in a folder durable. */
function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/**
 * Converts an error: missing permission is `storage_unavailable`, a wrong kind of file is `storage_damaged`; any
 * other error stays a fault.
 */
function accessError(path: string, error: unknown): unknown {
  switch (errorCode(error) ?? '') {
    case 'EACCES':
    case 'EPERM':
      return storageUnavailable(`this user cannot read or write ${path}; give it access`, error)
    case 'ELOOP':
    case 'ENOTDIR':
    case 'ENXIO':
    case 'EEXIST':
      return storageDamaged(`${path} is not the expected kind of file`, error)
    default:
      return error
  }
}
