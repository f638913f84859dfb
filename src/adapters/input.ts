import { constants, createReadStream, createWriteStream, fstatSync, openSync, statSync } from 'node:fs'
import { mkdtemp, open, realpath, rm, stat } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { InputLine, LineSource } from '../domain/ports.ts'
import type { ArchiveFolder } from '../domain/year/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { MANIFESTS_FILE } from '../domain/year/legacy-import.ts'

/** Maximum length of a line; a row of any source is a small fraction of it. */
const LINE_MAX_BYTES = 1024 * 1024

const NEWLINE = 0x0a

/** A plain or gzip file on disk; gzip is detected by the first bytes, not by the name. */
export function lineFile(path: string, name: string = path): LineSource {
  return {
    name,
    async *lines() {
      try {
        const bytes = await openBytes(path)
        try {
          yield* splitLines(bytes.chunks)
        } finally {
          bytes.close()
        }
      } catch (error) {
        throw inputRefusal(name, error)
      }
    },
  }
}

/**
 * Opens the files of a command line. Standard input (`-`) and pipes (`<(…)` of a shell) are copied to private temporary
 * files because an import reads twice; `close` removes them.
 *
 * @param signal stops the copying
 */
export async function openInputs(
  files: readonly string[],
  stdin: Readable,
  signal: AbortSignal,
): Promise<{ sources: LineSource[]; close: () => Promise<void> }> {
  const sources: LineSource[] = []
  const folders: string[] = []
  const close = async (): Promise<void> => {
    for (const folder of folders) await rm(folder, { recursive: true, force: true })
  }
  const copy = async (input: Readable, name: string): Promise<LineSource> => {
    const folder = await mkdtemp(join(tmpdir(), 'dash-input-'))
    folders.push(folder)
    const path = join(folder, 'input')
    await pipeline(input, createWriteStream(path, { mode: 0o600 }), { signal }).catch((error: unknown) => {
      signal.throwIfAborted()
      throw inputRefusal(name, error)
    })
    return lineFile(path, name)
  }
  try {
    for (const file of files) {
      if (file === '-') sources.push(await copy(stdin, file))
      else sources.push(isPipe(file) ? await copy(openPipe(file), file) : lineFile(file))
    }
    return { sources, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Returns false if this user cannot look: reading the file reports why. */
function isPipe(file: string): boolean {
  try {
    const stats = statSync(file)
    return stats.isFIFO() || stats.isSocket() || stats.isCharacterDevice()
  } catch {
    return false
  }
}

/**
 * Opens a pipe without blocking a thread until it has a writer: that thread would keep the process from ending.
 *
 * @throws Refusal `input_unreadable`
 */
function openPipe(path: string): Readable {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    return fstatSync(fd).isFIFO()
      ? new Socket({ fd, readable: true, writable: false })
      : createReadStream(path, { fd })
  } catch (error) {
    throw inputRefusal(path, error)
  }
}

/** Compressions that are not undone, by their first bytes. */
const UNSUPPORTED = Object.entries({
  '28b52ffd': 'zstd',
  fd377a58: 'xz',
  '425a68': 'bzip2',
  '504b0304': 'zip',
})

async function openBytes(path: string): Promise<{ chunks: AsyncIterable<Buffer>; close: () => void }> {
  const start = Buffer.alloc(4)
  if (!(await stat(path)).isFile()) throw new Error('it is not a regular file')
  const file = await open(path, 'r')
  try {
    await file.read(start, 0, start.byteLength, 0)
  } finally {
    await file.close()
  }
  const [, compression] = UNSUPPORTED.find(([magic]) => start.toString('hex').startsWith(magic)) ?? []
  if (compression !== undefined)
    throw new Error(`it is compressed with ${compression}; decompress it, or compress it with gzip instead`)
  const bytes = createReadStream(path, { highWaterMark: 256 * 1024 })
  const close = (): void => void bytes.destroy()
  if (start[0] !== 0x1f || start[1] !== 0x8b) return { chunks: bytes, close }
  const gunzip = createGunzip({ chunkSize: 256 * 1024 })
  bytes.on('error', (error) => gunzip.destroy(error))
  return { chunks: bytes.pipe(gunzip), close }
}

/** Yields the lines of a file in batches, one per chunk that ends a line. */
async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<InputLine[]> {
  let number = 1
  let unfinished: Buffer[] = []
  let unfinishedBytes = 0
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(NEWLINE)
    if (end === -1) {
      // A line over the limit is kept only up to the chunk that exceeds it.
      if (unfinishedBytes <= LINE_MAX_BYTES) unfinished.push(chunk)
      unfinishedBytes += chunk.byteLength
      continue
    }
    const lines = decodeLines(Buffer.concat([...unfinished, chunk.subarray(0, end)]), number)
    yield numberLines(lines, number)
    number += lines.length
    unfinished = [chunk.subarray(end + 1)]
    unfinishedBytes = chunk.byteLength - end - 1
  }
  yield numberLines(decodeLines(Buffer.concat(unfinished), number), number)
}

/** A line, or the reason it cannot be read. */
type DecodedLine = string | { problem: string }

const TOO_LONG = { problem: `longer than ${LINE_MAX_BYTES} bytes` }
const NOT_UTF8 = { problem: 'not valid UTF-8' }

/** Decodes all lines at once if possible, which takes a fraction of the time. */
function decodeLines(bytes: Buffer, firstNumber: number): DecodedLine[] {
  const decoded = decode(bytes, firstNumber === 1)
  if (decoded !== null) return decoded.split('\n').map((text) => (isTooLong(text) ? TOO_LONG : text))
  return splitBuffers(bytes).map((line, index) => {
    if (line.byteLength > LINE_MAX_BYTES) return TOO_LONG
    return decode(line, firstNumber + index === 1) ?? NOT_UTF8
  })
}

function decode(bytes: Buffer, isStart: boolean): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: !isStart }).decode(bytes)
  } catch {
    return null
  }
}

