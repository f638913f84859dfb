import { isDamaged } from '../../../domain/refusal.ts'
import type { Instant } from '../../../domain/time.ts'
import { EXIT, describeError, exitCodeOf } from '../../exit-codes.ts'

/**
 * Result of a check.
 *
 * - `ok`: correct
 * - `note`: not wrong, but switched off, missing so far, or not readable
 * - `warning`: works now, but not for long
 * - `problem`: does not work
 */
export type Verdict = 'ok' | 'note' | 'warning' | 'problem'

export interface Judgement {
  verdict: Verdict
  /** One line. */
  detail: string
  /** Remedy; null if there is nothing to do. */
  mend: string | null
  /** Exit code of a problem; null for other verdicts. */
  exitCode: number | null
}

/** Outcome of a named check, such as `ledger.migrations`. */
export interface Check extends Judgement {
  check: string
}

export const ok = (detail: string): Judgement => judgement('ok', detail, null)

export const note = (detail: string, mend: string | null = null): Judgement => judgement('note', detail, mend)

export const warning = (detail: string, mend: string): Judgement => judgement('warning', detail, mend)

export const problem = (detail: string, mend: string, exitCode: number): Judgement =>
  judgement('problem', detail, mend, exitCode)

function judgement(
  verdict: Verdict,
  detail: string,
  mend: string | null,
  exitCode: number | null = null,
): Judgement {
  return { verdict, detail, mend, exitCode }
}

/** Checks of the same facts by name, in report order. A check may have any number of outcomes. */
export type Checks<Facts> = Readonly<
  Record<string, (facts: Facts, now: Instant) => Judgement | readonly Judgement[]>
>

export function findingsOf<Facts>(checks: Checks<Facts>, facts: Facts, now: Instant): Check[] {
  return Object.entries(checks).flatMap(([check, judge]) => found(check, judge(facts, now)))
}

export function found(check: string, judgements: Judgement | readonly Judgement[]): Check[] {
  return [judgements].flat().map((each) => ({ check, ...each }))
}

const RESTORE = 'restore it from a backup (docs/backup.md)'

/** Remedies of what is damaged, by check, where no backup of it alone helps. */
const REMEDIES_OF_DAMAGE: Readonly<Record<string, string>> = {
  archive: 'dash verify-archive lists the damage; restore what is missing (docs/backup.md#problems)',
  state: 'stop the server and move it away; it needs no backup (docs/operations.md#the-state-database)',
  recommendation: 'run dash evaluate-models',
}

/**
 * Runs the checks of a store; an unreadable store becomes a problem.
 *
 * @param remedy replaces the general remedy of damaged and unreadable stores
 */
export async function orProblem(
  check: string,
  inspect: () => Promise<Check[]>,
  remedy: string | null = null,
): Promise<Check[]> {
  try {
    return await inspect()
  } catch (error) {
    const exitCode = exitCodeOf(error)
    if (exitCode === EXIT.internal) throw error
    const mend = isDamaged(error) ? (REMEDIES_OF_DAMAGE[check] ?? RESTORE) : 'make it accessible to this user'
    return found(check, problem(describeError(error), remedy ?? mend, exitCode))
  }
}

/** Exit codes of problems, in the order in which they should be repaired. */
const WORST_FIRST = [EXIT.configuration, EXIT.storage, EXIT.damaged, EXIT.unavailable]

/** Returns the exit code of the problem to repair first; 0 without a problem. */
export function exitCodeOfFindings(findings: readonly Judgement[]): number {
  const codes = findings.flatMap(({ exitCode }) => exitCode ?? [])
  if (codes.length === 0) return EXIT.done
  return WORST_FIRST.find((code) => codes.includes(code)) ?? EXIT.failed
}
