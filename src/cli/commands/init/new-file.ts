import { closeSync, fchmodSync, fsyncSync, lstatSync, openSync, rmSync, writeSync } from 'node:fs'
import { configurationError } from '../../environment.ts'

/**
 * @param advice what to do about a file that is there
 * @throws Refusal `configuration`
 */
export function requireAbsent(path: string, advice = 'move it away, or name another folder'): void {
  // A link that leads nowhere is there too.
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return
  throw configurationError(`${path} is there already and is not overwritten; ${advice}`)
}

/**
 * Writes a file that was not there, durably; nothing is left of one that could not be written whole.
 *
 * @throws Refusal `configuration`
 */
export function writeNew(path: string, text: string, mode: number): void {
  let file: number
  try {
    file = openSync(path, 'wx', mode)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') requireAbsent(path)
    throw notWritten(path, error)
  }
  try {
    // A unit is read by others than its owner, whatever the mask is.
    fchmodSync(file, mode)
    writeSync(file, text)
    fsyncSync(file)
  } catch (error) {
    rmSync(path, { force: true })
    throw notWritten(path, error)
  } finally {
    closeSync(file)
  }
}

function notWritten(path: string, error: unknown): Error {
  const why = error instanceof Error ? error.message : String(error)
  return configurationError(`${path} cannot be written (${why})`)
}
