import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { AuditLog, JobLog } from '../domain/ports.ts'
import type { Config } from './config.ts'
import { describeError } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

/** Which commands create the state database, for messages about a missing one. */
export const STATE_IS_CREATED_BY = 'dash serve and dash evaluate-models create it'

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
 * @returns `failed` after a note, `no-database` without one
 */
export async function leaveRecord(
  config: Config,
  what: string,
  record: (records: Records) => Promise<void>,
  { note }: Pick<Terminal, 'note'>,
): Promise<'recorded' | 'failed' | 'no-database'> {
  const { url } = config.state
  if (url.startsWith('file:') && !existsSync(fileURLToPath(url))) return 'no-database'
  // Loaded only where there is something to write to: it takes longer than a small audit.
  const { openRecords } = await import('./wire.ts')
  const records = openRecords(config)
  try {
    await record(records)
    return 'recorded'
  } catch (error) {
    note(`no record of this ${what} could be left in the state database: ${describeError(error)}`)
    return 'failed'
  } finally {
    records.close()
  }
}
