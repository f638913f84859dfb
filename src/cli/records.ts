import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { AuditLog, JobLog } from '../domain/ports.ts'
import type { Config } from './config.ts'
import { describeError } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

/** Logs in the state database that commands add to. */
export interface Records {
  audits: Pick<AuditLog, 'record'>
  jobs: Pick<JobLog, 'record'>
}

/**
 * Leaves a record in the state database, where there is one: none is created for it. What was done stands whether it could
 * be left or not.
 *
 * @param what it is a record of, as a note names it
 * @returns false when there is no state database
 */
export async function leaveRecord(
  config: Config,
  what: string,
  record: (records: Records) => Promise<void>,
  { note }: Pick<Terminal, 'note'>,
): Promise<boolean> {
  const { url } = config.state
  if (url.startsWith('file:') && !existsSync(fileURLToPath(url))) return false
  // Loaded only where there is something to write to: it takes longer than a small audit.
  const { openRecords } = await import('./wire.ts')
  const records = openRecords(config)
  try {
    await record(records)
  } catch (error) {
    note(`no record of this ${what} could be left in the state database: ${describeError(error)}`)
  } finally {
    records.close()
  }
  return true
}
