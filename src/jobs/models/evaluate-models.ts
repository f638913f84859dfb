import { stepBetween } from '../../domain/models/changes.ts'
import type { RunStep } from '../../domain/models/changes.ts'
import { RESPONSE_CLASSES, hasResponse } from '../../domain/models/evaluation.ts'
import type { EndpointRecord, RunOutcome } from '../../domain/models/evaluation.ts'
import { unservedLeaders } from '../../domain/models/ranking.ts'
import { nextRankingVersion, recommend, hasSameContent } from '../../domain/models/recommend.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import { sealRun } from '../../domain/models/stored-run.ts'
import { messageOf } from '../../domain/refusal.ts'
import { addDays, dayOf, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { withLease } from '../lease.ts'
import {
  candidatesOf,
  planPrompts,
  readResults,
  readRun,
  sendsPrompts,
  reportOf,
  skippedWork,
  stopSentence,
} from './evaluation-run.ts'
import { sendPrompts } from './lite-suite.ts'
import type {
  EvaluateOptions,
  EvaluatePorts,
  EvaluationReport,
  EvaluationRun,
  EarlyEnd,
  Measurements,
} from './evaluation-run.ts'

export interface EvaluateResult {
  report: EvaluationReport
  /**
   * The cause of a failure that lies outside the catalogue: a setting of the account or of this program, or the service;
   * null for any other end.
   */
  blame: 'settings' | 'service' | null
  /** The step from the previous recommendation to the one that this run stored; null without both. */
  step: RunStep | null
  learnedRate: Measurements['learnedRate']
}

/** What the record of a run says of its end. */
type RecordedEnd = Pick<EvaluationReport, 'outcome' | 'refreshMode' | 'rankingVersion' | 'reason'>

/**
 * Evaluates the free models within the quota of a free account, and stores the recommendation (docs/free-models.md).
 * Every request is recorded, also when the run fails.
 *
 * @throws Refusal `source_unavailable` when there is no catalogue, `lease_held`, `lease_lost`, those of the stores
 */
export async function evaluateModels(
  ports: EvaluatePorts,
  options: EvaluateOptions,
): Promise<EvaluateResult> {
  if (options.dryRun) return rehearse(ports, options)
  const { evaluations, clock, onNote } = ports
  // A crash from here on: the lease expires, or the next run takes it over once this process is known to be dead.
  const ended = await withLease(evaluations, 'evaluating models', ports, async (token) => {
    // Ends the open request of a run that was killed. A crash: the next run repeats it.
    const abandoned = await evaluations.sweep(clock())
    if (abandoned > 0) onNote('the last evaluation was interrupted; its requests are counted')
    const startedAt = clock()
    const record = ({ outcome, refreshMode, rankingVersion, reason }: RecordedEnd, rate: number | null) =>
      evaluations.recordRun({
        day: dayOf(startedAt),
        refreshMode,
        startedAt,
        endedAt: clock(),
        outcome,
        rankingVersion,
        startsAMinute: rate,
        reason,
      })
    try {
      const result = await evaluate(ports, options, token)
      // A crash before it: the recommendation is stored, and its run is not recorded.
      await record(result.report, result.learnedRate)
      return result
    } catch (error) {
      const reason = options.signal.aborted ? 'interrupted' : messageOf(error)
      const end = { outcome: 'failed' as const, refreshMode: options.mode, rankingVersion: null, reason }
      // If the store itself fails, the next run ends the open request.
      await evaluations
        .sweep(clock())
        .then(() => record(end, null))
        .catch(() => undefined)
      throw error
    }
  })
  // A crash from here on: the changes are in the feed, and no webhook repeats them.
  return announce(ports, ended, options.signal)
}

/** The steps of a run under its lease. */
async function evaluate(
  ports: EvaluatePorts,
  options: EvaluateOptions,
  token: string,
): Promise<EvaluateResult> {
  const { recommendations, clock } = ports
  // Reads only: a crash leaves nothing.
  const read = await readRun(ports, options)
  if (read.eligible.length === 0) return failure(ports, read, NO_CANDIDATE)
  const planned = await planPrompts(ports, read, options.signal)

  // Requests are recorded before they are sent. After a crash all of them count, and the next run of the day sends only
  // prompts without a response.
  const sent = await measure(ports, planned, token, options.signal)
  const { requests, stop, probed } = sent.measured
  if (stop && probed.size === 0 && !isTemporary(stop)) return stoppedEarly(ports, sent, stop)

  // The run belongs to the day on which it started, and a clock that was set back does not end it before its start.
  const now = Math.min(Math.max(clock(), sent.startedAt), startOfDay(addDays(sent.day, 1)) - 1)
  const run = { ...sent, history: await readResults(ports, sent, now) }
  const version = nextRankingVersion(run.day, await recommendations.versions())
  const ranked = rankRun(run, now, version, ports.baseUrl)
  if (ranked === null) return failure(ports, run, UNSERVED, 'service')
  const skipped = skippedWork(run).length > 0
  if (requests === 0 && !skipped && run.previous && hasSameContent(run.previous, ranked))
    return success(ports, run, 'unchanged', ranked)

  // The commit point, one atomic step. A crash before it: the stored recommendation stays. A crash after it: the new one
  // is served, and its version is never reused.
  await recommendations.put(ranked.rankingVersion, sealRun(ranked))
  const stored = success(ports, run, skipped ? 'partial' : 'complete', ranked)
  return { ...stored, step: run.previous && stepBetween(run.previous, ranked) }
}

/** Sends the changes of a run to their receiver; its failure does not change the result of the run. */
async function announce(
  { changes: receiver }: EvaluatePorts,
  result: EvaluateResult,
  signal: AbortSignal,
): Promise<EvaluateResult> {
  const { step } = result
  if (receiver === null || step === null || step.changes.length === 0) return result
  const webhook = await receiver.send(step, signal)
  return { ...result, report: { ...result.report, webhook } }
}

/** A dry run: the same steps without prompts and without writing. */
async function rehearse(ports: EvaluatePorts, options: EvaluateOptions): Promise<EvaluateResult> {
  const read = await readRun(ports, options)
  if (read.eligible.length === 0) return failure(ports, read, NO_CANDIDATE)
  const run = await planPrompts(ports, read, options.signal)
  const { plan, measured } = run
  if (measured.stop) return stoppedEarly(ports, run, measured.stop)
  const ranked = rankRun(run, run.startedAt, nextRankingVersion(run.day, []), ports.baseUrl)
  if (ranked === null) return failure(ports, run, UNSERVED, 'service')
  const rehearsed = { ...run, previous: null, measured: { ...measured, requests: plan.calls.length } }
  return success(ports, rehearsed, 'unchanged', ranked)
}

/** Sends prompts or probes endpoints, depending on the mode; everything is stored on return. */
async function measure(
  ports: EvaluatePorts,
  run: EvaluationRun,
  token: string,
  signal: AbortSignal,
): Promise<EvaluationRun> {
  if (run.measured.stop) return run
  if (run.mode === 'healthOnly') return { ...run, measured: await probeEndpoints(ports, run, signal) }
  if (run.plan.calls.length === 0) return run
  return { ...run, measured: await sendPrompts(ports, run, token, signal) }
}

async function probeEndpoints(
  { router, evaluations }: EvaluatePorts,
  { eligible, measured }: EvaluationRun,
  signal: AbortSignal,
): Promise<Measurements> {
  const records: EndpointRecord[] = []
  let stop: EarlyEnd | null = null
  for (const { id } of eligible) {
    const response = await router.endpoints(id, signal)
    if ('failed' in response) {
      stop = { reason: 'account_key', resetAt: null, preview: response.failed.preview }
      break
    }
    if (response.facts) records.push(response.facts)
  }
  await evaluations.saveEndpoints(records)
  const probed = new Set(records.map(({ model }) => model))
  const unfinished = new Set(eligible.map(({ id }) => id).filter((id) => !probed.has(id)))
  return { ...measured, stop, probed, unfinished }
}

/** The recommendation of a run; null when no candidate has a provider. */
function rankRun(
  run: EvaluationRun,
  now: Instant,
  rankingVersion: string,
  baseUrl: string,
): StoredRun | null {
  const { mode, day, previous, history, measured } = run
  const all = candidatesOf(run)
  const leaders = unservedLeaders(all, now)
  const candidates = all.filter(({ model }) => !leaders.has(model.id))
  if (candidates.length === 0) return null
  const evaluations = candidates.flatMap(({ evaluation }) =>
    evaluation && hasResponse(evaluation) ? evaluation : [],
  )
  const ofToday = evaluations.some(({ updatedAt }) => dayOf(updatedAt) === day)
  const modelsTriedToday = history.attempts.filter((attempt) => attempt.day === day).map(({ model }) => model)
  const active = sendsPrompts(mode)
  return recommend({
    now,
    rankingVersion,
    refreshMode: mode,
    probeMode: measured.probed.size === 0 ? 'metadata' : active ? 'active' : 'passive',
    liteEvalMode: active && ofToday ? 'active' : evaluations.length > 0 ? 'cached' : 'off',
    baseUrl,
    candidates,
    rejections: [...run.rejections, ...[...leaders].map((id) => ({ id, reason: 'gone' }))],
    untested: candidates.filter(({ tested }) => !tested).map(({ model }) => model.id),
    attemptedToday: new Set(modelsTriedToday).size,
    notes: [...run.notes, ...skippedWork(run).map(({ note }) => note)],
    previous,
  })
}

const NO_CANDIDATE = 'the catalogue has no free text model that can be recommended'
const UNSERVED = 'no candidate has an endpoint at the service'

/** The result of a failed run: the stored recommendation stays. */
function failure(
  { monotonic }: EvaluatePorts,
  run: EvaluationRun,
  reason: string,
  blame: EvaluateResult['blame'] = null,
): EvaluateResult {
  const end = {
    outcome: 'failed' as const,
    rankingVersion: run.previous?.rankingVersion ?? null,
    primary: run.previous?.models[0]?.id ?? null,
    ranked: 0,
    reason: run.previous ? `${reason}; the stored recommendation is kept` : reason,
  }
  const { learnedRate } = run.measured
  return { report: reportOf(run, end, run.rejections, monotonic()), blame, step: null, learnedRate }
}

function stoppedEarly(ports: EvaluatePorts, run: EvaluationRun, stop: EarlyEnd): EvaluateResult {
  const isSetting = stop.reason !== 'day_ended' && RESPONSE_CLASSES[stop.reason].setting !== undefined
  return failure(ports, run, stopSentence(stop), isSetting ? 'settings' : 'service')
}

/** True for an early end after which older scores still give a recommendation. */
function isTemporary({ reason }: EarlyEnd): boolean {
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
  const { learnedRate } = run.measured
  return { report: reportOf(run, end, rejections, monotonic()), blame: null, step: null, learnedRate }
}
