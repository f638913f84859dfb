import { accessSync, constants, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { EXIT } from '../../exit-codes.ts'
import { currentUser, ownerWord } from '../../settings/environment.ts'

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

/** What is at a path, as far as this user may see; both null: nothing is there. */
type Sight = { stat: Stats | null; fault: null } | { stat: null; fault: string }

export function sightOf(path: string): Sight {
  try {
    return { stat: statSync(path, { throwIfNoEntry: false }) ?? null, fault: null }
  } catch (error) {
    return { stat: null, fault: error instanceof Error ? error.message : String(error) }
  }
}

/** True when this user may read and write a file, or read, enter and write a folder; nothing is written to try it. */
export function isWritable(path: string, stat: Stats): boolean {
  const { R_OK, W_OK, X_OK } = constants
  try {
    accessSync(path, stat.isDirectory() ? R_OK | W_OK | X_OK : R_OK | W_OK)
    return true
  } catch {
    return false
  }
}

/** What is told of a path that this user cannot write, and what mends it. */
export function notWritable(path: string, stat: Stats): { detail: string; mend: string } {
  const { uid, name } = currentUser()
  const detail = `${path} belongs to user ${stat.uid} and cannot be written by ${name}`
  const rights = stat.isDirectory() ? 'u+rwx' : 'u+rw'
  if (stat.uid === uid)
    return { detail, mend: `chmod ${rights} ${path}, and see that its disk is not mounted read-only` }
  return { detail, mend: `run as its owner, or chown -R ${ownerWord(name)} ${path}` }
}
