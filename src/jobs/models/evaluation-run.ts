import { filterCatalogue } from '../../domain/models/catalogue.ts'
import type { Candidates } from '../../domain/models/catalogue.ts'
import type { ChangeDelivery } from '../../domain/models/changes.ts'
import { RESPONSE_CLASSES, isComplete } from '../../domain/models/evaluation.ts'
import type { ResponseClass, ModelAttempt, RunOutcome } from '../../domain/models/evaluation.ts'
import { EARLIER_DAYS, FAILURES_MS, historyOf } from '../../domain/models/history.ts'
import type { ModelHistory } from '../../domain/models/history.ts'
import type { LiteSuite } from '../../domain/models/lite/suite.ts'
import { KEY_STALE_MS, planCalls, requestsLeft } from '../../domain/models/quota.ts'
import type { CallPlan } from '../../domain/models/quota.ts'
import { claimsOf } from '../../domain/models/ranking.ts'
import type { Candidate } from '../../domain/models/ranking.ts'
import { joinNames } from '../../domain/models/recommend.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import type { ChangeReceiver, ModelRouter, State } from '../../domain/ports.ts'
import type { Objects } from '../../domain/year/ports.ts'
import { isDamaged } from '../../domain/refusal.ts'
import { dayOf, formatInstant, addDays, startOfDay } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import type { HolderPorts } from '../lease.ts'

export interface EvaluatePorts extends HolderPorts {
  router: ModelRouter
  evaluations: State['evaluations']
  recommendations: Objects['recommendations']
  changes: ChangeReceiver | null
  makeSuite: (day: Day) => LiteSuite
  /** Published API base of the routing service: clients send their keys there. */
  baseUrl: string
  /** Milliseconds of a monotonic clock. */
  monotonic: () => number
  /** Rejects with the signal's reason. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  onNote: (message: string) => void
}

export interface EvaluateOptions {
  mode: StoredRun['refreshMode']
  /** True to plan and rank with known data, without chat requests and writes. */
  dryRun: boolean
  signal: AbortSignal
}

/** The reason why a run stopped before its plan was done. */
export interface EarlyEnd {
  reason: ResponseClass | 'day_ended'
  resetAt: Instant | null
  preview: string
}

/** What a run knows, with a later value for each step: read, planned, measured. */
export interface EvaluationRun extends Candidates {
  /** The requested mode, or `metadataOnly` without a key. */
  mode: StoredRun['refreshMode']
  dryRun: boolean
  /** Start by the monotonic clock, in milliseconds. */
  beganMs: number
  startedAt: Instant
  day: Day
  previous: StoredRun | null
  notes: readonly string[]
  history: RunHistory
  plan: RunPlan
  measured: Measurements
}

export interface RunHistory {
  /** The history of every candidate, by its id. */
  models: ReadonlyMap<string, ModelHistory>
  /** Every attempt of the days whose evaluations may still count, ascending. */
  attempts: readonly ModelAttempt[]
}

interface RunPlan extends CallPlan {
  /** Most requests of the day, including the chat's, before another one. */
  maxCountedBefore: number
}

/** The results of a run's requests. */
export interface Measurements {
  requests: number
  /** Requests a minute after the account's limit was met in this run; null when it was not met. */
  learnedRate: number | null
  stop: EarlyEnd | null
  limits: { account: boolean; model: boolean; resetAt: Instant | null }
  /** Models with a planned prompt that was not sent, or that the account's limits blocked. */
  unfinished: ReadonlySet<string>
  /** Models that responded or failed on their own in this run. */
  probed: ReadonlySet<string>
}

/** The JSON result of `evaluate-models`. */
export interface EvaluationReport {
  job: 'evaluate-models'
  outcome: RunOutcome
  refreshMode: StoredRun['refreshMode']
  rankingVersion: string | null
  primary: string | null
  ranked: number
  /** Models whose health was measured in this run. */
  probed: number
  /** Models whose evaluation was completed in this run. */
  evaluated: number
  /** Number of chat requests; for a dry run the planned ones without retries. */
  requests: number
  rateLimit: { kind: 'account' | 'model'; resetAt: string | null } | null
  durationMs: number
  /** Reason of a failed or partial run. */
  reason: string | null
  dryRun: boolean
  rejected: { model: string; reason: string }[]
  /** Result of the webhook; null if none is configured or the run changed nothing. */
  webhook: ChangeDelivery | null
}

/** The mode of a run: without a key only metadata is read. */
function modeOf({ hasKey }: ModelRouter, requested: EvaluationRun['mode']): EvaluationRun['mode'] {
  return hasKey ? requested : 'metadataOnly'
}

