import { LibsqlError } from '@libsql/client/sqlite3'
import { DrizzleQueryError } from 'drizzle-orm/errors'
import { Refusal } from '../../domain/refusal.ts'
import { storageDamaged, storageUnavailable } from '../../domain/storage.ts'
import { isBusy } from './busy.ts'

/** Vendor error to Refusal where the contract tells them apart; anything else stays what it is, a fault. */
export function translate(error: unknown, name: string): unknown {
  if (error instanceof Refusal || isBusy(error)) return error
  if (error instanceof DrizzleQueryError && error.cause instanceof Refusal) return error.cause
  if (error instanceof Error && error.message.includes('ConnectionFailed')) {
    const mend = 'this user must be able to read and write it and its folder'
    return storageUnavailable(`${name} cannot be opened; ${mend}`, error)
  }
  const vendor = vendorError(error)
  if (!vendor) return error
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(vendor.code)) {
    return storageDamaged(`${name} is damaged: ${vendor.message}`, error)
  }
  if (/JSON cannot hold BLOB/.test(vendor.message)) {
    return storageDamaged(`${name} holds bytes where a text belongs`, error)
  }
  if (/no such (table|column)/.test(vendor.message)) {
    return storageDamaged(`${name} lacks a part of its schema: ${vendor.message}`, error)
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
