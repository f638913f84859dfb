import { fileURLToPath } from 'node:url'
import { auditRecord } from '../domain/year/audit-record.ts'
import type { VerifyResult } from '../jobs/verify-archive.ts'
import type { VerifyOptions } from '../jobs/verify-run.ts'
import { describeError } from './exit-codes.ts'
import type { Config } from './config.ts'
import { leaveRecord, STATE_IS_CREATED_BY } from './records.ts'
import type { Terminal } from './terminal.ts'

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
