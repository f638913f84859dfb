import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { State } from '../domain/ports.ts'
import { auditRecord } from '../domain/year/finding.ts'
import type { VerifyOptions, VerifyResult } from '../jobs/verify-archive.ts'
import { describeError } from './exit-codes.ts'
import type { Config } from './settings/config.ts'
import type { Terminal } from './terminal.ts'

/** Which commands create the state database, for messages about a missing one. */
export const STATE_IS_CREATED_BY = 'dash serve and dash evaluate-models create it'

/** Logs in the state database that commands add to. */
export interface Records {
  audits: Pick<State['audits'], 'record'>
  jobs: Pick<State['jobs'], 'record'>
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

/**
 * Leaves a record of an audit (docs/auditing.md). One that a signal ended has no verdict but damage.
 *
 * @returns whether a record was left
 */
export async function leaveAuditRecord(
  config: Config,
  { report, cause }: VerifyResult,
  { sample, since, signal }: Pick<VerifyOptions, 'sample' | 'since' | 'signal'>,
  terminal: Pick<Terminal, 'note'>,
): Promise<boolean> {
  // The failure that ended the audit is described once.
  const said = cause === null ? null : describeError(cause)
  const note = (message: string): void => {
    if (said === null || !message.endsWith(said)) terminal.note(message)
  }
  const record = auditRecord(report, sample === null && since === null, Date.now())
  if (signal.aborted && record.damage === 0) return false
  const left = await leaveRecord(config, 'audit', ({ audits }) => audits.record(record), { note })
  if (left !== 'no-database') return left === 'recorded'
  const path = fileURLToPath(config.state.url)
  note(`no record of this audit is left: there is no state database ${path}; ${STATE_IS_CREATED_BY}`)
  return false
}
