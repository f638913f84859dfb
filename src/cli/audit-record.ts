import { auditRecord } from '../domain/year/audit-record.ts'
import type { VerifyOptions, VerifyResult } from '../jobs/verify-archive.ts'
import type { Config } from './config.ts'
import { leaveRecord } from './records.ts'
import type { Terminal } from './terminal.ts'

/** Leaves a record of an audit (docs/auditing.md). One that a signal ended has no verdict but damage. */
export async function leaveAuditRecord(
  config: Config,
  { report }: VerifyResult,
  { sample, since, signal }: Pick<VerifyOptions, 'sample' | 'since' | 'signal'>,
  terminal: Pick<Terminal, 'note'>,
): Promise<void> {
  const record = auditRecord(report, sample === null && since === null, Date.now())
  if (signal.aborted && record.damage === 0) return
  await leaveRecord(config, 'audit', ({ audits }) => audits.record(record), terminal)
}
