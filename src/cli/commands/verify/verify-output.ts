import { describeFinding, isDamage } from '../../../domain/year/finding.ts'
import type { AuditProgress, VerifyReport, VerifyResult } from '../../../jobs/archive/audit.ts'
import { describeError } from '../../exit-codes.ts'
import { counted } from '../../terminal.ts'
import type { Terminal } from '../../terminal.ts'

/** Most findings printed; `--json` prints all. */
const FINDINGS_SHOWN = 50

/** Shortest time between two progress lines, in milliseconds. */
const PROGRESS_EVERY_MS = 100

/** Limits the rate of reports: a value too soon after the last one is dropped. */
export function throttled<T>(report: (value: T) => void): (value: T) => void {
  let next = 0
  return (value) => {
    if (performance.now() < next) return
    next = performance.now() + PROGRESS_EVERY_MS
    report(value)
  }
}

export function describeProgress({ done, of, bytes, findings }: AuditProgress): string {
  return `${done} of ${of} objects, ${megabytes(bytes)} read, ${findings} findings`
}

/** Prints the findings of a result and the failure that ended it. */
export function showFindings({ report, cause }: VerifyResult, { error, note }: Terminal): void {
  const orphans = report.findings.filter(({ code }) => code === 'orphan_object')
  const damage = report.findings.filter(({ code }) => code !== 'orphan_object')
  for (const finding of damage.slice(0, FINDINGS_SHOWN)) error(describeFinding(finding))
  if (damage.length > FINDINGS_SHOWN)
    error(`and ${damage.length - FINDINGS_SHOWN} more findings; --json lists them all`)
  for (const finding of orphans.slice(0, FINDINGS_SHOWN)) note(describeFinding(finding))
  if (orphans.length > FINDINGS_SHOWN) note(`and ${orphans.length - FINDINGS_SHOWN} more orphans`)
  if (cause !== null) error(`the audit ended early: ${describeError(cause)}`)
}

/**
 * Returns the summary line of an audit.
 *
 * @param isOwnUnrelated true if the local archive could not be compared with the audited host
 */
export function summarize(
  { ok, complete, publications, objects, bytes, gaps, head, findings }: VerifyReport,
  isOwnUnrelated: boolean,
): string {
  const read = `${counted(publications, 'publication')}, ${counted(objects, 'object')} with ${megabytes(bytes)} read, ${counted(gaps, 'gap')}, head ${head.seq} ${head.leaf.slice(0, 16)}`
  const alone = isOwnUnrelated ? ' (not compared with the local archive, which is a different one)' : ''
  if (ok) return `sound${alone}: ${read}`
  const damage = findings.filter(isDamage).length
  const verdict = damage > 0 ? `DAMAGED, ${counted(damage, 'finding')}` : 'NOT PROVED'
  return `${verdict}${complete ? '' : ', ended early'}: ${read}`
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}

/** Returns the notes of a forked log below the summary; empty without a fork. */
export function forkText({ log }: Pick<VerifyReport, 'log'>): string {
  return (log?.fork ?? []).map(({ file, note }) => `\n${file}:\n${note}`).join('')
}