function newRun(
  { mode, dryRun }: Pick<EvaluationRun, 'mode' | 'dryRun'>,
  beganMs: number,
  startedAt: Instant,
): EvaluationRun {
  return {
    mode,
    dryRun,
    beganMs,
    startedAt,
    day: dayOf(startedAt),
    eligible: [],
    rejections: [],
    previous: null,
    notes: [],
    history: { models: new Map(), attempts: [] },
    plan: { calls: [], postponed: [], spent: [], budget: 0, maxCountedBefore: -1 },
    measured: nothingMeasured(),
  }
}

export function nothingMeasured(): Measurements {
  return {
    requests: 0,
    learnedRate: null,
    stop: null,
    limits: { account: false, model: false, resetAt: null },
    unfinished: new Set(),
    probed: new Set(),
  }
}

export function failedReport(
  { router }: Pick<EvaluatePorts, 'router'>,
  { mode, dryRun }: Pick<EvaluateOptions, 'mode' | 'dryRun'>,
  durationMs: number,
  reason: string,
): EvaluationReport {
  const end = { outcome: 'failed' as const, rankingVersion: null, primary: null, ranked: 0, reason }
  return reportOf(newRun({ mode: modeOf(router, mode), dryRun }, 0, 0), end, [], durationMs)
}

/** How a run ended, in the members of its report. */
type RunEnd = Pick<EvaluationReport, 'outcome' | 'rankingVersion' | 'primary' | 'ranked' | 'reason'>

export function reportOf(
  run: EvaluationRun,
  end: RunEnd,
  rejections: StoredRun['rejections'],
  now: number,
): EvaluationReport {
  const { measured } = run
  return {
    job: 'evaluate-models',
    outcome: end.outcome,
    refreshMode: run.mode,
    rankingVersion: end.rankingVersion,
    primary: end.primary,
    ranked: end.ranked,
    probed: measured.probed.size,
    evaluated: sendsPrompts(run.mode) ? [...measured.probed].filter((id) => isEvaluated(run, id)).length : 0,
    requests: measured.requests,
    rateLimit: rateLimitOf(measured.limits),
    durationMs: Math.round(now - run.beganMs),
    reason: end.reason,
    dryRun: run.dryRun,
    rejected: rejections.map(({ id, reason }) => ({ model: id, reason })),
    webhook: null,
  }
}

function isEvaluated({ history, measured }: EvaluationRun, id: string): boolean {
  const { tool, text } = history.models.get(id)?.tasksToday ?? {}
  return (
    !measured.unfinished.has(id) &&
    tool !== undefined &&
    text !== undefined &&
    isComplete({ tasks: [...tool, ...text] })
  )
}

/** The limit that was met; the account's before a model's. */
function rateLimitOf({ account, model, resetAt }: Measurements['limits']): EvaluationReport['rateLimit'] {
  if (account) return { kind: 'account', resetAt: resetAt === null ? null : formatInstant(resetAt) }
  return model ? { kind: 'model', resetAt: null } : null
}

/** Explains an early end in one sentence. */
export function stopSentence({ reason, preview }: EarlyEnd): string {
  if (reason === 'day_ended') return 'the UTC day ended, and its test suite with it'
  const { setting, limit } = RESPONSE_CLASSES[reason]
  return setting ?? limit ?? `the service cannot be used: ${preview}`
}

/** The work of the mode that a run skipped, the most important cause first; any of it makes the run `partial`. */
export function skippedWork({ mode, plan, measured }: EvaluationRun): { reason: string; note: string }[] {
  const { stop, requests, unfinished } = measured
  const stopped = stop && stopSentence(stop)
  const sent = requests === 1 ? '1 request' : `${requests} requests`
  const when = requests === 0 ? 'Stopped' : `Stopped after ${sent}`
  const skipped = (models: readonly string[], reason: (count: string) => string, note: string) => {
    const count = models.length === 1 ? '1 model' : `${models.length} models`
    return models.length > 0 ? [{ reason: reason(count), note: `${note}: ${joinNames(models)}.` }] : []
  }
  return [
    ...(stopped
      ? [
          { reason: stopped, note: `${when}: ${stopped}.` },
          ...skipped([...unfinished], () => stopped, 'Not fully measured, because the run stopped'),
        ]
      : mode === 'healthOnly'
        ? skipped(
            [...unfinished],
            (models) => `the service returned no endpoint data for ${models}`,
            'The service returned no endpoint data for',
          )
        : skipped(
            [...unfinished],
            (models) => `${models} not fully evaluated: the account hit its rate limit`,
            'Not fully evaluated, because the account hit its rate limit',
          )),
    ...skipped(
      plan.postponed,
      () => 'the daily requests of the account do not suffice for every model',
      'Not evaluated, because the account has no requests left for them today',
    ),
    ...skipped(
      plan.spent,
      (models) => `${models} not fully evaluated: too few of their daily requests are left`,
      'Not fully evaluated, because their requests of today are used up',
    ),
  ]
}

/**
 * Reads the catalogue and the previous recommendation.
 *
 * @throws Refusal `source_unavailable` when there is no catalogue; those of the object store
 */
