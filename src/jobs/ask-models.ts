import { ANSWER_CLASSES, classifyAnswer } from '../domain/models/answer-class.ts'
import type { Verdict } from '../domain/models/answer-class.ts'
import { failureDetails } from '../domain/models/failure-details.ts'
import type { LiteQuestion, TaskResult } from '../domain/models/lite/suite.ts'
import { WINDOW_MS } from '../domain/models/pacing.ts'
import type { NextStart } from '../domain/models/pacing.ts'
import { REQUESTS_A_MODEL } from '../domain/models/quota.ts'
import type { ChatCall } from '../domain/models/router.ts'
import { Refusal } from '../domain/refusal.ts'
import { addDays, dayOf, startOfDay } from '../domain/time.ts'
import type { Instant } from '../domain/time.ts'
import type { Asked, AskOptions, AskPorts } from './asking.ts'
import { CallQueue, SHORT_PAUSE_MS } from './call-queue.ts'
import type { QueuedCall } from './call-queue.ts'
import type { LeaseRefusal } from './lease.ts'
import { openSuspicions } from './suspicions.ts'
import type { Suspicions } from './suspicions.ts'

/** A question that was answered today already, or could not be. */
type Outcome = { tasks: readonly TaskResult[]; answered: boolean }

/**
 * Asks the planned questions: each request written down before it is sent and settled after, paced, retried once where
 * that may help, until all are asked or the account is out of requests (docs/evaluating-models.md).
 *
 * @throws Refusal `lease_lost`; the signal's reason; faults of the ledger
 */
export function askModels(ports: AskPorts, options: AskOptions): Promise<Asked> {
  return new Asking(ports, options).run()
}

class Asking {
  readonly #ports: AskPorts
  readonly #options: AskOptions
  readonly #queue: CallQueue
  readonly #outcomes: Map<string, Map<LiteQuestion['kind'], Outcome>>
  readonly #open = new Map<string, Promise<void>>()
  readonly #suspicions: Suspicions
  readonly #probed = new Set<string>()
  readonly #evaluated = new Set<string>()
  readonly #limits: Asked['limits'] = { account: false, model: false, resetAt: null }
  #stop: Asked['stop'] = null
  #failure: { error: unknown } | null = null

