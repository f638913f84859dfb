import {
  CallQueue,
  SHORT_PAUSE_MS,
  STARTS_PER_MINUTE,
  WINDOW_MS,
  agesInWindow,
  vendorOf,
  requestsLeftOfModel,
} from '../../domain/models/quota.ts'
import type { QueuedCall } from '../../domain/models/quota.ts'
import { RESPONSE_CLASSES, failureDetails, isComplete } from '../../domain/models/evaluation.ts'
import type {
  AttemptEnd,
  ChatCall,
  ChatOutcome,
  CorrelatedFailure,
  Classification,
} from '../../domain/models/evaluation.ts'
import { responseFollowsFormat, isCutShort } from '../../domain/models/lite/text-response.ts'
import { unansweredTasks } from '../../domain/models/lite/suite.ts'
import type { LiteKind, LiteSuite, TaskResult } from '../../domain/models/lite/suite.ts'
import { Refusal } from '../../domain/refusal.ts'
import { DAY_MS, addDays, dayOf, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { LeaseRefusal } from '../lease.ts'
import { nothingMeasured } from './evaluation-run.ts'
import type { EvaluatePorts, EvaluationRun, EarlyEnd, Measurements } from './evaluation-run.ts'

/** The recorded run and its abort signal. */
export interface RecordedRun {
  number: number
  /** Token of the lease. */
  token: string
  signal: AbortSignal
}

interface PromptSession extends RecordedRun {
  ports: EvaluatePorts
  run: EvaluationRun
  suite: LiteSuite
  queue: CallQueue
  measured: Measurements
  /** Results by model and prompt, including those from before the run. */
  results: Map<string, Map<LiteKind, readonly TaskResult[]>>
  /** Ambiguous responses that no later response has refuted. */
  ambiguous: AmbiguousResponse[]
}

interface SentCall extends QueuedCall {
  attempt: number
}

/** An ambiguous response as it was settled. */
interface AmbiguousResponse {
  call: SentCall
  end: AttemptEnd
  correlated: CorrelatedFailure
}

/**
 * Sends the planned prompts one after the other, paced; records each request before it is sent and settles it
 * afterwards; retries once where that may help; ends when all are sent or the account has no requests left
 * (docs/model-errors.md).
 *
 * @throws Refusal `lease_lost`; the signal's reason; faults of the store
 */
export async function sendPrompts(
  ports: EvaluatePorts,
  run: EvaluationRun,
  recorded: RecordedRun,
): Promise<Measurements> {
  const session = await openSession(ports, run, recorded)
  const { queue, measured, signal, results } = session
  while (measured.stop === null) {
    await countChatRequests(session)
    signal.throwIfAborted()
    const next = queue.next(new Set(session.ambiguous.map(({ call }) => vendorOf(call.model))))
    if (next === null) break
    const now = ports.clock()
    if (dayOf(now) !== run.day) measured.stop = { reason: 'day_ended', resetAt: null, preview: '' }
    else if (next.at > ports.monotonic()) await waitUntil(ports, next.at, signal)
    else await send(session, next.call, now)
  }
  const unasked = run.plan.calls.filter(({ model, kind }) => !results.get(model)?.has(kind))
  const unfinished = new Set(unasked.map(({ model }) => model))
  return { ...measured, unfinished, requests: queue.sent, learnedRate: queue.learnedRate }
}

async function openSession(
  ports: EvaluatePorts,
  run: EvaluationRun,
  recorded: RecordedRun,
): Promise<PromptSession> {
  const { plan, mode, startedAt } = run
  const suite = ports.makeSuite(run.day)
  const learnedRate = await ports.evaluations.lowestRateBetween(startedAt - DAY_MS, startedAt)
  const requestsLeft = new Map<string, number>()
  const results: PromptSession['results'] = new Map()
  for (const [model, { sentToday, tasksToday }] of run.history.models) {
    requestsLeft.set(model, requestsLeftOfModel(mode, sentToday))
    results.set(model, new Map(Object.entries(tasksToday) as [LiteKind, readonly TaskResult[]][]))
  }
  for (const { model, kind } of plan.calls) results.get(model)?.delete(kind)
  const queue = new CallQueue({
    plan,
    requestsLeft,
    startsPerMinute: Math.min(STARTS_PER_MINUTE, learnedRate ?? STARTS_PER_MINUTE),
    recentAges: agesInWindow(
      run.history.attempts.map(({ sentAt }) => sentAt),
      startedAt,
    ),
    monotonic: ports.monotonic,
  })
  return { ports, run, ...recorded, suite, queue, measured: nothingMeasured(), results, ambiguous: [] }
}

/** The chat uses the same key during a run: its requests count in the same window. */
async function countChatRequests({ ports, queue }: PromptSession): Promise<void> {
  const now = ports.clock()
  const sentAt = await ports.evaluations.chatRequestsSince(now - WINDOW_MS)
  queue.noteOtherRequests(agesInWindow(sentAt, now))
}

async function waitUntil(
  { monotonic, onProgress, sleep }: EvaluatePorts,
  at: number,
  signal: AbortSignal,
): Promise<void> {
  const ms = Math.max(1, Math.ceil(at - monotonic()))
  if (ms > 2_000) onProgress(`waiting ${Math.round(ms / 1000)} s for the limit of requests per minute`)
  await sleep(ms, signal)
}

async function send(session: PromptSession, call: QueuedCall, sentAt: Instant): Promise<void> {
  const { ports, run, number, token, queue, measured, signal } = session
  const { evaluations, onProgress } = ports
  const { model, kind } = call
  const guard = { token, maxCountedBefore: run.plan.maxCountedBefore }
  // A crash from here on: the request counts, sent or not.
  const recorded = await evaluations.countAttempt({ run: number, model, kind, sentAt }, guard)
  if ('refused' in recorded) {
    if (recorded.refused === 'lease_lost')
      throw new Refusal<LeaseRefusal>(
        'lease_lost',
        'another evaluation took over the lease; this run stopped',
      )
    measured.stop = { reason: 'account_daily', resetAt: startOfDay(addDays(run.day, 1)), preview: '' }
    return
  }
  queue.start(call)
  onProgress(`request ${queue.sent}, ${queue.length} left: ${model}`)
  const outcome = await ports.router.chat(chatCallOf(session, call), signal)
  await settle(session, { ...call, attempt: recorded.counted }, outcome)
}

async function settle(session: PromptSession, call: SentCall, outcome: ChatOutcome): Promise<void> {
  const { ports, run, queue, suite } = session
  const classification = withoutCutResponse(outcome, call.kind)
  const { response } = classification
  const { scope } = RESPONSE_CLASSES[classification.class]
  if (scope === 'none' || scope === 'model') queue.noteAccepted()
  const end: AttemptEnd = {
    // Scores belong to the day of the run, whose suite graded them.
    settledAt: Math.min(outcome.endedAt, startOfDay(addDays(run.day, 1)) - 1),
    class: classification.class,
    status: classification.status,
    latencyMs: response && outcome.latencyMs,
    asAsked: response && responseFollowsFormat(call.kind, response),
    tasks: null,
  }
  if (!response) return settleFailure(session, call, classification, end)
  // A response refutes the ambiguous ones before it.
  session.ambiguous = []
  // A crash before the attempt is settled: it counts as abandoned, and the next run sends the prompt again.
  const tasks = await suite.grade(call.kind, response)
  await ports.evaluations.settleAttempt(call.attempt, { ...end, tasks })
  await recordResult(session, call, tasks, end.settledAt)
}

async function settleFailure(
  session: PromptSession,
  call: SentCall,
  classification: Classification,
  end: AttemptEnd,
): Promise<void> {
  const { ports, measured, queue } = session
  await ports.evaluations.settleAttempt(call.attempt, end)
  const reclassified = await correlate(session, call, classification.correlated, end)
  const kind = reclassified && classification.correlated ? classification.correlated : classification.class
  const { scope, retries, rateLimit } = RESPONSE_CLASSES[kind]
  if (rateLimit) measured.limits[rateLimit] = true
  if (rateLimit === 'account') measured.limits.resetAt = classification.resetAt ?? measured.limits.resetAt
  const waitMs = classification.retryAt === null ? null : Math.max(0, classification.retryAt - ports.clock())
  if (scope === 'account') {
    const stop: EarlyEnd = { reason: kind, resetAt: classification.resetAt, preview: classification.preview }
    if (!retries || !waitForAccount(session, call, kind, classification.limit, waitMs)) measured.stop = stop
    for (const other of reclassified ?? []) withdrawFailure(session, other.call)
    return
  }
  if (retries && queue.retry(call, waitMs ?? 0)) return
  await recordFailure(session, call, { ...classification, class: kind }, end.settledAt)
}

/**
 * Records an ambiguous response. When models of two vendors have the same one, with no response in between, they are
 * settled again as the correlated failure, which does not count against the models.
 *
 * @returns the other reclassified responses, or null
 */
async function correlate(
  session: PromptSession,
  call: SentCall,
  correlated: CorrelatedFailure | null,
  end: AttemptEnd,
): Promise<AmbiguousResponse[] | null> {
  if (correlated === null) return null
  const entry = { call, end, correlated }
  session.ambiguous.push(entry)
  const matching = session.ambiguous.filter((each) => each.correlated === correlated)
  if (new Set(matching.map((each) => vendorOf(each.call.model))).size < 2) return null
  const reclassified = matching.filter((each) => each.end.class !== correlated)
  for (const each of reclassified) each.end = { ...each.end, class: correlated }
  for (const each of reclassified) await session.ports.evaluations.settleAttempt(each.call.attempt, each.end)
  return reclassified.filter((each) => each !== entry)
}

/**
 * Waits for a short limit of the account, at no cost for any model.
 *
 * @returns false when the limit lasts, which ends the run
 */
function waitForAccount(
  { queue }: PromptSession,
  call: SentCall,
  kind: Classification['class'],
  limit: number | null,
  waitMs: number | null,
): boolean {
  const isMinute = kind === 'account_minute'
  if (isMinute) queue.lowerRate(limit)
  queue.requeue(call)
  return queue.waitForAccount(waitMs, isMinute ? WINDOW_MS : SHORT_PAUSE_MS)
}

/** Withdraws a failure of a model after others with the same one showed that the account caused it. */
function withdrawFailure({ results, queue }: PromptSession, call: SentCall): void {
  results.get(call.model)?.delete(call.kind)
  queue.requeue(call)
}

async function recordFailure(
  session: PromptSession,
  call: QueuedCall,
  classification: Classification,
  at: Instant,
): Promise<void> {
  const details = failureDetails(classification)
  // Without a provider the other prompt would fail the same way.
  const others = classification.class === 'model_gone' ? session.queue.drop(call.model) : []
  for (const each of [call, ...others])
    await recordResult(session, each, unansweredTasks(each.kind, session.run.day, details), at)
}

/** Stores the result of a prompt, and the model's evaluation once both exist. */
async function recordResult(
  { ports, run, measured, results }: PromptSession,
  { model, kind }: QueuedCall,
  result: readonly TaskResult[],
  evaluatedAt: Instant,
): Promise<void> {
  measured.probed.add(model)
  const ofModel = results.get(model) ?? new Map<LiteKind, readonly TaskResult[]>()
  results.set(model, ofModel.set(kind, result))
  const [tool, text] = [ofModel.get('tool'), ofModel.get('text')]
  if (!tool || !text) return
  const tasks = [...tool, ...text]
  const complete = isComplete({ tasks })
  measured.evaluations.set(model, { updatedAt: evaluatedAt, tasks })
  await ports.evaluations.saveScore({ model, day: run.day, evaluatedAt, complete, tasks })
  if (complete) measured.evaluated.add(model)
}

/** The chat call of a prompt, adapted to the model's catalogue entry. */
function chatCallOf({ run, suite }: PromptSession, { model, kind }: QueuedCall): ChatCall {
  const prompt = suite.prompts[kind]
  const listed = run.eligible.find(({ id }) => id === model)
  const parameters = listed?.supportedParameters ?? []
  return {
    model,
    prompt,
    maxTokens: Math.min(prompt.maxTokens, listed?.maxCompletionTokens ?? Infinity),
    temperature: parameters.includes('temperature'),
    lowEffort: parameters.includes('reasoning'),
  }
}

/** Treats a response that was cut before it answered the prompt as missing. */
function withoutCutResponse(classification: Classification, kind: LiteKind): Classification {
  if (classification.response === null || !isCutShort(kind, classification.response)) return classification
  return { ...classification, class: 'cut_answer', response: null }
}
