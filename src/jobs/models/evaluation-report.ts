import type { CatalogueModel } from '../../domain/models/catalogue.ts'
import type { AnswerClass, LiteEvaluation, RunOutcome } from '../../domain/models/evaluation.ts'
import type { LiteQuestion, LiteSuite, TaskResult } from '../../domain/models/lite/suite.ts'
import type { CallPlan } from '../../domain/models/quota.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import type { Clock, State, ModelRouter } from '../../domain/ports.ts'
import { formatInstant } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'

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

export interface AskPorts {
  router: ModelRouter
  evaluations: State['evaluations']
  clock: Clock
  /** Milliseconds of a clock that only goes forward. */
  monotonic: () => number
  /** Rejects with the signal's reason. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  onProgress: (message: string) => void
}

export interface AskOptions {
  run: number
  token: string
  day: Day
  plan: CallPlan
  suite: LiteSuite
  /** Of every model of the plan. */
  models: ReadonlyMap<string, CatalogueModel>
  /** What each was sent today, what it may still be sent, and what it answered already. */
  before: ReadonlyMap<
    string,
    { sentToday: number; left: number; answers: ReadonlyMap<LiteQuestion['kind'], readonly TaskResult[]> }
  >
  /** Requests of the day, the chat's too, that may have been written down before another one. */
  countedBeforeAtMost: number
  startsAMinute: number
  /** Ages in milliseconds of the evaluation's requests within the last {@link WINDOW_MS}. */
  recentAges: readonly number[]
  signal: AbortSignal
}

/** Why no more was asked, although more was planned. */
export type StopReason = AnswerClass | 'day_ended'

/** Of a run that asked no model. */
export const NOTHING_ASKED: Asked = {
  requests: 0,
  stop: null,
  learned: null,
  limits: { account: false, model: false, resetAt: null },
  unasked: new Set(),
  probed: new Set(),
  evaluated: new Set(),
  outcomes: new Map(),
}

export interface Asked {
  requests: number
  stop: { reason: StopReason; resetAt: Instant | null; preview: string } | null
  /** The account's minute limit, if it was met: what the rate was lowered to. */
  learned: number | null
  /** Whose limits were met. */
  limits: { account: boolean; model: boolean; resetAt: Instant | null }
  /** Models with a planned question that was not asked, or that the account's limits kept from them. */
  unasked: ReadonlySet<string>
  /** Models that answered, or failed to by themselves, in this run. */
  probed: ReadonlySet<string>
  /** Models whose evaluation is complete since this run. */
  evaluated: ReadonlySet<string>
  /** What both questions of a model came to, by model; answers from before the run are part of it. */
  outcomes: ReadonlyMap<string, LiteEvaluation>
}
