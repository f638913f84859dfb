import type { CatalogueModel } from '../../domain/models/catalogue.ts'
import { ANSWER_CLASSES, failureDetails, isComplete } from '../../domain/models/evaluation.ts'
import type {
  AnswerClass,
  AttemptEnd,
  LiteEvaluation,
  Suspicion,
  Verdict,
  ChatCall,
} from '../../domain/models/evaluation.ts'
import { isCutShort } from '../../domain/models/lite/answer.ts'
import type { LiteKind, LiteQuestion, LiteSuite, TaskResult } from '../../domain/models/lite/suite.ts'
import { WINDOW_MS } from '../../domain/models/quota.ts'
import type { NextStart } from '../../domain/models/quota.ts'
import type { State } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { addDays, dayOf, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { LeaseRefusal } from '../publisher.ts'
import { CallQueue, SHORT_PAUSE_MS } from './call-queue.ts'
import type { QueuedCall } from './call-queue.ts'
import type { AskOptions, AskPorts, Asked } from './evaluation-report.ts'

/** A question that was answered today already, or could not be. */
type Outcome = readonly TaskResult[]

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
  /** By vendor. */
  readonly #open = new Map<string, { call: QueuedCall; asking: Promise<void> }>()
  readonly #suspicions: Suspicions
  readonly #probed = new Set<string>()
  readonly #evaluated = new Set<string>()
  readonly #evaluations = new Map<string, LiteEvaluation>()
  readonly #limits: Asked['limits'] = { account: false, model: false, resetAt: null }
  #stop: Asked['stop'] = null
  #failure: { error: unknown } | null = null

  constructor(ports: AskPorts, options: AskOptions) {
    this.#ports = ports
    this.#options = options
    const { plan, before, recentAges, startsAMinute } = options
    const left = new Map([...before].map(([model, known]) => [model, known.left]))
    const { monotonic } = ports
    this.#queue = new CallQueue({ plan, left, recentAges, startsAMinute, monotonic })
    this.#outcomes = new Map([...before].map(([model, { answers }]) => [model, new Map(answers)]))
    this.#suspicions = openSuspicions(ports.evaluations)
  }

  async run(): Promise<Asked> {
    try {
      for (;;) {
        await this.#hearOfChat()
        if (this.#failure) throw this.#failure.error
        this.#options.signal.throwIfAborted()
        if (this.#stop) this.#queue.clear()
        const next = this.#queue.next([...this.#open.keys()], this.#suspicions.standing())
        if (next.do === 'done') break
        if (next.do === 'start') await this.#start(next.index)
        else await this.#settleOr(next)
      }
    } finally {
      await Promise.allSettled(this.#asking())
    }
    return {
      requests: this.#queue.sent,
      stop: this.#stop,
      learned: this.#queue.learned,
      limits: this.#limits,
      unasked: this.#unasked(),
      probed: this.#probed,
      evaluated: this.#evaluated,
      outcomes: this.#evaluations,
    }
  }

  #asking(): Promise<void>[] {
    return [...this.#open.values()].map(({ asking }) => asking)
  }

  #unasked(): Set<string> {
    const { calls } = this.#options.plan
    const without = calls.filter(({ model, kind }) => !this.#outcomes.get(model)?.has(kind))
    return new Set(without.map(({ model }) => model))
  }

  /** The chat sends with the same key while a run goes on: its requests fill the same window. */
  async #hearOfChat(): Promise<void> {
    if (this.#queue.length === 0) return
    const now = this.#ports.clock()
    const sentAt = await this.#ports.evaluations.chatRequestsSince(now - WINDOW_MS)
    this.#queue.alsoSent(sentAt.map((at) => Math.max(0, now - at)))
  }

  /** Waits until an open call ends, or until the time is there. */
  async #settleOr(next: Exclude<NextStart, { do: 'start' | 'done' }>): Promise<void> {
    const { monotonic, sleep, onProgress } = this.#ports
    if (next.do === 'settle') {
      await Promise.race(this.#asking())
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
      await Promise.race([slept, ...this.#asking()])
    } finally {
      this.#options.signal.removeEventListener('abort', stop)
      waiting.abort()
    }
  }

  async #start(index: number): Promise<void> {
    const { clock, evaluations, onProgress } = this.#ports
    const { run, token, day, countedBeforeAtMost, before } = this.#options
    const sentAt = clock()
    if (dayOf(sentAt) !== day) {
      this.#stop = { reason: 'day_ended', resetAt: null, preview: '' }
      return
    }
    const call = this.#queue.take(index)
    if (!call) return
    const { model, kind } = call
    const { sentToday, left } = before.get(model) ?? { sentToday: 0, left: 0 }
    const guard = { token, sentBeforeAtMost: sentToday + left - 1, countedBeforeAtMost }
    const written = await evaluations.countAttempt({ run, model, kind, sentAt }, guard)
    if ('refused' in written) {
      if (written.refused !== 'day_spent') {
        throw new Refusal<LeaseRefusal>('lease_lost', 'another evaluation took over while this one worked')
      }
      this.#stop ??= { reason: 'account_daily', resetAt: startOfDay(addDays(day, 1)), preview: '' }
      return
    }
    const startedAt = this.#queue.start(call)
    onProgress(`request ${this.#queue.sent}, ${this.#queue.length} to come: ${model}`)
    const asking = this.#ask(call, written.counted, startedAt)
      .catch((error: unknown) => {
        this.#failure ??= { error }
      })
      .finally(() => this.#open.delete(call.vendor))
    this.#open.set(call.vendor, { call, asking })
  }

  async #ask(call: QueuedCall, attempt: number, startedAt: number): Promise<void> {
    const { router } = this.#ports
    const { suite, models, signal } = this.#options
    const outcome = await router.chat(chatCallOf(call, suite, models.get(call.model)), signal)
    const verdict = judgeReply(outcome, call.kind)
    const { reply } = verdict
    const tasks = reply && (await (call.kind === 'tool' ? suite.gradeTool(reply) : suite.gradeText(reply)))
    const end = {
      settledAt: Math.min(outcome.endedAt, startOfDay(addDays(this.#options.day, 1)) - 1),
      class: verdict.class,
      status: verdict.status,
      latencyMs: verdict.class === 'answered' ? outcome.latencyMs : null,
      asAsked: reply && suite.answeredAsAsked(call.kind, reply),
      tasks,
    }
    await this.#ports.evaluations.settleAttempt(attempt, end)
    const { scope } = ANSWER_CLASSES[verdict.class]
    if (verdict.class === 'answered') this.#suspicions.answered(startedAt)
    if (scope === 'none' || scope === 'model') this.#queue.passed(startedAt)
    if (tasks) await this.#note(call, tasks, end.settledAt)
    else await this.#failed(call, verdict, { attempt, end, startedAt })
  }

  async #failed(
    call: QueuedCall,
    verdict: Verdict,
    settled: Pick<Suspect, 'attempt' | 'end' | 'startedAt'>,
  ): Promise<void> {
    const { suspicion } = verdict
    const now = this.#ports.monotonic()
    const mistaken = suspicion && (await this.#suspicions.suspect({ ...settled, call, suspicion, now }))
    const kind = mistaken ? suspicion : verdict.class
    this.#noteLimit(kind, verdict)
    const { scope, retries } = ANSWER_CLASSES[kind]
    if (scope === 'account') {
      if (retries) this.#waitForAccount(kind, verdict, call, settled.startedAt)
      else this.#stop ??= { reason: kind, resetAt: verdict.resetAt, preview: verdict.preview }
      for (const other of mistaken ?? []) this.#forgive(other.call)
      return
    }
    if (retries && this.#queue.retry(call, this.#waitMs(verdict) ?? 0)) return
    await this.#giveUp(call, { ...verdict, class: kind }, settled.end.settledAt)
  }

  #noteLimit(kind: AnswerClass, { resetAt }: Verdict): void {
    if (kind === 'account_daily' || kind === 'account_minute') {
      this.#limits.account = true
      this.#limits.resetAt = resetAt ?? this.#limits.resetAt
    }
    if (kind === 'model_rate_limit') this.#limits.model = true
  }

  /** Milliseconds until the answer allows another question; null when it does not tell. */
  #waitMs({ retryAt }: Verdict): number | null {
    return retryAt === null ? null : Math.max(0, retryAt - this.#ports.clock())
  }

  /** A limit that ends soon is waited for, and costs no model anything; one that lasts ends the run. */
  #waitForAccount(kind: AnswerClass, verdict: Verdict, call: QueuedCall, startedAt: number): void {
    const untoldMs = kind === 'account_minute' ? WINDOW_MS : SHORT_PAUSE_MS
    if (kind === 'account_minute') this.#queue.learn(verdict.limit, startedAt)
    this.#queue.putBack(call)
    if (this.#queue.waitForAccount(startedAt, this.#waitMs(verdict), untoldMs)) return
    this.#stop ??= { reason: kind, resetAt: verdict.resetAt, preview: verdict.preview }
  }

  /** Takes back what an answer cost a model that was the account's, as others with the same answer showed. */
  #forgive(call: QueuedCall): void {
    const { model, kind, vendor } = call
    if (this.#open.get(vendor)?.call.model === model) return
    this.#outcomes.get(model)?.delete(kind)
    this.#queue.putBackLate(call)
  }

  async #giveUp(call: QueuedCall, verdict: Verdict, at: Instant): Promise<void> {
    const { suite } = this.#options
    const why = failureDetails(verdict)
    await this.#note(call, suite.unanswered(call.kind, why), at)
    // Nobody serves it: the other question would get the same answer.
    if (verdict.class !== 'model_gone') return
    for (const other of this.#queue.drop(call.model)) {
      await this.#note(other, suite.unanswered(other.kind, why), at)
    }
  }

  /** Keeps what a question came to, and the model's evaluation once both did. */
  async #note({ model, kind }: QueuedCall, outcome: Outcome, evaluatedAt: Instant): Promise<void> {
    const { day } = this.#options
    this.#probed.add(model)
    const known = this.#outcomes.get(model) ?? new Map<LiteQuestion['kind'], Outcome>()
    this.#outcomes.set(model, known.set(kind, outcome))
    const both = [known.get('tool'), known.get('text')].filter((each) => each !== undefined)
    if (both.length < 2) return
    const tasks = both.flat()
    const complete = isComplete({ tasks })
    this.#evaluations.set(model, { updatedAt: evaluatedAt, tasks })
    await this.#ports.evaluations.saveScore({ model, day, evaluatedAt, complete, tasks })
    if (complete) this.#evaluated.add(model)
  }
}

/** An answer nobody can attribute, as it was settled. */
interface Suspect {
  attempt: number
  end: AttemptEnd
  call: QueuedCall
  suspicion: Suspicion
  /** When its call started and when it was settled, by the clock that only goes forward. */
  startedAt: number
  now: number
}

/** Watches for answers that models of different vendors get with no reply in between. */
interface Suspicions {
  /**
   * Notes one. Once models of two vendors agree, theirs are settled anew as what was suspected: not the models' own.
   *
   * @returns the others that are settled anew when they agree, else null
   */
  suspect(suspect: Suspect): Promise<Suspect[] | null>
  /** True while one stands that no reply has refuted. */
  standing(): boolean
  /** A reply to a call refutes what was suspected before that call started. */
  answered(startedAt: number): void
}

function openSuspicions(evaluations: Pick<State['evaluations'], 'settleAttempt'>): Suspicions {
  let standing: Suspect[] = []
  const settledAnew = new Set<number>()
  return {
    async suspect(suspect) {
      standing.push(suspect)
      const alike = standing.filter(({ suspicion }) => suspicion === suspect.suspicion)
      if (new Set(alike.map(({ call }) => call.vendor)).size < 2) return null
      const mistaken = alike.filter((each) => !settledAnew.has(each.attempt))
      for (const { attempt } of mistaken) settledAnew.add(attempt)
      for (const { attempt, end } of mistaken) {
        await evaluations.settleAttempt(attempt, { ...end, class: suspect.suspicion })
      }
      return mistaken.filter((each) => each !== suspect)
    },
    standing: () => standing.length > 0,
    answered(startedAt) {
      standing = standing.filter(({ now }) => now > startedAt)
    },
  }
}

/** A question as the service is sent it, fitted to what the catalogue says of its model. */
function chatCallOf(
  { model, kind }: { model: string; kind: LiteKind },
  suite: LiteSuite,
  listed: CatalogueModel | undefined,
): ChatCall {
  const question = suite.questions[kind]
  const parameters = listed?.supportedParameters ?? []
  const thinks = parameters.includes('reasoning')
  return {
    model,
    question,
    maxTokens: Math.min(question.maxTokens, listed?.maxCompletionTokens ?? Infinity),
    temperature: parameters.includes('temperature'),
    lowEffort: thinks,
  }
}

/** A reply that was cut before it came to what was asked for is none. */
function judgeReply(verdict: Verdict, kind: LiteKind): Verdict {
  if (verdict.reply === null || !isCutShort(kind, verdict.reply)) return verdict
  return { ...verdict, class: 'cut_answer', because: 'cut at its limit of tokens', reply: null }
}
