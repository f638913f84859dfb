import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs'

/** Waits for a pipe: for its writer, and for what a writer still sends. No signal is handled meanwhile. */
const NO_WRITER_MS = 1_000
const SLOW_WRITER_MS = 20_000
const PAUSE_MS = 20

const CHUNK_BYTES = 64 * 1024

/**
 * Reads a file that an operator names, which may be a pipe of a shell (`<(…)`). Opening a pipe without a writer would
 * block this thread for ever, signals included.
 *
 * @throws Error of the system, or for a pipe to which nothing is written
 */
export function readNamedFile(path: string): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stats = fstatSync(file)
    return stats.isFile() || stats.isDirectory() ? readFileSync(file) : readPipe(file, stats.isFIFO())
  } finally {
    closeSync(file)
  }
}

/** @param isPipe false for a device, which ends without a writer */
function readPipe(file: number, isPipe: boolean): Buffer {
  const chunks: Buffer[] = []
  const startedAt = performance.now()
  for (;;) {
    const chunk = readAvailable(file)
    if (chunk?.byteLength === 0 && (chunks.length > 0 || !isPipe)) return Buffer.concat(chunks)
    if (chunk !== null && chunk.byteLength > 0) chunks.push(chunk)
    else if (performance.now() - startedAt > (chunk === null ? SLOW_WRITER_MS : NO_WRITER_MS))
      throw new Error(chunk === null ? 'its writer is too slow' : 'nothing is written to the pipe')
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
  }
}

/** @returns an empty chunk at the end, and while a pipe has no writer; null while a writer has sent nothing */
function readAvailable(file: number): Buffer | null {
  const chunk = Buffer.alloc(CHUNK_BYTES)
  try {
    return chunk.subarray(0, readSync(file, chunk))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return null
    throw error
  }
}
