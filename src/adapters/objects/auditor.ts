import { closeSync, constants, fstatSync, openSync, readSync, readdirSync } from 'node:fs'
import type { Objects, ObjectsAuditor } from '../../domain/ports.ts'
import { OBJECT_MAX_BYTES, Refusal, StorageFault, messageOf } from '../../domain/refusal.ts'
import type { StoreLocation } from '../../domain/refusal.ts'
import { examineWhole } from '../../domain/year/envelope.ts'
import { objectPath, summarizeBytes } from '../../domain/year/examine.ts'
import type { NoBytes, ObjectOutcome, ReadFile, ReadObject } from '../../domain/year/examine.ts'
import { READ_ERROR } from '../../domain/year/finding.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { errorCode, isFolder, requireRoot } from './file-driver.ts'

/** Opens the auditor of an object store. It writes nothing, and does not access the store before its first use. */
export function openObjectsAuditor(location: StoreLocation, objects: Objects): ObjectsAuditor {
  return location.kind === 'file' ? fileAuditor(location.path, objects) : storeAuditor(objects)
}

/** The auditor of a store whose objects are read over the network or from memory. */
export function storeAuditor(
  objects: Pick<Objects, 'keys' | 'headFile' | 'get' | 'logFiles'>,
): ObjectsAuditor {
  const readObject = async (sha256: string): Promise<ReadFile> => {
    try {
      const bytes = await objects.get(sha256)
      return bytes === null ? { found: 'nothing' } : { found: 'bytes', bytes }
    } catch (error) {
      return unreadable(error)
    }
  }
  return {
    keys: objects.keys,
    logFiles: objects.logFiles,
    async headFile(key) {
      try {
        const bytes = await objects.headFile(Number(key.slice('heads/'.length)))
        return bytes === null ? { found: 'nothing' } : { found: 'bytes', bytes }
      } catch (error) {
        if (isDamaged(error) || error instanceof StorageFault) return unreadable(error)
        throw error
      }
    },
    summarize: async (key) => summarize(await readObject(key.slice(-SHA256_DIGITS))),
    prove: async (manifest) => prove(manifest, await readObject(manifest.sha256)),
  }
}

const SHA256_DIGITS = 64

function summarize(read: ReadFile): ReadObject {
  return read.found === 'bytes' ? { found: 'bytes', ...summarizeBytes(read.bytes) } : read
}

function prove(manifest: Manifest, read: ReadFile): ObjectOutcome {
  if (read.found !== 'bytes') return read
  return { found: 'bytes', byteSize: read.bytes.byteLength, problems: examineWhole(manifest, read.bytes) }
}

function isDamaged(error: unknown): boolean {
  return error instanceof Refusal && error.code === 'storage_damaged'
}

function unreadable(error: unknown): NoBytes {
  const why = messageOf(error)
  return { found: 'something else', why: isDamaged(error) ? why : READ_ERROR + why }
}

/** The auditor of a store in a folder. Files are read synchronously, which takes far less time. */
function fileAuditor(root: string, { keys, logFiles }: Pick<Objects, 'keys' | 'logFiles'>): ObjectsAuditor {
  const readFile = fileReader(root)
  const read = (key: string): ReadFile => {
    const file = readFile(key)
    // Absence proves nothing in a missing store.
    if (file.found === 'nothing') requireRoot(root)
    return file
  }
  return {
    keys: async (area) => [...(await keys(area)), ...(area === 'heads' ? foldersAmongHeads(root) : [])],
    logFiles,
    async headFile(key) {
      const file = read(key)
      return file.found === 'bytes' ? { ...file, bytes: file.bytes.slice() } : file
    },
    summarize: async (key) => summarize(read(key)),
    prove: async (manifest) => prove(manifest, read(objectPath(manifest.sha256))),
  }
}
/** Returns the keys of folders in place of head files, which the store does not list. */
function foldersAmongHeads(root: string): string[] {
  const folder = `${root}/heads`
  if (!isFolder(folder)) return []
  const entries = readdirSync(folder, { withFileTypes: true })
  return entries.flatMap((entry) => (entry.isDirectory() ? [`heads/${entry.name}`] : []))
}

/**
 * Returns a function that reads files into one shared buffer, which grows as needed. It follows no link, does not block
 * on a pipe and does not throw. The bytes are valid until the next file is read.
 *
 * @param root folder of the keys
 */
function fileReader(root: string): (key: string) => ReadFile {
  let buffer = new Uint8Array(1024 * 1024)
  const readAll = (file: number, size: number): Uint8Array => {
    // One byte more than the file has, so that reading ends at the end of the file, not of the buffer.
    if (buffer.byteLength <= size) buffer = new Uint8Array(size * 2)
    let length = 0
    for (;;) {
      const count = readSync(file, buffer, length, buffer.byteLength - length, null)
      length += count
      if (count === 0) return buffer.subarray(0, length)
      if (length === buffer.byteLength) throw new Error('it grew while it was being read')
    }
  }
  return (key) => {
    let file
    try {
      file = openSync(`${root}/${key}`, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
      const stat = fstatSync(file)
      if (!stat.isFile()) return { found: 'something else', why: 'not a regular file' }
      if (stat.size > OBJECT_MAX_BYTES) {
        return { found: 'something else', why: `a file of ${stat.size} bytes, larger than any object` }
      }
      return { found: 'bytes', bytes: readAll(file, stat.size) }
    } catch (error) {
      return failedRead(error)
    } finally {
      if (file !== undefined) closeSync(file)
    }
  }
}

function failedRead(error: unknown): ReadFile {
  const code = errorCode(error)
  switch (code) {
    case 'ENOENT':
      return { found: 'nothing' }
    case 'ELOOP':
      return { found: 'something else', why: 'a symbolic link' }
    case 'ENOTDIR':
    case 'ENXIO':
      return { found: 'something else', why: `not a regular file (${code})` }
    default:
      return { found: 'something else', why: READ_ERROR + messageOf(error) }
  }
}
