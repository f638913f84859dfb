import { drawsFrom, taskResult, LITE_SUITE, unansweredTasks } from '../../domain/models/lite/suite.ts'
import type { Draw, LiteSuite, LiteKind, LitePrompt, ShellRun } from '../../domain/models/lite/suite.ts'
import { gradeFiles, drawFiles } from '../../domain/models/lite/file-task.ts'
import type { FilesItem } from '../../domain/models/lite/file-task.ts'
import { drawShellJob } from '../../domain/models/lite/shell-jobs.ts'
import type { ShellCase, ShellJob } from '../../domain/models/lite/shell-jobs.ts'
import {
  parseTextResponse,
  gradeClock,
  SHELL_LIMITS,
  gradeShell,
  drawClock,
  textPrompt,
  responseFollowsFormat,
  isCutShort,
} from '../../domain/models/lite/text-tasks.ts'
import type { ShellRuns, ClockItem } from '../../domain/models/lite/text-tasks.ts'
import type { Shell } from '../../domain/ports.ts'
import type { Day, Instant } from '../../domain/time.ts'
import {
  CallQueue,
  SHORT_PAUSE_MS,
  WINDOW_MS,
  agesInWindow,
  vendorOf,
  requestsLeftOfModel,
} from '../../domain/models/quota.ts'
import type { QueuedCall } from '../../domain/models/quota.ts'
import { RESPONSE_CLASSES, failureDetails } from '../../domain/models/evaluation.ts'
import type {
  AttemptEnd,
  ChatCall,
  ChatOutcome,
  CorrelatedFailure,
  Classification,
} from '../../domain/models/evaluation.ts'
import { DAY_MS, addDays, dayOf, startOfDay } from '../../domain/time.ts'
import { leaseLost } from '../lease.ts'
import { nothingMeasured } from './evaluation-run.ts'
import type { EvaluatePorts, EvaluationRun, EarlyEnd, Measurements } from './evaluation-run.ts'

/**
 * Creates the suite of a UTC day (docs/lite-suite.md).
 *
 * @param day must be a valid day
 * @param shell runs the commands; must stay open as long as the suite grades
 */
export function makeLiteSuite(day: Day, shell: Shell): LiteSuite {
  const items = drawItems(day)
  return {
    prompts: items.prompts,
    async grade(kind, response) {
      if (kind === 'tool') return [taskResult('task_files_lite', day, gradeFiles(items.files, response))]
      const { command, time } = parseTextResponse(response.text)
      const runs = command === null ? null : await runEverywhere(items, command, shell)
      return [
        taskResult('task_shell_command_lite', day, gradeShell(items.shell, command, runs)),
        taskResult('babylonian_clock_lite', day, gradeClock(items.clock, time)),
      ]
    },
  }
}

async function runEverywhere({ shell: job }: LiteItems, command: string, shell: Shell): Promise<ShellRuns> {
  const run = ({ files }: ShellCase): Promise<ShellRun> => shell.run(command, files, SHELL_LIMITS)
  const { shown, other, awkward } = job.cases
  return { shown: await run(shown), other: await run(other), awkward: await run(awkward) }
}

export interface LiteItems {
  day: Day
  files: FilesItem
  shell: ShellJob
  clock: ClockItem
  prompts: Record<LiteKind, LitePrompt>
}

/**
 * Draws the items of a UTC day. They depend on the day alone, so that every model gets the same, and anyone can
 * reproduce them.
 */
export function drawItems(day: Day): LiteItems {
  const files = drawFiles(drawsFor(day, 'files'))
  const shell = drawShellJob(drawsFor(day, 'shell'))
  const clock = drawClock(drawsFor(day, 'clock'))
  return { day, files, shell, clock, prompts: { tool: files.prompt, text: textPrompt(shell, clock) } }
}

function drawsFor(day: Day, task: string): Draw {
  return drawsFrom(`${LITE_SUITE}|${day}|${task}`)
}

interface PromptSession {
  token: string
  signal: AbortSignal
  ports: EvaluatePorts
  run: EvaluationRun
  suite: LiteSuite
  queue: CallQueue
  measured: Measurements
  /** Planned prompts with a response or a failure of the model that stands, as {@link promptKey}. */
  done: Set<string>
  /** Ambiguous responses that no later response has refuted. */
  ambiguous: AmbiguousResponse[]
}

interface SentCall extends QueuedCall {
  attempt: number
}

/** An ambiguous response as it was settled. */
interface AmbiguousResponse {
  call: SentCall
  end: Omit<AttemptEnd, 'tasks'>
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
  token: string,
  signal: AbortSignal,
): Promise<Measurements> {
  const session = await openSession(ports, run, token, signal)
  const { queue, measured, done } = session
  while (measured.stop === null) {
    const now = ports.clock()
    // The chat uses the same key during a run: its requests count in the same window.
    const recent = await ports.evaluations.requestsSince(now - WINDOW_MS)
    signal.throwIfAborted()
    const ambiguous = new Set(session.ambiguous.map(({ call }) => vendorOf(call.model)))
    const next = queue.next(ambiguous, agesInWindow(recent, now))
    if (next === null) break
    if (dayOf(now) !== run.day) measured.stop = { reason: 'day_ended', resetAt: null, preview: '' }
    else if (next.at > ports.monotonic()) await waitUntil(ports, next.at, signal)
    else await send(session, next.call, now)
  }
  const modelsOf = (isDone: boolean): Set<string> =>
    new Set(run.plan.calls.flatMap((call) => (done.has(promptKey(call)) === isDone ? [call.model] : [])))
  const [probed, unfinished] = [modelsOf(true), modelsOf(false)]
  return { ...measured, probed, unfinished, requests: queue.sent, learnedRate: queue.learnedRate }
}

