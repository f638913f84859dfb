import type { RunOutcome } from '../domain/models/evaluation-ledger.ts'
import type { StoredRun } from '../domain/models/schema.ts'
import type { Instant } from '../domain/time.ts'
import { formatInstant } from '../domain/time.ts'
import type { Asked, StopReason } from './asking.ts'

/** What `evaluate-models` prints under `--json`. */
export interface EvaluationReport {
  job: 'evaluate-models'
  outcome: RunOutcome
  refreshMode: StoredRun['refreshMode']
  rankingVersion: string | null
  /** Id of the primary; null while there is none. */
  primary: string | null
  ranked: number
  /** Models whose health was measured in this run. */
  probed: number
  /** Models whose evaluation was completed in this run. */
  evaluated: number
  /** Chat requests sent; for a dry run those that would be, without retries. */
  requests: number
  rateLimit: { kind: 'account' | 'model'; resetAt: string | null } | null
  durationMs: number
  /** Why it failed or is partial. */
  reason: string | null
  dryRun: boolean
  rejected: { model: string; reason: string }[]
}

/** The report of a run that ended before it could make one. */
export function failedReport(
  { mode, dryRun }: { mode: StoredRun['refreshMode']; dryRun: boolean },
  durationMs: number,
  reason: string,
): EvaluationReport {
  return {
    job: 'evaluate-models',
    outcome: 'failed',
    refreshMode: mode,
    rankingVersion: null,
    primary: null,
    ranked: 0,
    probed: 0,
    evaluated: 0,
    requests: 0,
    rateLimit: null,
    durationMs,
    reason,
    dryRun,
    rejected: [],
  }
}

/** A stop of the account's own that a setting mends. */
export const SETTING_OF: Partial<Record<StopReason, string>> = {
  account_key: 'the service does not take the key: correct OPENROUTER_API_KEY',
  account_key_limit: "the key's own limit is spent: raise it where the key was created",
  account_balance:
    'the balance of the account is negative, which closes free models too: add credits to the account',
  account_policy:
    "the account's data policy allows no free models: allow them at https://openrouter.ai/settings/privacy",
}

/** One sentence on why no more was asked. */
export function stopSentence({ reason, preview }: NonNullable<Asked['stop']>): string {
  const setting = SETTING_OF[reason]
  if (setting !== undefined) return setting
  if (reason === 'account_daily') return "the account's requests of the day are spent"
  if (reason === 'account_minute' || reason === 'account_busy') {
    return "the account's limit of requests a minute did not end while the run waited for it"
  }
  if (reason === 'day_ended') return 'the UTC day ended, and with it the suite of the day'
  return `the service cannot be asked: ${preview}`
}

/** Whose limit was met, the account's before a model's. */
export function rateLimitOf(limits: Asked['limits']): EvaluationReport['rateLimit'] {
  if (limits.account) return { kind: 'account', resetAt: formatOrNull(limits.resetAt) }
  return limits.model ? { kind: 'model', resetAt: null } : null
}

function formatOrNull(at: Instant | null): string | null {
  return at === null ? null : formatInstant(at)
}
