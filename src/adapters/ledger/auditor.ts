import type { LedgerAuditor } from '../../domain/ports.ts'
import type { DatabaseLocation } from '../../domain/storage.ts'
import { untouchedDatabase } from '../libsql/untouched.ts'
import { readForAudit } from './audit.ts'

/**
 * The auditor of a ledger. It writes nothing, and leaves the file as it is.
 *
 * @param waiting as for any database
 */
export function ledgerAuditor(
  location: DatabaseLocation,
  waiting: { nativeBusyMs: number; retryMs: number },
): LedgerAuditor {
  const ledger = untouchedDatabase(location, waiting)
  return { read: () => ledger.read(readForAudit) }
}
