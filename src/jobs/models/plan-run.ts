import { filterCatalogue } from '../../domain/models/catalogue.ts'
import { RESPONSE_CLASSES } from '../../domain/models/evaluation.ts'
import { FAILURES_MS, historyOf } from '../../domain/models/history.ts'
import type { EvaluationRows, ModelHistory } from '../../domain/models/history.ts'
import { KEY_STALE_MS, planCalls, requestsLeft } from '../../domain/models/quota.ts'
import { claimsOf } from '../../domain/models/ranking.ts'
import type { Candidate } from '../../domain/models/ranking.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import { Refusal } from '../../domain/refusal.ts'
import { addDays, dayOf, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { newRun } from './evaluation-run.ts'
import type { EarlyEnd, EvaluateOptions, EvaluatePorts, EvaluationRun, RunHistory } from './evaluation-run.ts'

/**
 * Reads the catalogue and the previous recommendation.
 *
 * @throws Refusal `source_unavailable` when there is no catalogue; those of the object store
 */
export async function readRun(
  { router, clock, onNote, recommendations, monotonic }: EvaluatePorts,
  { mode: requested, dryRun, signal }: EvaluateOptions,
): Promise<EvaluationRun> {
  const mode = router.hasKey ? requested : 'metadataOnly'
  const run = newRun({ mode, dryRun }, monotonic(), clock())
  const notes: string[] = []
  if (mode !== requested) {
    onNote('OPENROUTER_API_KEY is not set; only metadata is refreshed')
    notes.push('No key of the routing service is configured, so only metadata was refreshed.')
  }
  const { models, badRows } = await router.catalogue(signal)
  if (badRows > 0) notes.push(`${badRows} rows of the catalogue could not be read.`)
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
    if (!(error instanceof Refusal) || error.code !== 'storage_damaged') throw error
    notes.push('The previous recommendation was damaged and was replaced.')
    return null
  }
}

/** Reads what is known of every candidate at a time. */
export async function readHistory(
  { evaluations }: EvaluatePorts,
  eligible: EvaluationRun['eligible'],
  now: Instant,
): Promise<RunHistory> {
  const rows: EvaluationRows = {
    attempts: await evaluations.attemptsSince(now - FAILURES_MS),
    scores: await evaluations.scoresSince(addDays(dayOf(now), -3)),
    endpoints: await evaluations.endpointsSince(now - FAILURES_MS),
  }
  const models = new Map(eligible.map(({ id }) => [id, historyOf(id, rows, now)]))
  return { attempts: rows.attempts, models }
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
  const chatRequests = await ports.evaluations.chatRequestsSince(startOfDay(day))
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
  const ownAttempts = run.history.attempts.filter((attempt) => attempt.day === day)
  const today = [...ownAttempts.map(({ sentAt }) => sentAt), ...chatRequests]
  const recent = today.filter((sentAt) => startedAt - sentAt <= KEY_STALE_MS)
  // The service reported the limit, and no newer data contradicts it: it also counts requests from elsewhere.
  const spent = key === null && ownAttempts.some(({ end }) => end?.class === 'account_daily')
  const left = spent ? 0 : requestsLeft(key, today.length, recent.length)
  const plan = planCalls(claimsOf(candidatesOf(run), mode, startedAt), left)
  return { ...run, plan: { ...plan, maxCountedBefore: today.length + left - 1 } }
}

/** True for the modes that send prompts. */
export function sendsPrompts(mode: StoredRun['refreshMode']): boolean {
  return mode === 'fullEval' || mode === 'forceEval'
}

/** The eligible models with their histories. */
export function candidatesOf({ eligible, history }: EvaluationRun): (Candidate & ModelHistory)[] {
  return eligible.flatMap((model) => {
    const known = history.models.get(model.id)
    return known ? [{ model, ...known }] : []
  })
}
