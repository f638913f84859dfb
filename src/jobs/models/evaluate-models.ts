import { filterCatalogue } from '../../domain/models/catalogue.ts'
import { RESPONSE_CLASSES, hasAnswer, toolUseOf } from '../../domain/models/evaluation.ts'
import type { EndpointRecord, RunOutcome } from '../../domain/models/evaluation.ts'
import { FAILURES_MS, historyOf } from '../../domain/models/history.ts'
import type { EvaluationRows, ModelHistory } from '../../domain/models/history.ts'
import { KEY_STALE_MS, planCalls, requestsLeft } from '../../domain/models/quota.ts'
import { claimsOf, goneLeaders } from '../../domain/models/ranking.ts'
import type { Candidate } from '../../domain/models/ranking.ts'
import { nextRankingVersion, recommend, saysTheSame } from '../../domain/models/recommend.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import { proveRun, sealRun } from '../../domain/models/stored-run.ts'
import type { State } from '../../domain/ports.ts'
import { Refusal, messageOf } from '../../domain/refusal.ts'
import { addDays, dayOf, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { withLease } from '../lease.ts'
import { askModels } from './ask-models.ts'
import type { RecordedRun } from './ask-models.ts'
import { newRun, reportOf, skippedWork, stopSentence } from './evaluation-run.ts'
import type {
  EvaluateOptions,
  EvaluatePorts,
  EvaluationReport,
  EvaluationRun,
  EarlyEnd,
} from './evaluation-run.ts'

export interface EvaluateResult {
  report: EvaluationReport
  /** True when a setting of the account or of this program mends the failure. */
  misconfigured: boolean
  /** True when the service is to blame for a failure. */
  unavailable: boolean
}

/**
 * Finds out which free model to recommend, within the quota of a free account, and stores the recommendation
 * (docs/free-models.md). Every request is recorded, however the run ends.
 *
 * @throws Refusal `source_unavailable` when there is no catalogue, `lease_held`, `lease_lost`, those of the stores
 */
export async function evaluateModels(
  ports: EvaluatePorts,
  options: EvaluateOptions,
): Promise<EvaluateResult> {
  if (options.dryRun) return rehearse(ports, options)
  const { evaluations, recommendations, clock, onNote } = ports
  // A crash from here on: the lease expires, or the next run takes it over once this process is known to be dead.
  return withLease(evaluations, 'evaluating models', ports, async (token) => {
    // Runs that were killed end here. A crash: the next run does the same.
    const killed = await evaluations.sweep(clock())
    if (killed > 0) onNote('the last evaluation was cut short; what it sent is counted')
    // Only reads: a crash leaves nothing.
    const run = await readRun(ports, options)

    // A crash from here on: a run without an end, which the next one ends as killed, with its open attempts.
    const number = await evaluations.beginRun({
      day: run.day,
      refreshMode: run.mode,
      startedAt: run.startedAt,
    })
    const result = await orAbandon(ports, number, options.signal, async (): Promise<EvaluateResult> => {
      if (run.eligible.length === 0) return failure(ports, run, NO_CANDIDATE)
      await planQuestions(ports, run, options.signal)

      // Requests are recorded before they are sent. A crash: all of them count, and the next run of the day asks only what
      // has no answer.
      if (!run.stop) await measure(ports, run, { number, token, signal: options.signal })
      if (run.stop && run.probed.size === 0 && !isPassing(run.stop)) return stoppedBy(ports, run, run.stop)

      const now = Math.min(clock(), startOfDay(addDays(run.day, 1)) - 1)
      if (run.requests + run.probed.size > 0) await readHistory(ports, run, now)
      const ranked = rankRun(run, now, await nextVersion(ports, run), ports.baseUrl)
      if (ranked === null) return failure(ports, run, UNSERVED, 'service')
      const skipped = skippedWork(run).length > 0
      if (run.requests === 0 && !skipped && run.previous && saysTheSame(run.previous, ranked))
        return success(ports, run, 'unchanged', ranked)

      // The commit point, one atomic step. A crash before: the stored recommendation stays. A crash after: the new one is
      // served, although its run counts as killed, and its version is never given again.
      await recommendations.put(ranked.rankingVersion, sealRun(ranked))
      return success(ports, run, skipped ? 'partial' : 'complete', ranked)
    })

    // A crash before: the recommendation stands, and the next run ends this one as killed.
    const { outcome, rankingVersion, reason, rejected } = result.report
    const end = { endedAt: clock(), outcome, rankingVersion, startsAMinute: run.learned, reason }
    const rejections = rejected.map((each) => ({ id: each.model, reason: each.reason }))
    await evaluations.endRun(number, end, rejections)
    return result
  })
}

/** The same steps without asking a model and without writing. */
async function rehearse(ports: EvaluatePorts, options: EvaluateOptions): Promise<EvaluateResult> {
  const run = await readRun(ports, options)
  if (run.eligible.length === 0) return failure(ports, run, NO_CANDIDATE)
  await planQuestions(ports, run, options.signal)
  if (run.stop) return stoppedBy(ports, run, run.stop)
  const planned = new Set(run.plan.calls.map(({ model }) => model))
  const version = nextRankingVersion(run.day, [])
  const ranked = rankRun({ ...run, unasked: planned }, run.startedAt, version, ports.baseUrl)
  if (ranked === null) return failure(ports, run, UNSERVED, 'service')
  run.requests = run.plan.calls.length
  return success(ports, { ...run, previous: null }, 'unchanged', ranked)
}

/** A run that cannot go on ends at once, so that its open attempts are not taken for those of one that goes on. */
async function orAbandon<T>(
  { evaluations, clock }: EvaluatePorts,
  run: number,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const reason = signal.aborted ? 'interrupted' : messageOf(error)
    // Where the ledger itself fails, the next run ends this one.
    await evaluations.abandonRun(run, clock(), reason).catch(() => undefined)
    throw error
  }
}

