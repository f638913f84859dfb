import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { auditRecord } from '../domain/year/audit-record.ts'
import type { VerifyOptions, VerifyResult } from '../jobs/verify-archive.ts'
import type { Config } from './config.ts'
import { describeError } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

/**
 * Leaves a record of an audit for the page (docs/auditing.md). One that a signal ended has no verdict but damage. The
 * audit stands whether its record could be left or not, and creates no state database.
 */
export async function leaveRecord(
  config: Config,
  { report }: VerifyResult,
  { sample, since, signal }: Pick<VerifyOptions, 'sample' | 'since' | 'signal'>,
  { note }: Pick<Terminal, 'note'>,
): Promise<void> {
  const record = auditRecord(report, sample === null && since === null, Date.now())
  if (signal.aborted && record.damage === 0) return
  const { url } = config.state
  if (url.startsWith('file:') && !existsSync(fileURLToPath(url))) return
  // Loaded only where there is something to write to: it takes longer than a small audit.
  const { openAuditLog } = await import('./wire.ts')
  const log = openAuditLog(config)
  try {
    await log.record(record)
  } catch (error) {
    note(`no record of this audit could be left in the state database: ${describeError(error)}`)
  } finally {
    log.close()
  }
}