/** Adds line numbers. Blank lines are omitted but counted. */
function numberLines(lines: readonly DecodedLine[], firstNumber: number): InputLine[] {
  const kept: InputLine[] = []
  for (const [index, line] of lines.entries()) {
    const number = firstNumber + index
    if (typeof line !== 'string') kept.push({ number, ...line })
    else if (line.trim() !== '') kept.push({ number, text: line })
  }
  return kept
}

function splitBuffers(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = []
  let start = 0
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
    lines.push(bytes.subarray(start, end))
    start = end + 1
  }
  lines.push(bytes.subarray(start))
  return lines
}

/** UTF-8 takes at most three bytes per UTF-16 unit, so most lines need not be measured. */
function isTooLong(text: string): boolean {
  return text.length > LINE_MAX_BYTES / 3 && Buffer.byteLength(text) > LINE_MAX_BYTES
}

/** @param missing error codes that mean that the file does not exist */
function inputRefusal(name: string, error: unknown, missing: readonly string[] = ['ENOENT']): unknown {
  if (!(error instanceof Error)) return error
  const isMissing = missing.includes('code' in error ? String(error.code) : '')
  const reason = isMissing ? 'no such file' : error.message
  return new Refusal('input_unreadable', `${name}: ${reason}`, { cause: error })
}

/** The folder of an older archive on disk. Symbolic links may point inside the folder, never outside. */
export function archiveFolder(path: string): ArchiveFolder {
  return {
    manifests: lineFile(join(path, MANIFESTS_FILE)),
    async read(file, byteSize) {
      try {
        return await readWithin(path, file, byteSize)
      } catch (error) {
        throw inputRefusal(`file ${JSON.stringify(file)}`, error, ['ENOENT', 'ENOTDIR'])
      }
    },
  }
}

async function readWithin(folder: string, file: string, byteSize: number): Promise<Uint8Array> {
  const root = await realpath(folder)
  const path = await realpath(join(root, file))
  if (!path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`))
    throw new Error('it is outside the folder')
  // Without O_NONBLOCK, opening a pipe would block forever.
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw new Error('it is not a regular file')
    if (stats.size !== byteSize) throw new Error(`it has ${stats.size} bytes instead of ${byteSize}`)
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}
