import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { OBJECT_MAX_BYTES } from '../../domain/refusal.ts'
import { READ_ERROR } from '../../domain/year/finding.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { examineBytes } from '../../domain/year/examine.ts'
import type { NoBytes, ObjectOutcome } from '../../domain/year/examine.ts'

/** Result of reading a file. The bytes are valid until the next file is read. */
type FileRead = { found: 'bytes'; bytes: Uint8Array } | NoBytes

/** `identity` compares digest, size and identity with the manifest; `whole` also checks the payload. */
export type Examination = 'identity' | 'whole'

/** An object in a file, and the manifest that names it. */
export interface StoredObject {
  path: string
  manifest: Manifest
}

/** Returns a function that compares the file of an object with its manifest. */
export async function objectExaminer(
  examination: Examination,
): Promise<(object: StoredObject) => ObjectOutcome> {
  const readFile = fileReader()
  const examine = await loadExaminer(examination)
  return ({ path, manifest }) => {
    const read = readFile(path)
    if (read.found !== 'bytes') return read
    return { found: 'bytes', byteSize: read.bytes.byteLength, problems: examine(manifest, read.bytes) }
  }
}

/**
 * Loads the function that compares stored bytes with a manifest. The schema of a payload is loaded only if needed:
 * loading it takes longer than the first step of most audits.
 */
export async function loadExaminer(examination: Examination): Promise<typeof examineBytes> {
  if (examination === 'identity') return examineBytes
  const { examineWhole } = await import('../../domain/year/envelope.ts')
  return examineWhole
}

/**
 * Returns a function that reads files into one shared buffer, which grows as needed. It follows no link, does not block
 * on a pipe and does not throw.
 */
export function fileReader(): (path: string) => FileRead {
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
  return (path) => {
    let file
    try {
      file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
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

function failedRead(error: unknown): FileRead {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  switch (code) {
    case 'ENOENT':
      return { found: 'nothing' }
    case 'ELOOP':
      return { found: 'something else', why: 'a symbolic link' }
    case 'ENOTDIR':
    case 'ENXIO':
      return { found: 'something else', why: `not a regular file (${code})` }
    default:
      return {
        found: 'something else',
        why: READ_ERROR + (error instanceof Error ? error.message : String(error)),
      }
  }
}