  constructor(ports: AskPorts, options: AskOptions) {
    this.#ports = ports
    this.#options = options
    const { plan, before, recentAges, startsAMinute } = options
    const sentToday = new Map([...before].map(([model, known]) => [model, known.sentToday]))
    const { monotonic } = ports
    this.#queue = new CallQueue({ plan, sentToday, recentAges, startsAMinute, monotonic })
    this.#outcomes = new Map(
      [...before].map(([model, { answers }]) => [
        model,
        new Map([...answers].map(([kind, tasks]) => [kind, { tasks, answered: true }])),
      ]),
    )
    this.#suspicions = openSuspicions(ports.evaluations)
  }

  async run(): Promise<Asked> {
    try {
      for (;;) {
        if (this.#failure) throw this.#failure.error
        this.#options.signal.throwIfAborted()
        if (this.#stop) this.#queue.clear()
        const next = this.#queue.next([...this.#open.keys()])
        if (next.do === 'done') break
        if (next.do === 'start') await this.#start(next.index)
        else await this.#settleOr(next)
      }
    } finally {
      await Promise.allSettled(this.#open.values())
    }
    return {
      requests: this.#queue.sent,
      stop: this.#stop,
      learned: this.#queue.learned,
      limits: this.#limits,
      probed: this.#probed,
      evaluated: this.#evaluated,
    }
  }

  /** Waits until an open call ends, or until the time is there. */
  async #settleOr(next: Exclude<NextStart, { do: 'start' | 'done' }>): Promise<void> {
    const { monotonic, sleep, onProgress } = this.#ports
    if (next.do === 'settle') {
      await Promise.race(this.#open.values())
      return
    }
    const ms = Math.max(1, Math.ceil(next.until - monotonic()))
    if (ms > 2_000) onProgress(`waiting ${Math.round(ms / 1000)} s for the requests of a minute`)
    const waiting = new AbortController()
    const stop = (): void => waiting.abort(this.#options.signal.reason)
    this.#options.signal.addEventListener('abort', stop, { once: true })
    const slept = sleep(ms, waiting.signal).catch((error: unknown) => {
      if (this.#options.signal.aborted) throw error
    })
    try {
      await Promise.race([slept, ...this.#open.values()])
    } finally {
      this.#options.signal.removeEventListener('abort', stop)
      waiting.abort()
    }
  }

  async #start(index: number): Promise<void> {
    const { clock, evaluations, onProgress } = this.#ports
    const { run, token, day } = this.#options
    const sentAt = clock()
    if (dayOf(sentAt) !== day) {
      this.#stop = { reason: 'day_ended', resetAt: null, preview: '' }
      return
    }
    const call = this.#queue.take(index)
    if (!call) return
    const { model, kind } = call
    const guard = { token, sentBeforeAtMost: REQUESTS_A_MODEL - 1 }
    const attempt = await evaluations.countAttempt({ run, model, kind, sentAt }, guard)
    if (attempt === null) {
      throw new Refusal<LeaseRefusal>('lease_lost', 'another evaluation took over while this one worked')
    }
    const startedAt = this.#queue.start(call)
    onProgress(`request ${this.#queue.sent}, ${this.#queue.length} to come: ${model}`)
    const asking = this.#ask(call, attempt, startedAt)
      .catch((error: unknown) => {
        this.#failure ??= { error }
      })
      .finally(() => this.#open.delete(call.vendor))
    this.#open.set(call.vendor, asking)
  }

  async #ask(call: QueuedCall, attempt: number, startedAt: number): Promise<void> {
    const { router } = this.#ports
    const answer = await router.chat(this.#request(call), this.#options.signal)
    const verdict = classifyAnswer(answer)
    const { suite } = this.#options
    const { reply } = verdict
    const tasks = reply && (await (call.kind === 'tool' ? suite.gradeTool(reply) : suite.gradeText(reply)))
    const end = {
      settledAt: Math.min(answer.endedAt, startOfDay(addDays(this.#options.day, 1)) - 1),
      class: verdict.class,
      status: verdict.status,
      latencyMs: verdict.class === 'answered' ? answer.latencyMs : null,
      asAsked: reply && suite.answeredAsAsked(call.kind, reply),
      tasks,
    }
    await this.#ports.evaluations.settleAttempt(attempt, end)
    if (verdict.class === 'answered') this.#suspicions.answered(startedAt)
    if (tasks) await this.#note(call, { tasks, answered: true }, end.settledAt)
    else await this.#failed(call, verdict, { attempt, end, startedAt })
  }

  #request({ model, kind }: QueuedCall): ChatCall {
    const question = this.#options.suite.questions[kind]
    const parameters = this.#options.models.get(model)?.supportedParameters ?? []
    const thinks = parameters.includes('reasoning')
    return {
      model,
      question,
      maxTokens: thinks ? Math.max(question.maxTokens, THINKING_MAX_TOKENS) : question.maxTokens,
      temperature: parameters.includes('temperature'),
      lowEffort: thinks,
    }
  }

  async #failed(
    call: QueuedCall,
    verdict: Verdict,
    settled: Omit<Parameters<Suspicions['suspect']>[0], 'vendor' | 'suspicion' | 'now'>,
  ): Promise<void> {
    const { suspicion } = verdict
    const { vendor } = call
    const now = this.#ports.monotonic()
    const agreed = suspicion && (await this.#suspicions.suspect({ ...settled, vendor, suspicion, now }))
    const kind = agreed ? suspicion : verdict.class
    if (kind === 'account_daily' || kind === 'account_minute') {
      this.#limits.account = true
      this.#limits.resetAt = verdict.resetAt ?? this.#limits.resetAt
    }
    if (kind === 'model_rate_limit') this.#limits.model = true
    const { scope, retries } = ANSWER_CLASSES[kind]
    if (scope === 'account' && !retries) {
      this.#stop ??= { reason: kind, resetAt: verdict.resetAt, preview: verdict.preview }
      return
    }
    const waitMs = verdict.retryAt === null ? 0 : Math.max(0, verdict.retryAt - this.#ports.clock())
    if (scope === 'account') {
      const untold = kind === 'account_minute' ? WINDOW_MS : SHORT_PAUSE_MS
      this.#queue.pause(verdict.retryAt === null ? untold : waitMs + 1_000)
    }
    if (kind === 'account_minute') this.#queue.learn(verdict.limit, settled.startedAt)
    if (retries && this.#queue.retry(call, waitMs)) return
    if (scope === 'account') return
    await this.#giveUp(call, { ...verdict, class: kind }, settled.end.settledAt)
  }

  async #giveUp(call: QueuedCall, verdict: Verdict, at: Instant): Promise<void> {
    const { suite } = this.#options
    const why = failureDetails(verdict)
    await this.#note(call, { tasks: suite.unanswered(call.kind, why), answered: false }, at)
    // Nobody serves it: the other question would get the same answer.
    if (verdict.class !== 'model_gone') return
    for (const other of this.#queue.drop(call.model)) {
      await this.#note(other, { tasks: suite.unanswered(other.kind, why), answered: false }, at)
    }
  }

  /** Keeps what a question came to, and the model's evaluation once both did. */
  async #note({ model, kind }: QueuedCall, outcome: Outcome, evaluatedAt: Instant): Promise<void> {
    const { day } = this.#options
    this.#probed.add(model)
    const known = this.#outcomes.get(model) ?? new Map<LiteQuestion['kind'], Outcome>()
    this.#outcomes.set(model, known.set(kind, outcome))
    const both = [known.get('tool'), known.get('text')].filter((each) => each !== undefined)
    if (both.length < 2 || !both.some(({ answered }) => answered)) return
    const complete = both.every(({ answered }) => answered)
    const tasks = both.flatMap((each) => each.tasks)
    await this.#ports.evaluations.saveScore({ model, day, evaluatedAt, complete, tasks })
    if (complete) this.#evaluated.add(model)
  }
}

/** What a model that thinks may write, thoughts included. */
const THINKING_MAX_TOKENS = 3_000
