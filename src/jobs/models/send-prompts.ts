import { CallQueue, SHORT_PAUSE_MS, STARTS_PER_MINUTE, WINDOW_MS } from '../../domain/models/call-queue.ts'
import type { NextStart, QueuedCall } from '../../domain/models/call-queue.ts'
import { RESPONSE_CLASSES, failureDetails, isComplete } from '../../domain/models/evaluation.ts'
import type {
  AttemptEnd,
  ChatCall,
  CorrelatedFailure,
  Classification,
} from '../../domain/models/evaluation.ts'
import { responseFollowsFormat, isCutShort } from '../../domain/models/lite/text-response.ts'
import { unansweredTasks } from '../../domain/models/lite/suite.ts'
import type { LiteKind, LiteSuite, ModelResponse, TaskResult } from '../../domain/models/lite/suite.ts'
import { requestsLeftOfModel } from '../../domain/models/quota.ts'
import { Refusal } from '../../domain/refusal.ts'
import { DAY_MS, addDays, dayOf, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { LeaseRefusal } from '../lease.ts'
import type { EvaluatePorts, EvaluationRun, EarlyEnd } from './evaluation-run.ts'

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
  /** Results by model and prompt, including those from before the run. */
  results: Map<string, Map<LiteKind, readonly TaskResult[]>>
  /** Open calls by vendor. */
  open: Map<string, { call: QueuedCall; ended: Promise<void> }>
  /** Resolves when every response so far is graded and settled. */
  graded: Promise<void>
  /** Ambiguous responses that no later response has refuted. */
  ambiguous: AmbiguousResponse[]
  /** The first fault of a call. */
  fault: { error: unknown } | null
}

interface SentCall extends QueuedCall {
  attempt: number
  /** Start by the monotonic clock, in milliseconds. */
  startedAt: number
}

/** An ambiguous response as it was settled, with its time by the monotonic clock. */
interface AmbiguousResponse {
  call: SentCall
  end: AttemptEnd
  correlated: CorrelatedFailure
  at: number
}

/**
 * Sends the planned prompts, paced; records each request before it is sent and settles it afterwards; retries once
 * where that may help; ends when all are sent or the account has no requests left (docs/model-errors.md). Writes its
 * results to the run.
 *
 * @throws Refusal `lease_lost`; the signal's reason; faults of the store
 */
export async function sendPrompts(
  ports: EvaluatePorts,
  run: EvaluationRun,
  recorded: RecordedRun,
): Promise<void> {
  const session = await openSession(ports, run, recorded)
  const { queue, open, signal } = session
  try {
    for (;;) {
      await countChatRequests(session)
      throwFault(session)
      signal.throwIfAborted()
      if (run.stop) queue.clear()
      const next = queue.next([...open.keys()], session.ambiguous.length > 0)
      if (next.do === 'done') break
      if (next.do === 'start') await startCall(session, next.call)
      else await settleOrWait(session, next)
    }
  } finally {
    await Promise.allSettled([...open.values()].map(({ ended }) => ended))
    await session.graded
  }
  throwFault(session)
  const unasked = run.plan.calls.filter(({ model, kind }) => !session.results.get(model)?.has(kind))
  run.unfinished = new Set(unasked.map(({ model }) => model))
  run.requests = queue.sent
  run.learnedRate = queue.learnedRate
}

async function openSession(
  ports: EvaluatePorts,
  run: EvaluationRun,
  recorded: RecordedRun,
): Promise<PromptSession> {
  const { plan, mode, startedAt } = run
  const suite = ports.makeSuite(run.day)
  const learnedRate = await ports.evaluations.lowestRateSince(startedAt - DAY_MS)
  const requestsLeft = new Map<string, number>()
  const results: PromptSession['results'] = new Map()
  for (const [model, { sentToday, tasksToday }] of run.models) {
    requestsLeft.set(model, requestsLeftOfModel(mode, sentToday))
    results.set(model, new Map(Object.entries(tasksToday) as [LiteKind, readonly TaskResult[]][]))
  }
  for (const { model, kind } of plan.calls) results.get(model)?.delete(kind)
  const ages = run.attempts.map(({ sentAt }) => Math.max(0, startedAt - sentAt))
  const queue = new CallQueue({
    plan,
    requestsLeft,
    startsPerMinute: Math.min(STARTS_PER_MINUTE, learnedRate ?? STARTS_PER_MINUTE),
    recentAges: ages.filter((ageMs) => ageMs < WINDOW_MS),
    monotonic: ports.monotonic,
  })
  const idle = { open: new Map(), graded: Promise.resolve(), ambiguous: [], fault: null }
  return { ports, run, ...recorded, suite, queue, results, ...idle }
}

/** The chat uses the same key during a run: its requests count in the same window. */
async function countChatRequests({ ports, queue }: PromptSession): Promise<void> {
  if (queue.length === 0) return
  const now = ports.clock()
  const sentAt = await ports.evaluations.chatRequestsSince(now - WINDOW_MS)
  queue.noteOtherRequests(sentAt.map((at) => Math.max(0, now - at)))
}

async function settleOrWait(
  { ports: { monotonic, onProgress, sleep }, open, signal }: PromptSession,
  next: Extract<NextStart, { do: 'wait' | 'settle' }>,
): Promise<void> {
  const ended = [...open.values()].map((each) => each.ended)
  if (next.do === 'settle') return Promise.race(ended)
  const ms = Math.max(1, Math.ceil(next.until - monotonic()))
  if (ms > 2_000) onProgress(`waiting ${Math.round(ms / 1000)} s for the limit of requests per minute`)
  const waiting = new AbortController()
  const slept = sleep(ms, AbortSignal.any([signal, waiting.signal])).catch((error: unknown) => {
    if (signal.aborted) throw error
  })
  try {
    await Promise.race([slept, ...ended])
  } finally {
    waiting.abort()
  }
}