/** @throws Refusal `source_unavailable` when there is no catalogue; those of the object store */
async function readRun(
  { router, clock, onNote, recommendations, monotonic }: EvaluatePorts,
  { mode: requested, dryRun, signal }: EvaluateOptions,
): Promise<EvaluationRun> {
  const mode = router.hasKey ? requested : 'metadataOnly'
  const run = newRun({ mode, dryRun }, monotonic(), clock())
  if (mode !== requested) {
    onNote('there is no OPENROUTER_API_KEY: only metadata is refreshed')
    run.notes.push('No key of the routing service is configured, so only metadata was refreshed.')
  }
  const { models, badRows } = await router.catalogue(signal)
  if (badRows > 0) run.notes.push(`${badRows} rows of the catalogue could not be read.`)
  const previous = await previousRun(recommendations, run.notes)
  return { ...run, ...filterCatalogue(models, run.startedAt), previous }
}

/** The recommendation before this one; one that is damaged is replaced, and said to be. */
async function previousRun(
  store: EvaluatePorts['recommendations'],
  notes: string[],
): Promise<StoredRun | null> {
  const bytes = await store.current()
  try {
    return bytes && proveRun(bytes)
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'storage_damaged') throw error
    notes.push('The recommendation before this one was damaged and is replaced.')
    return null
  }
}

/** Everything {@link historyOf} goes by. */
export async function readRows(
  evaluations: Pick<State['evaluations'], 'attemptsSince' | 'scoresSince' | 'endpointsSince'>,
  now: Instant,
): Promise<EvaluationRows> {
  return {
    attempts: await evaluations.attemptsSince(now - FAILURES_MS),
    scores: await evaluations.scoresSince(addDays(dayOf(now), -3)),
    endpoints: await evaluations.endpointsSince(now - FAILURES_MS),
  }
}

async function readHistory({ evaluations }: EvaluatePorts, run: EvaluationRun, now: Instant): Promise<void> {
  const rows = await readRows(evaluations, now)
  run.attempts = rows.attempts
  run.models = new Map(run.eligible.map(({ id }) => [id, historyOf(id, rows, now)]))
}

/** Plans the questions and their order: none in the modes that ask no model, nor with a key that is refused. */
async function planQuestions(ports: EvaluatePorts, run: EvaluationRun, signal: AbortSignal): Promise<void> {
  const { mode, startedAt, day } = run
  await readHistory(ports, run, startedAt)
  if (!asksModels(mode)) return
  const chatRequests = await ports.evaluations.chatRequestsSince(startOfDay(day))
  const answer = await ports.router.key(signal)
  if ('failed' in answer && RESPONSE_CLASSES[answer.failed.class].setting !== undefined) {
    run.stop = { reason: answer.failed.class, resetAt: null, preview: answer.failed.preview }
    return
  }
  const key = 'facts' in answer ? answer.facts : null
  const ours = run.attempts.filter((attempt) => attempt.day === day)
  const today = [...ours.map(({ sentAt }) => sentAt), ...chatRequests]
  const lately = today.filter((sentAt) => startedAt - sentAt <= KEY_STALE_MS)
  // The service said so itself, and nothing newer says otherwise: it counts what was sent from elsewhere too.
  const spent = key === null && ours.some(({ end }) => end?.class === 'account_daily')
  const left = spent ? 0 : requestsLeft(key, today.length, lately.length)
  run.plan = planCalls(claimsOf(candidatesOf(run), mode, startedAt), left)
  run.countedBeforeAtMost = today.length + left - 1
}

function asksModels(mode: StoredRun['refreshMode']): boolean {
  return mode === 'fullEval' || mode === 'forceEval'
}

function candidatesOf({ eligible, models }: EvaluationRun): (Candidate & ModelHistory)[] {
  return eligible.flatMap((model) => {
    const history = models.get(model.id)
    return history ? [{ model, ...history }] : []
  })
}

/** Asks models, or for their endpoints, as the mode says; all of it is in the ledger on return. */
async function measure(ports: EvaluatePorts, run: EvaluationRun, recorded: RecordedRun): Promise<void> {
  if (run.mode === 'healthOnly') await probeEndpoints(ports, run, recorded.signal)
  else if (run.plan.calls.length > 0) await askModels(ports, run, recorded)
}

/** Requests for endpoints at the same time; no model is asked. */
const PROBES_AT_ONCE = 4

