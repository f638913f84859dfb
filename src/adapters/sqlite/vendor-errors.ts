import { setTimeout as sleep } from 'node:timers/promises'
import { LibsqlError } from '@libsql/client/sqlite3'
import { Refusal, storageDamaged, storageUnavailable } from '../../domain/refusal.ts'

/**
 * Converts a vendor error to a Refusal where the contract defines one; any other error is returned unchanged as a
 * fault.
 */
export function translateError(error: unknown, name: string): unknown {
  if (error instanceof Refusal || isBusy(error)) return error
  if (error instanceof Error && error.message.includes('ConnectionFailed')) {
    const fix = 'give this user read and write access to it and its folder'
    return storageUnavailable(`${name} cannot be opened; ${fix}`, error)
  }
  const vendor = vendorError(error)
  if (!vendor) return error
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(vendor.code)) {
    return storageDamaged(`${name} is damaged: ${vendor.message}`, error)
  }
  if (/JSON cannot hold BLOB/.test(vendor.message)) {
    return storageDamaged(`${name} contains bytes instead of text`, error)
  }
  if (/no such (table|column)/.test(vendor.message)) {
    return storageDamaged(`a part of the schema of ${name} is missing: ${vendor.message}`, error)
  }
  if (/^SQLITE_(CANTOPEN|PERM|AUTH|READONLY)/.test(vendor.code)) {
    return storageUnavailable(`${name} cannot be opened: ${vendor.message}`, error)
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

/** Returns true for a lock held by another connection, under each code the driver reports it with. */
export function isBusy(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof LibsqlError && /^SQLITE_(BUSY|LOCKED)/.test(cause.code)) return true
  }
  return false
}

/**
 * Runs work, and retries it while the database is busy.
 *
 * @param deadline time by `performance.now()` after which the last busy error is thrown
 */
export async function retryBusy<T>(work: () => Promise<T>, deadline: number): Promise<T> {
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 2, 100)) {
    try {
      return await work()
    } catch (error) {
      if (!isBusy(error)) throw error
      if (performance.now() >= deadline) throw error
      await sleep(pauseMs)
    }
  }
}
