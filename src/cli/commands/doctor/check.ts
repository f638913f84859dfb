import { Refusal } from '../../../domain/refusal.ts'
import type { Instant } from '../../../domain/time.ts'
import { EXIT, describeError, exitCodeOf } from '../../exit-codes.ts'

/**
 * How a check came out.
 *
 * - `ok`: as it should be
 * - `note`: nothing is wrong, but something is off, not there yet, or could not be looked at
 * - `warning`: works now, and will not do for long
 * - `problem`: does not work
 */
export type Verdict = 'ok' | 'note' | 'warning' | 'problem'

/** What a check decides. */
export interface Judgement {
  verdict: Verdict
  /** One line. */
  detail: string
  /** What to do; null when there is nothing to do. */
  mend: string | null
  /** The exit code a problem ends the command with; null for everything else. */
  exitCode: number | null
}

/** The judgement of a check, as `ledger.migrations`. */
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

/** Checks of the same facts, by name, in the order in which they are reported; a check may find any number of things. */
export type Checks<Facts> = Readonly<
  Record<string, (facts: Facts, now: Instant) => Judgement | readonly Judgement[]>
>

export function findingsOf<Facts>(checks: Checks<Facts>, facts: Facts, now: Instant): Check[] {
  return Object.entries(checks).flatMap(([check, judge]) => found(check, judge(facts, now)))
}

export function found(check: string, judgements: Judgement | readonly Judgement[]): Check[] {
  return [judgements].flat().map((each) => ({ check, ...each }))
}

/** The findings of a store; a store that cannot be read is one finding more. */
export async function orProblem(check: string, look: () => Promise<Check[]>): Promise<Check[]> {
  try {
    return await look()
  } catch (error) {
    const exitCode = exitCodeOf(error)
    if (exitCode === EXIT.internal) throw error
    const isDamaged = error instanceof Refusal && error.code === 'storage_damaged'
    const mend = isDamaged ? 'restore it from a backup (docs/backup.md)' : 'make it reachable for this user'
    return found(check, problem(describeError(error), mend, exitCode))
  }
}

/** The command ends with the exit code of what is to be mended first. */
const WORST_FIRST = [EXIT.configuration, EXIT.storage, EXIT.damaged, EXIT.unavailable]

/** 0 without a problem. */
export function exitCodeOfFindings(findings: readonly Judgement[]): number {
  const codes = findings.flatMap(({ exitCode }) => exitCode ?? [])
  if (codes.length === 0) return EXIT.done
  return WORST_FIRST.find((code) => codes.includes(code)) ?? EXIT.failed
}