async function probeEndpoints(
  { router, evaluations }: EvaluatePorts,
  run: EvaluationRun,
  signal: AbortSignal,
): Promise<void> {
  const records: EndpointRecord[] = []
  const waiting = run.eligible.map(({ id }) => id)
  const probe = async (): Promise<void> => {
    for (let model = waiting.shift(); model !== undefined && !run.stop; model = waiting.shift()) {
      const answer = await router.endpoints(model, signal)
      if ('failed' in answer)
        run.stop = { reason: 'account_key', resetAt: null, preview: answer.failed.preview }
      else if (answer.facts) records.push(answer.facts)
    }
  }
  await Promise.all(Array.from({ length: PROBES_AT_ONCE }, probe))
  await evaluations.saveEndpoints(records)
  run.probed = new Set(records.map(({ model }) => model))
  run.unasked = new Set(run.eligible.map(({ id }) => id).filter((id) => !run.probed.has(id)))
}

async function nextVersion(
  { evaluations, recommendations }: EvaluatePorts,
  { day, previous }: EvaluationRun,
): Promise<string> {
  const given = [...(await evaluations.versionsOf(day)), ...(await recommendations.versions())]
  return nextRankingVersion(day, previous ? [...given, previous.rankingVersion] : given)
}

/** The recommendation of a run; null when no candidate has a provider. */
function rankRun(
  run: EvaluationRun,
  now: Instant,
  rankingVersion: string,
  baseUrl: string,
): StoredRun | null {
  const { mode, day, previous } = run
  // A forced run uses scores from before it only for what the account did not let it ask.
  const excused = new Set([...run.unasked, ...run.plan.postponed])
  const all = candidatesOf(run).map((candidate): Candidate => {
    if (mode !== 'forceEval' || excused.has(candidate.model.id)) return candidate
    const fresh = run.evaluations.get(candidate.model.id) ?? null
    const counts = fresh && !(candidate.gone && hasAnswer(fresh))
    return { ...candidate, toolUse: toolUseOf(fresh), evaluation: counts ? fresh : null }
  })
  const leaders = goneLeaders(all, now)
  const candidates = all.filter(({ model }) => !leaders.has(model.id))
  if (candidates.length === 0) return null
  const evaluations = candidates.flatMap(({ evaluation }) =>
    evaluation && hasAnswer(evaluation) ? evaluation : [],
  )
  const ofToday = evaluations.some(({ updatedAt }) => dayOf(updatedAt) === day)
  const begunToday = run.attempts.filter((attempt) => attempt.day === day).map(({ model }) => model)
  const active = asksModels(mode)
  return recommend({
    now,
    rankingVersion,
    refreshMode: mode,
    probeMode: run.probed.size === 0 ? 'metadata' : active ? 'active' : 'passive',
    liteEvalMode: active && ofToday ? 'active' : evaluations.length > 0 ? 'cached' : 'off',
    baseUrl,
    candidates,
    rejections: [...run.rejections, ...[...leaders].map((id) => ({ id, reason: 'gone' }))],
    attemptedToday: new Set(begunToday).size,
    notes: [...run.notes, ...skippedWork(run).map(({ note }) => note)],
    previous,
  })
}

const NO_CANDIDATE = 'the catalogue has no free text model that may be recommended'
const UNSERVED = 'the service says that nobody serves any candidate'

/** The stored recommendation stays. */
function failure(
  { monotonic }: EvaluatePorts,
  run: EvaluationRun,
  reason: string,
  blame?: 'settings' | 'service',
): EvaluateResult {
  const { previous } = run
  const end = {
    outcome: 'failed' as const,
    rankingVersion: previous?.rankingVersion ?? null,
    primary: previous?.models[0]?.id ?? null,
    ranked: 0,
    reason: `${reason}; the stored recommendation stays`,
  }
  return {
    report: reportOf(run, end, run.rejections, monotonic()),
    misconfigured: blame === 'settings',
    unavailable: blame === 'service',
  }
}

function stoppedBy(ports: EvaluatePorts, run: EvaluationRun, stop: EarlyEnd): EvaluateResult {
  const isSetting = stop.reason !== 'day_ended' && RESPONSE_CLASSES[stop.reason].setting !== undefined
  return failure(ports, run, stopSentence(stop), isSetting ? 'settings' : 'service')
}

/** Stops after which older scores make a recommendation although nothing was measured. */
function isPassing({ reason }: EarlyEnd): boolean {
  return reason === 'day_ended' || RESPONSE_CLASSES[reason].limit !== undefined
}

function success(
  { monotonic }: EvaluatePorts,
  run: EvaluationRun,
  outcome: RunOutcome,
  { models, rankingVersion, rejections }: StoredRun,
): EvaluateResult {
  const end = {
    outcome,
    rankingVersion: outcome === 'unchanged' ? (run.previous?.rankingVersion ?? null) : rankingVersion,
    primary: models[0]?.id ?? null,
    ranked: models.length,
    reason: skippedWork(run)[0]?.reason ?? null,
  }
  const report = reportOf(run, end, rejections, monotonic())
  return { report, misconfigured: false, unavailable: false }
}
