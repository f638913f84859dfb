import { EXIT } from '../../exit-codes.ts'

/**
 * How a check came out.
 *
 * - `ok`: as it should be
 * - `note`: nothing is wrong, but something is off, not there yet, or could not be looked at
 * - `warning`: works now, and will not do for long
 * - `problem`: does not work
 */
export type Verdict = 'ok' | 'note' | 'warning' | 'problem'

export interface Finding {
  /** What was looked at, as `ledger.migrations`. */
  check: string
  verdict: Verdict
  /** One line. */
  detail: string
  /** What to do; null when there is nothing to do. */
  mend: string | null
  /** The exit code a problem ends the command with; null for everything else. */
  exitCode: number | null
}

export const ok = (check: string, detail: string): Finding => finding(check, 'ok', detail, null)

export const note = (check: string, detail: string, mend: string | null = null): Finding =>
  finding(check, 'note', detail, mend)

export const warning = (check: string, detail: string, mend: string): Finding =>
  finding(check, 'warning', detail, mend)

export const problem = (check: string, detail: string, mend: string, exitCode: number): Finding => ({
  ...finding(check, 'problem', detail, mend),
  exitCode,
})

function finding(check: string, verdict: Verdict, detail: string, mend: string | null): Finding {
  return { check, verdict, detail, mend, exitCode: null }
}

/** What is to be mended first is what the command ends with. */
const WORST_FIRST = [EXIT.configuration, EXIT.storage, EXIT.damaged, EXIT.unavailable]

/** 0 without a problem. */
export function exitCodeOfFindings(findings: readonly Finding[]): number {
  const codes = findings.flatMap(({ exitCode }) => exitCode ?? [])
  if (codes.length === 0) return EXIT.done
  return WORST_FIRST.find((code) => codes.includes(code)) ?? EXIT.failed
}
