import { CallQueue, SHORT_PAUSE_MS, STARTS_A_MINUTE, WINDOW_MS } from '../../domain/models/call-queue.ts'
import type { NextStart, QueuedCall } from '../../domain/models/call-queue.ts'
import { RESPONSE_CLASSES, failureDetails, isComplete } from '../../domain/models/evaluation.ts'
import type {
  AttemptEnd,
  ChatCall,
  CorrelatedFailure,
  Classification,
} from '../../domain/models/evaluation.ts'
import { answeredAsAsked, isCutShort } from '../../domain/models/lite/answer.ts'
import { unansweredTasks } from '../../domain/models/lite/suite.ts'
import type { LiteKind, LiteSuite, ModelResponse, TaskResult } from '../../domain/models/lite/suite.ts'
import { requestsLeftOfModel } from '../../domain/models/quota.ts'
import { Refusal } from '../../domain/refusal.ts'
import { DAY_MS, addDays, dayOf, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { LeaseRefusal } from '../lease.ts'
import type { EvaluatePorts, EvaluationRun, EarlyEnd } from './evaluation-run.ts'

/** The run as it is recorded, and what ends it. */
export interface RecordedRun {
  number: number
  /** Of the lease. */
  token: string
  signal: AbortSignal
}

interface Asking extends RecordedRun {
  ports: EvaluatePorts
  run: EvaluationRun
  suite: LiteSuite
  queue: CallQueue
  /** Results of each model's questions, those of before the run too. */
  results: Map<string, Map<LiteKind, readonly TaskResult[]>>
  /** Calls without a response, by vendor. */
  open: Map<string, { call: QueuedCall; ended: Promise<void> }>
  /** Ends once every reply so far is graded and settled. */
  graded: Promise<void>
  /** Ambiguous responses that no reply has refuted. */
  suspects: Suspect[]
  /** The first fault of any call. */
  fault: { error: unknown } | null
}

interface SentCall extends QueuedCall {
  attempt: number
  /** By the clock that only goes forward. */
  startedAt: number
}

/** An ambiguous response as it was settled, and when, by the clock that only goes forward. */
interface Suspect {
  call: SentCall
  end: AttemptEnd
  correlated: CorrelatedFailure
  at: number
}

/**
 * Asks the planned questions: each request recorded before it is sent and settled after, paced, retried once where that
 * may help, until all are asked or the account is out of requests (docs/model-errors.md). Writes what it learns to
 * the run.
 *
 * @throws Refusal `lease_lost`, `lite_suite_refused`; the signal's reason; faults of the ledger
 */
export async function askModels(
  ports: EvaluatePorts,
  run: EvaluationRun,
  recorded: RecordedRun,
): Promise<void> {
  const asking = await openAsking(ports, run, recorded)
  const { queue, open, signal } = asking
  try {
    for (;;) {
      await countChatRequests(asking)
      throwFault(asking)
      signal.throwIfAborted()
      if (run.stop) queue.clear()
      const next = queue.next([...open.keys()], asking.suspects.length > 0)
      if (next.do === 'done') break
      if (next.do === 'start') await startCall(asking, next.call)
      else await settleOrWait(asking, next)
    }
  } finally {
    await Promise.allSettled([...open.values()].map(({ ended }) => ended))
    await asking.graded
  }
  throwFault(asking)
  const unasked = run.plan.calls.filter(({ model, kind }) => !asking.results.get(model)?.has(kind))
  run.unasked = new Set(unasked.map(({ model }) => model))
  run.requests = queue.sent
  run.learned = queue.learned
}

async function openAsking(ports: EvaluatePorts, run: EvaluationRun, recorded: RecordedRun): Promise<Asking> {
  const { plan, mode, startedAt } = run
  const suite = await ports.makeSuite(run.day)
  const learned = await ports.evaluations.learnedSince(startedAt - DAY_MS)
  const left = new Map<string, number>()
  const results: Asking['results'] = new Map()
  for (const [model, { sentToday, answers }] of run.models) {
    left.set(model, requestsLeftOfModel(mode, sentToday))
    results.set(model, new Map(Object.entries(answers) as [LiteKind, readonly TaskResult[]][]))
  }
  for (const { model, kind } of plan.calls) results.get(model)?.delete(kind)
  const ages = run.attempts.map(({ sentAt }) => Math.max(0, startedAt - sentAt))
  const queue = new CallQueue({
    plan,
    left,
    startsAMinute: Math.min(STARTS_A_MINUTE, learned ?? STARTS_A_MINUTE),
    recentAges: ages.filter((ageMs) => ageMs < WINDOW_MS),
    monotonic: ports.monotonic,
  })
  const idle = { open: new Map(), graded: Promise.resolve(), suspects: [], fault: null }
  return { ports, run, ...recorded, suite, queue, results, ...idle }
}

/** The chat sends with the same key while a run goes on: its requests fill the same window. */
async function countChatRequests({ ports, queue }: Asking): Promise<void> {
  if (queue.length === 0) return
  const now = ports.clock()
  const sentAt = await ports.evaluations.chatRequestsSince(now - WINDOW_MS)
  queue.alsoSent(sentAt.map((at) => Math.max(0, now - at)))
}

async function settleOrWait(
  { ports: { monotonic, onProgress, sleep }, open, signal }: Asking,
  next: Extract<NextStart, { do: 'wait' | 'settle' }>,
): Promise<void> {
  const ended = [...open.values()].map((each) => each.ended)
  if (next.do === 'settle') return Promise.race(ended)
  const ms = Math.max(1, Math.ceil(next.until - monotonic()))
  if (ms > 2_000) onProgress(`waiting ${Math.round(ms / 1000)} s for the requests of a minute`)
  const waiting = new AbortController()
  const stop = (): void => waiting.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  const slept = sleep(ms, waiting.signal).catch((error: unknown) => {
    if (signal.aborted) throw error
  })
  try {
    await Promise.race([slept, ...ended])
  } finally {
    signal.removeEventListener('abort', stop)
    waiting.abort()
  }
}

async function startCall(asking: Asking, call: QueuedCall): Promise<void> {
  const { ports, run, number, token, queue, open } = asking
  const { clock, evaluations, onProgress } = ports
  const { model, kind, vendor } = call
  const sentAt = clock()
  if (dayOf(sentAt) !== run.day) {
    run.stop = { reason: 'day_ended', resetAt: null, preview: '' }
    return
  }
  const sentToday = run.models.get(model)?.sentToday ?? 0
  const sentBeforeAtMost = sentToday + requestsLeftOfModel(run.mode, sentToday) - 1
  const guard = { token, sentBeforeAtMost, countedBeforeAtMost: run.countedBeforeAtMost }
  // A crash from here on: the request counts, sent or not.
  const recorded = await evaluations.countAttempt({ run: number, model, kind, sentAt }, guard)
  if ('refused' in recorded) {
    if (recorded.refused !== 'day_spent')
      throw new Refusal<LeaseRefusal>('lease_lost', 'another evaluation took over while this one worked')
    run.stop ??= { reason: 'account_daily', resetAt: startOfDay(addDays(run.day, 1)), preview: '' }
    return
  }
  const sent = { ...call, attempt: recorded.counted, startedAt: queue.start(call) }
  onProgress(`request ${queue.sent}, ${queue.length} to come: ${model}`)
  const ended = noteFault(asking, sendCall(asking, sent)).finally(() => open.delete(vendor))
  open.set(vendor, { call, ended })
}

function throwFault({ fault }: Asking): void {
  if (fault) throw fault.error
}

function noteFault(asking: Asking, work: Promise<void>): Promise<void> {
  return work.catch((error: unknown) => {
    asking.fault ??= { error }
  })
}

async function sendCall(asking: Asking, call: SentCall): Promise<void> {
  const { ports, run, signal, queue } = asking
  const outcome = await ports.router.chat(chatCallOf(asking, call), signal)
  const classification = judgeReply(outcome, call.kind)
  const { reply } = classification
  const { scope } = RESPONSE_CLASSES[classification.class]
  if (scope === 'none' || scope === 'model') queue.passed(call.startedAt)
  const end: AttemptEnd = {
    // Scores belong to the day of the run, whose suite they were graded by.
    settledAt: Math.min(outcome.endedAt, startOfDay(addDays(run.day, 1)) - 1),
    class: classification.class,
    status: classification.status,
    latencyMs: reply && outcome.latencyMs,
    asAsked: reply && answeredAsAsked(call.kind, reply),
    tasks: null,
  }
  if (!reply) return settleFailure(asking, call, classification, end)
  // A reply refutes what was suspected before its call started.
  asking.suspects = asking.suspects.filter(({ at }) => at > call.startedAt)
  // Grading runs commands, one after the other, and the vendor need not wait for it.
  asking.graded = asking.graded.then(() => noteFault(asking, settleReply(asking, call, reply, end)))
}

/** A crash before it is settled: the attempt counts as abandoned, and the next run asks the question again. */
async function settleReply(
  asking: Asking,
  call: SentCall,
  reply: ModelResponse,
  end: AttemptEnd,
): Promise<void> {
  const tasks = await asking.suite.grade(call.kind, reply)
  await asking.ports.evaluations.settleAttempt(call.attempt, { ...end, tasks })
  await noteResult(asking, call, tasks, end.settledAt)
}

async function settleFailure(
  asking: Asking,
  call: SentCall,
  classification: Classification,
  end: AttemptEnd,
): Promise<void> {
  const { ports, run, queue } = asking
  await ports.evaluations.settleAttempt(call.attempt, end)
  const mistaken = await correlate(asking, call, classification.correlated, end)
  const kind = mistaken && classification.correlated ? classification.correlated : classification.class
  const { scope, retries, rateLimit } = RESPONSE_CLASSES[kind]
  if (rateLimit) run.limits[rateLimit] = true
  if (rateLimit === 'account') run.limits.resetAt = classification.resetAt ?? run.limits.resetAt
  const waitMs = classification.retryAt === null ? null : Math.max(0, classification.retryAt - ports.clock())
  if (scope === 'account') {
    const stop: EarlyEnd = { reason: kind, resetAt: classification.resetAt, preview: classification.preview }
    if (!retries || !waitForAccount(asking, call, kind, classification.limit, waitMs)) run.stop ??= stop
    for (const other of mistaken ?? []) forgive(asking, other.call)
    return
  }
  if (retries && queue.retry(call, waitMs ?? 0)) return
  await giveUp(asking, call, { ...classification, class: kind }, end.settledAt)
}

/**
 * Notes an ambiguous response. Once models of two vendors have the same one and no reply came in between, theirs are
 * settled again as what was suspected: not the models' own.
 *
 * @returns the others that are settled again when they agree, else null
 */
async function correlate(
  asking: Asking,
  call: SentCall,
  correlated: CorrelatedFailure | null,
  end: AttemptEnd,
): Promise<Suspect[] | null> {
  if (correlated === null) return null
  const suspect = { call, end, correlated, at: asking.ports.monotonic() }
  asking.suspects.push(suspect)
  const alike = asking.suspects.filter((each) => each.correlated === correlated)
  if (new Set(alike.map((each) => each.call.vendor)).size < 2) return null
  const mistaken = alike.filter((each) => each.end.class !== correlated)
  for (const each of mistaken) each.end = { ...each.end, class: correlated }
  for (const each of mistaken) await asking.ports.evaluations.settleAttempt(each.call.attempt, each.end)
  return mistaken.filter((each) => each !== suspect)
}

/**
 * A limit of the account that ends soon is waited for, and costs no model anything; one that lasts ends the run.
 *
 * @returns false for one that lasts
 */
function waitForAccount(
  { queue }: Asking,
  call: SentCall,
  kind: Classification['class'],
  limit: number | null,
  waitMs: number | null,
): boolean {
  const isMinute = kind === 'account_minute'
  if (isMinute) queue.learn(limit, call.startedAt)
  queue.putBack(call)
  return queue.waitForAccount(call.startedAt, waitMs, isMinute ? WINDOW_MS : SHORT_PAUSE_MS)
}

/** Takes back the cost of a response for a model, since others with the same one showed that it was the account's. */
function forgive({ open, results, queue }: Asking, call: SentCall): void {
  if (open.get(call.vendor)?.call.model === call.model) return
  results.get(call.model)?.delete(call.kind)
  queue.putBack(call)
}

async function giveUp(
  asking: Asking,
  call: QueuedCall,
  classification: Classification,
  at: Instant,
): Promise<void> {
  const why = failureDetails(classification)
  // Nobody serves it: the other question would get the same response.
  const others = classification.class === 'model_gone' ? asking.queue.drop(call.model) : []
  for (const each of [call, ...others])
    await noteResult(asking, each, unansweredTasks(each.kind, asking.run.day, why), at)
}

/** Keeps the result of a question, and the model's evaluation once there are both. */
async function noteResult(
  { ports, run, results }: Asking,
  { model, kind }: QueuedCall,
  result: readonly TaskResult[],
  evaluatedAt: Instant,
): Promise<void> {
  run.probed.add(model)
  const known = results.get(model) ?? new Map<LiteKind, readonly TaskResult[]>()
  results.set(model, known.set(kind, result))
  const [tool, text] = [known.get('tool'), known.get('text')]
  if (!tool || !text) return
  const tasks = [...tool, ...text]
  const complete = isComplete({ tasks })
  run.evaluations.set(model, { updatedAt: evaluatedAt, tasks })
  await ports.evaluations.saveScore({ model, day: run.day, evaluatedAt, complete, tasks })
  if (complete) run.evaluated.add(model)
}

/** The request for a question, fitted to the model as the catalogue describes it. */
function chatCallOf({ run, suite }: Asking, { model, kind }: QueuedCall): ChatCall {
  const question = suite.questions[kind]
  const listed = run.eligible.find(({ id }) => id === model)
  const parameters = listed?.supportedParameters ?? []
  return {
    model,
    question,
    maxTokens: Math.min(question.maxTokens, listed?.maxCompletionTokens ?? Infinity),
    temperature: parameters.includes('temperature'),
    lowEffort: parameters.includes('reasoning'),
  }
}

/** A reply that was cut before it answered the question counts as none. */
function judgeReply(classification: Classification, kind: LiteKind): Classification {
  if (classification.reply === null || !isCutShort(kind, classification.reply)) return classification
  return { ...classification, class: 'cut_answer', because: 'cut at its limit of tokens', reply: null }
}
