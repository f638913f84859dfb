import { describeFinding, isDamage } from '../../../domain/year/finding.ts'
import type { VerifyProgress, VerifyReport, VerifyResult } from '../../../jobs/verify-archive.ts'
import { describeError } from '../../exit-codes.ts'
import { counted } from '../../terminal.ts'
import type { Terminal } from '../../terminal.ts'

/** Findings shown to a person; `--json` has them all. */
const FINDINGS_SHOWN = 50

/** A progress line at most this often. */
const PROGRESS_EVERY_MS = 100

/** Leaves out what comes too soon after what was said last. */
export function throttled<T>(report: (value: T) => void): (value: T) => void {
  let next = 0
  return (value) => {
    if (performance.now() < next) return
    next = performance.now() + PROGRESS_EVERY_MS
    report(value)
  }
}

export function describeProgress({ objects, ofObjects, bytes, findings }: VerifyProgress): string {
  return `${objects} of ${ofObjects} objects, ${megabytes(bytes)} read, ${findings} findings`
}

/** Everything a person should see of a result but its one line. */
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
 * The one line of a result.
 *
 * @param isOwnUnrelated the local archive could not be held against the audited host
 */
export function summarize(
  { ok, complete, publications, objects, bytes, gaps, head, findings }: VerifyReport,
  isOwnUnrelated: boolean,
): string {
  const read = `${counted(publications, 'publication')}, ${counted(objects, 'object')} with ${megabytes(bytes)} read, ${counted(gaps, 'gap')}, head ${head.seq} ${head.leaf.slice(0, 16)}`
  const alone = isOwnUnrelated ? ' (audited alone: the local archive is another one)' : ''
  if (ok) return `sound${alone}: ${read}`
  const damage = findings.filter(isDamage).length
  const verdict = damage > 0 ? `DAMAGED, ${counted(damage, 'finding')}` : 'NOT PROVED'
  return `${verdict}${complete ? '' : ', ended early'}: ${read}`
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}

/** The one line of a self-test. */
export function summarizeSelfTest({ mutations, detected }: { mutations: number; detected: number }): string {
  return `self-test: ${detected} of ${mutations} mutations detected`
}