async function startCall(session: PromptSession, call: QueuedCall): Promise<void> {
  const { ports, run, number, token, queue, open } = session
  const { clock, evaluations, onProgress } = ports
  const { model, kind, vendor } = call
  const sentAt = clock()
  if (dayOf(sentAt) !== run.day) {
    run.stop = { reason: 'day_ended', resetAt: null, preview: '' }
    return
  }
  const sentToday = run.models.get(model)?.sentToday ?? 0
  const maxSentBefore = sentToday + requestsLeftOfModel(run.mode, sentToday) - 1
  const guard = { token, maxSentBefore, maxCountedBefore: run.maxCountedBefore }
  // A crash from here on: the request counts, sent or not.
  const recorded = await evaluations.countAttempt({ run: number, model, kind, sentAt }, guard)
  if ('refused' in recorded) {
    if (recorded.refused !== 'day_spent')
      throw new Refusal<LeaseRefusal>(
        'lease_lost',
        'another evaluation took over the lease; this run stopped',
      )
    run.stop ??= { reason: 'account_daily', resetAt: startOfDay(addDays(run.day, 1)), preview: '' }
    return
  }
  const sent = { ...call, attempt: recorded.counted, startedAt: queue.start(call) }
  onProgress(`request ${queue.sent}, ${queue.length} left: ${model}`)
  const ended = recordFault(session, sendCall(session, sent)).finally(() => open.delete(vendor))
  open.set(vendor, { call, ended })
}

function throwFault({ fault }: PromptSession): void {
  if (fault) throw fault.error
}

function recordFault(session: PromptSession, work: Promise<void>): Promise<void> {
  return work.catch((error: unknown) => {
    session.fault ??= { error }
  })
}

async function sendCall(session: PromptSession, call: SentCall): Promise<void> {
  const { ports, run, signal, queue } = session
  const outcome = await ports.router.chat(chatCallOf(session, call), signal)
  const classification = withoutCutResponse(outcome, call.kind)
  const { response } = classification
  const { scope } = RESPONSE_CLASSES[classification.class]
  if (scope === 'none' || scope === 'model') queue.noteAccepted(call.startedAt)
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
  // A response refutes ambiguous ones from before its call started.
  session.ambiguous = session.ambiguous.filter(({ at }) => at > call.startedAt)
  // Grading runs commands one after the other; the vendor's next call does not wait for it.
  session.graded = session.graded.then(() =>
    recordFault(session, settleResponse(session, call, response, end)),
  )
}

/** A crash before the attempt is settled: it counts as abandoned, and the next run sends the prompt again. */
async function settleResponse(
  session: PromptSession,
  call: SentCall,
  response: ModelResponse,
  end: AttemptEnd,
): Promise<void> {
  const tasks = await session.suite.grade(call.kind, response)
  await session.ports.evaluations.settleAttempt(call.attempt, { ...end, tasks })
  await recordResult(session, call, tasks, end.settledAt)
}

async function settleFailure(
  session: PromptSession,
  call: SentCall,
  classification: Classification,
  end: AttemptEnd,
): Promise<void> {
  const { ports, run, queue } = session
  await ports.evaluations.settleAttempt(call.attempt, end)
  const reclassified = await correlate(session, call, classification.correlated, end)
  const kind = reclassified && classification.correlated ? classification.correlated : classification.class
  const { scope, retries, rateLimit } = RESPONSE_CLASSES[kind]
  if (rateLimit) run.limits[rateLimit] = true
  if (rateLimit === 'account') run.limits.resetAt = classification.resetAt ?? run.limits.resetAt
  const waitMs = classification.retryAt === null ? null : Math.max(0, classification.retryAt - ports.clock())
  if (scope === 'account') {
    const stop: EarlyEnd = { reason: kind, resetAt: classification.resetAt, preview: classification.preview }
    if (!retries || !waitForAccount(session, call, kind, classification.limit, waitMs)) run.stop ??= stop
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
  const entry = { call, end, correlated, at: session.ports.monotonic() }
  session.ambiguous.push(entry)
  const matching = session.ambiguous.filter((each) => each.correlated === correlated)
  if (new Set(matching.map((each) => each.call.vendor)).size < 2) return null
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
  if (isMinute) queue.lowerRate(limit, call.startedAt)
  queue.requeue(call)
  return queue.waitForAccount(call.startedAt, waitMs, isMinute ? WINDOW_MS : SHORT_PAUSE_MS)
}

/** Withdraws a failure of a model after others with the same one showed that the account caused it. */
function withdrawFailure({ open, results, queue }: PromptSession, call: SentCall): void {
  if (open.get(call.vendor)?.call.model === call.model) return
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
  { ports, run, results }: PromptSession,
  { model, kind }: QueuedCall,
  result: readonly TaskResult[],
  evaluatedAt: Instant,
): Promise<void> {
  run.probed.add(model)
  const ofModel = results.get(model) ?? new Map<LiteKind, readonly TaskResult[]>()
  results.set(model, ofModel.set(kind, result))
  const [tool, text] = [ofModel.get('tool'), ofModel.get('text')]
  if (!tool || !text) return
  const tasks = [...tool, ...text]
  const complete = isComplete({ tasks })
  run.evaluations.set(model, { updatedAt: evaluatedAt, tasks })
  await ports.evaluations.saveScore({ model, day: run.day, evaluatedAt, complete, tasks })
  if (complete) run.evaluated.add(model)
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
  return { ...classification, class: 'cut_answer', rule: 'cut at the token limit', response: null }
}