async function openSession(
  ports: EvaluatePorts,
  run: EvaluationRun,
  token: string,
  signal: AbortSignal,
): Promise<PromptSession> {
  const requestsLeft = new Map(
    [...run.history.models].map(([id, { sentToday }]) => [id, requestsLeftOfModel(run.mode, sentToday)]),
  )
  const learnedRate = await ports.evaluations.lowestRateBetween(run.startedAt - DAY_MS, run.startedAt)
  const queue = new CallQueue({ plan: run.plan, requestsLeft, learnedRate, monotonic: ports.monotonic })
  const suite = ports.makeSuite(run.day)
  const measured = nothingMeasured()
  return { ports, run, token, signal, suite, queue, measured, done: new Set(), ambiguous: [] }
}

function promptKey({ model, kind }: Pick<QueuedCall, 'model' | 'kind'>): string {
  return `${kind} ${model}`
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
  const { ports, run, token, queue, measured, signal } = session
  const { evaluations, onProgress } = ports
  const { model, kind } = call
  const guard = { token, maxCountedBefore: run.plan.maxCountedBefore }
  // A crash from here on: the request counts, sent or not.
  const recorded = await evaluations.countAttempt({ model, kind, sentAt }, guard)
  if ('refused' in recorded) {
    if (recorded.refused === 'lease_lost') throw leaseLost('the evaluations')
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
  const end: Omit<AttemptEnd, 'tasks'> = {
    // Scores belong to the day of the run, whose suite graded them.
    settledAt: Math.min(outcome.endedAt, startOfDay(addDays(run.day, 1)) - 1),
    class: classification.class,
    status: classification.status,
    latencyMs: response && outcome.latencyMs,
    asAsked: response && responseFollowsFormat(call.kind, response),
  }
  if (!response) return settleFailure(session, call, classification, end)
  // A response refutes the ambiguous ones before it.
  session.ambiguous = []
  // A crash before the attempt is settled: it counts as abandoned, and the next run sends the prompt again.
  const tasks = await suite.grade(call.kind, response)
  await ports.evaluations.settleAttempt(call.attempt, { ...end, tasks })
  session.done.add(promptKey(call))
}

async function settleFailure(
  session: PromptSession,
  call: SentCall,
  classification: Classification,
  end: Omit<AttemptEnd, 'tasks'>,
): Promise<void> {
  const { ports, run, measured, queue } = session
  const isOfAccount = RESPONSE_CLASSES[classification.class].scope === 'account'
  const tasks = isOfAccount ? null : unansweredTasks(call.kind, run.day, failureDetails(classification))
  await ports.evaluations.settleAttempt(call.attempt, { ...end, tasks })
  const reclassified = await correlate(session, call, classification.correlated, end)
  const kind = reclassified && classification.correlated ? classification.correlated : classification.class
  const { scope, retries, rateLimit } = RESPONSE_CLASSES[kind]
  if (rateLimit) measured.limits[rateLimit] = true
  if (rateLimit === 'account') measured.limits.resetAt = classification.resetAt ?? measured.limits.resetAt
  const waitMs = classification.retryAt === null ? null : Math.max(0, classification.retryAt - ports.clock())
  if (scope === 'account') {
    const stop: EarlyEnd = { reason: kind, resetAt: classification.resetAt, preview: classification.preview }
    if (!retries || !waitForAccount(session, call, kind, classification.limit, waitMs)) measured.stop = stop
    for (const other of reclassified ?? []) {
      session.done.delete(promptKey(other.call))
      queue.requeue(other.call)
    }
    return
  }
  if (retries && queue.retry(call, waitMs ?? 0)) return
  // Without a provider the other prompt would fail the same way.
  const others = kind === 'model_gone' ? queue.drop(call.model) : []
  for (const each of [call, ...others]) session.done.add(promptKey(each))
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
  end: AmbiguousResponse['end'],
): Promise<AmbiguousResponse[] | null> {
  if (correlated === null) return null
  const entry = { call, end, correlated }
  session.ambiguous.push(entry)
  const matching = session.ambiguous.filter((each) => each.correlated === correlated)
  if (new Set(matching.map((each) => vendorOf(each.call.model))).size < 2) return null
  const reclassified = matching.filter((each) => each.end.class !== correlated)
  for (const each of reclassified) each.end = { ...each.end, class: correlated }
  for (const each of reclassified)
    await session.ports.evaluations.settleAttempt(each.call.attempt, { ...each.end, tasks: null })
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
