import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { OBJECT_MAX_BYTES } from '../../domain/refusal.ts'
import { READ_ERROR } from '../../domain/year/finding.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { objectPath, summarizeBytes } from '../../domain/year/examine.ts'
import type { ObjectOutcome, ReadFile, ReadObject, examineBytes } from '../../domain/year/examine.ts'

/** An object to read without its manifest, or one to prove as a server does. */
export type Question = { key: string } | { manifest: Manifest }

/** What a question about an object found. */
export type Answer = ReadObject | ObjectOutcome

/**
 * Returns a function that answers questions about the objects in a folder.
 *
 * @param examineWhole loaded only where it is needed: that takes longer than the first step of most audits
 */
export function fileExaminer(
  root: string,
  examineWhole: typeof examineBytes,
): (question: Question) => Answer {
  const readFile = fileReader(root)
  return (question) => {
    const read = readFile('key' in question ? question.key : objectPath(question.manifest.sha256))
    if (read.found !== 'bytes') return read
    const { bytes } = read
    if ('key' in question) return { found: 'bytes', ...summarizeBytes(bytes) }
    return { found: 'bytes', byteSize: bytes.byteLength, problems: examineWhole(question.manifest, bytes) }
  }
}

/**
 * Returns a function that reads files into one shared buffer, which grows as needed. It follows no link, does not block
 * on a pipe and does not throw. The bytes are valid until the next file is read.
 *
 * @param root folder of the keys
 */
export function fileReader(root: string): (key: string) => ReadFile {
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
