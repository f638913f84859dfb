import type { Candidates } from '../../domain/models/catalogue.ts'
import { RESPONSE_CLASSES } from '../../domain/models/evaluation.ts'
import type {
  ResponseClass,
  LiteEvaluation,
  ModelAttempt,
  RunOutcome,
} from '../../domain/models/evaluation.ts'
import type { ModelHistory } from '../../domain/models/history.ts'
import type { LiteSuite } from '../../domain/models/lite/suite.ts'
import type { CallPlan } from '../../domain/models/quota.ts'
import { listed } from '../../domain/models/recommend.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import type { ModelRouter, Objects, State } from '../../domain/ports.ts'
import { dayOf, formatInstant } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import type { HolderPorts } from '../lease.ts'

export interface EvaluatePorts extends HolderPorts {
  router: ModelRouter
  evaluations: State['evaluations']
  recommendations: Objects['recommendations']
  /** Makes the suite of a UTC day. @throws Refusal `lite_suite_refused` */
  makeSuite: (day: Day) => Promise<LiteSuite>
  /** API base of the routing service as it is published: readers send their keys there. */
  baseUrl: string
  /** Milliseconds of a clock that only goes forward. */
  monotonic: () => number
  /** Rejects with the signal's reason. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** A message for operators. */
  onNote: (message: string) => void
}

export interface EvaluateOptions {
  mode: StoredRun['refreshMode']
  /** True to plan and rank with what is known, send no chat request and write nothing. */
  dryRun: boolean
  signal: AbortSignal
}

/** Why no more models were asked, although more were planned. */
export interface EarlyEnd {
  reason: ResponseClass | 'day_ended'
  resetAt: Instant | null
  preview: string
}

/** All that a run of `evaluate-models` has learned so far. */
export interface EvaluationRun extends Candidates {
  /** The requested mode, or `metadataOnly` without a key. */
  mode: StoredRun['refreshMode']
  dryRun: boolean
  /** By the clock that only goes forward. */
  began: number
  startedAt: Instant
  day: Day
  /** The recommendation before this one. */
  previous: StoredRun | null
  /** For readers of the recommendation. */
  notes: string[]

  /** The history of every candidate, by its id. */
  models: ReadonlyMap<string, ModelHistory>
  /** Every attempt of the last three days. */
  attempts: readonly ModelAttempt[]

  plan: CallPlan
  /** Requests of the day, the chat's too, that may be recorded before another one. */
  countedBeforeAtMost: number

  /** Chat requests sent. */
  requests: number
  stop: EarlyEnd | null
  /** The rate a minute that was learned by meeting the account's limit. */
  learned: number | null
  /** Whose limits were met. */
  limits: { account: boolean; model: boolean; resetAt: Instant | null }
  /** Models with a planned question that was not asked, or that the account's limits kept from them. */
  unasked: ReadonlySet<string>
  /** Models that answered, or failed to by themselves, in this run. */
  probed: Set<string>
  /** Models whose evaluation is complete since this run. */
  evaluated: Set<string>
  /** The evaluations of this run by model, with the answers from before it. */
  evaluations: Map<string, LiteEvaluation>
}

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

/** A run that has learned nothing yet. */
export function newRun(
  { mode, dryRun }: Pick<EvaluationRun, 'mode' | 'dryRun'>,
  began: number,
  startedAt: Instant,
): EvaluationRun {
  return {
    mode,
    dryRun,
    began,
    startedAt,
    day: dayOf(startedAt),
    eligible: [],
    rejections: [],
    previous: null,
    notes: [],
    models: new Map(),
    attempts: [],
    plan: { calls: [], postponed: [], spent: [], budget: 0 },
    countedBeforeAtMost: -1,
    requests: 0,
    stop: null,
    learned: null,
    limits: { account: false, model: false, resetAt: null },
    unasked: new Set(),
    probed: new Set(),
    evaluated: new Set(),
    evaluations: new Map(),
  }
}

/** The report of a run that ended before it could make one. */
export function failedReport(
  flags: Pick<EvaluateOptions, 'mode' | 'dryRun'>,
  durationMs: number,
  reason: string,
): EvaluationReport {
  const end = { outcome: 'failed' as const, rankingVersion: null, primary: null, ranked: 0, reason }
  return reportOf(newRun(flags, 0, 0), end, [], durationMs)
}

/** The report of a run, by its end. */
export function reportOf(
  run: EvaluationRun,
  end: Pick<EvaluationReport, 'outcome' | 'rankingVersion' | 'primary' | 'ranked' | 'reason'>,
  rejections: StoredRun['rejections'],
  now: number,
): EvaluationReport {
  return {
    job: 'evaluate-models',
    outcome: end.outcome,
    refreshMode: run.mode,
    rankingVersion: end.rankingVersion,
    primary: end.primary,
    ranked: end.ranked,
    probed: run.probed.size,
    evaluated: run.evaluated.size,
    requests: run.requests,
    rateLimit: rateLimitOf(run.limits),
    durationMs: Math.round(now - run.began),
    reason: end.reason,
    dryRun: run.dryRun,
    rejected: rejections.map(({ id, reason }) => ({ model: id, reason })),
  }
}

/** Whose limit was met, the account's before a model's. */
function rateLimitOf({ account, model, resetAt }: EvaluationRun['limits']): EvaluationReport['rateLimit'] {
  if (account) return { kind: 'account', resetAt: resetAt === null ? null : formatInstant(resetAt) }
  return model ? { kind: 'model', resetAt: null } : null
}

/** One sentence on why no more models were asked. */
export function stopSentence({ reason, preview }: EarlyEnd): string {
  if (reason === 'day_ended') return 'the UTC day ended, and with it the suite of the day'
  const { setting, limit } = RESPONSE_CLASSES[reason]
  return setting ?? limit ?? `the service cannot be asked: ${preview}`
}

/** What a run left out although its mode asks for it, the weightiest cause first; any of it makes the run `partial`. */
export function skippedWork({
  mode,
  stop,
  requests,
  unasked,
  plan,
}: EvaluationRun): { reason: string; note: string }[] {
  const stopped = stop && stopSentence(stop)
  const skipped = (models: readonly string[], reason: (count: string) => string, note: string) => {
    const count = models.length === 1 ? '1 model' : `${models.length} models`
    return models.length > 0 ? [{ reason: reason(count), note: `${note}: ${listed(models)}.` }] : []
  }
  return [
    ...(stopped ? [{ reason: stopped, note: `Stopped after ${requests} requests: ${stopped}.` }] : []),
    ...(mode === 'healthOnly'
      ? skipped(
          [...unasked],
          (models) => `the service told nothing of the endpoints of ${models}`,
          'The service told nothing of the endpoints of',
        )
      : skipped(
          [...unasked],
          (models) => `the account's limits kept questions from ${models}`,
          "Not asked everything, for the account's limits",
        )),
    ...skipped(
      plan.postponed,
      () => "the account's requests of the day do not reach every model",
      'Not asked, since the account has no requests left for them today',
    ),
    ...skipped(
      plan.spent,
      (models) => `${models} had too few requests left this UTC day to be asked what is open`,
      'Not asked everything, having had their requests of the day',
    ),
  ]
}