export async function readRun(
  { router, clock, onNote, recommendations, monotonic }: EvaluatePorts,
  { mode: requested, dryRun, signal }: EvaluateOptions,
): Promise<EvaluationRun> {
  const mode = modeOf(router, requested)
  const run = newRun({ mode, dryRun }, monotonic(), clock())
  const notes: string[] = []
  if (mode !== requested) {
    onNote('OPENROUTER_API_KEY is not set; only metadata is refreshed')
    notes.push('No key of the routing service is configured, so only metadata was refreshed.')
  }
  const { models, badRows } = await router.catalogue(signal)
  const unread = badRows === 1 ? '1 row' : `${badRows} rows`
  if (badRows > 0) notes.push(`${unread} of the catalogue could not be read.`)
  const previous = await previousRun(recommendations, notes)
  return { ...run, ...filterCatalogue(models, run.startedAt), notes, previous }
}

/** The previous recommendation; a damaged one is replaced and reported in the notes. */
async function previousRun(
  store: EvaluatePorts['recommendations'],
  notes: string[],
): Promise<StoredRun | null> {
  const bytes = await store.current()
  try {
    return bytes && proveRun(bytes)
  } catch (error) {
    if (!isDamaged(error)) throw error
    notes.push('The previous recommendation was damaged and was replaced.')
    return null
  }
}

/** Reads what is known of every candidate at a time. */
async function readHistory(
  { evaluations }: EvaluatePorts,
  eligible: EvaluationRun['eligible'],
  now: Instant,
): Promise<RunHistory> {
  const attempts = await evaluations.attemptsSince(startOfDay(addDays(dayOf(now), -EARLIER_DAYS)))
  const endpoints = await evaluations.endpointsSince(now - FAILURES_MS)
  const models = new Map(eligible.map(({ id }) => [id, historyOf(id, { attempts, endpoints }, now)]))
  return { attempts, models }
}

/** Reads the history after the requests of a run. In a forced one they alone count for the models that it evaluated. */
export async function readResults(
  ports: EvaluatePorts,
  { eligible, mode, plan, measured, history: before }: EvaluationRun,
  now: Instant,
): Promise<RunHistory> {
  const history = await readHistory(ports, eligible, now)
  if (mode !== 'forceEval') return history
  const reused = new Set([...measured.unfinished, ...plan.postponed])
  const lastBefore = before.attempts.at(-1)?.id ?? 0
  const own = history.attempts.filter(({ id }) => id > lastBefore)
  const models = [...history.models].map(([id, known]): [string, ModelHistory] => {
    if (reused.has(id)) return [id, known]
    const { evaluation, toolUse, tasksToday } = historyOf(id, { attempts: own, endpoints: [] }, now)
    return [id, { ...known, evaluation, toolUse, tasksToday }]
  })
  return { ...history, models: new Map(models) }
}

/** Plans the prompts and their order: none in the modes without prompts, nor with a rejected key, which stops the run. */
export async function planPrompts(
  ports: EvaluatePorts,
  read: EvaluationRun,
  signal: AbortSignal,
): Promise<EvaluationRun> {
  const { mode, startedAt, day } = read
  const run = { ...read, history: await readHistory(ports, read.eligible, startedAt) }
  if (!sendsPrompts(mode)) return run
  const requests = await ports.evaluations.requestsSince(startOfDay(day))
  const response = await ports.router.key(signal)
  if ('failed' in response && RESPONSE_CLASSES[response.failed.class].setting !== undefined) {
    const stop: EarlyEnd = {
      reason: response.failed.class,
      resetAt: null,
      preview: response.failed.preview,
    }
    return { ...run, measured: { ...run.measured, stop } }
  }
  const key = 'facts' in response ? response.facts : null
  // A clock that was ahead recorded requests of later days, and later ones of this day.
  const today = requests.filter((sentAt) => dayOf(sentAt) === day)
  const recent = today.filter((sentAt) => Math.abs(startedAt - sentAt) <= KEY_STALE_MS)
  // The service reported the limit, and no newer data contradicts it: it also counts requests from elsewhere.
  const spent =
    key === null &&
    run.history.attempts.some((attempt) => attempt.day === day && attempt.end?.class === 'account_daily')
  const left = spent ? 0 : requestsLeft(key, today.length, recent.length)
  const plan = planCalls(claimsOf(candidatesOf(run), mode, startedAt), left)
  return { ...run, plan: { ...plan, maxCountedBefore: today.length + left - 1 } }
}

export function sendsPrompts(mode: StoredRun['refreshMode']): boolean {
  return mode === 'fullEval' || mode === 'forceEval'
}

export function candidatesOf({ eligible, history }: EvaluationRun): (Candidate & ModelHistory)[] {
  return eligible.flatMap((model) => {
    const known = history.models.get(model.id)
    return known ? [{ model, ...known }] : []
  })
}
