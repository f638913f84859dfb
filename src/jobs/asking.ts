import type { AnswerClass } from '../domain/models/answer-class.ts'
import type { CatalogueModel } from '../domain/models/catalogue.ts'
import type { LiteEvaluation } from '../domain/models/evaluation.ts'
import type { LiteQuestion, LiteSuite, TaskResult } from '../domain/models/lite/suite.ts'
import type { CallPlan } from '../domain/models/quota.ts'
import type { Clock, EvaluationLedger, ModelRouter } from '../domain/ports.ts'
import type { Day, Instant } from '../domain/time.ts'

export interface AskPorts {
  router: ModelRouter
  evaluations: EvaluationLedger
  clock: Clock
  /** Milliseconds of a clock that only goes forward. */
  monotonic: () => number
  /** Rejects with the signal's reason. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  onProgress: (message: string) => void
}

export interface AskOptions {
  run: number
  token: string
  day: Day
  plan: CallPlan
  suite: LiteSuite
  /** Of every model of the plan. */
  models: ReadonlyMap<string, CatalogueModel>
  /** What each was sent today, what it may still be sent, and what it answered already. */
  before: ReadonlyMap<
    string,
    { sentToday: number; left: number; answers: ReadonlyMap<LiteQuestion['kind'], readonly TaskResult[]> }
  >
  /** Requests of the day, the chat's too, that may have been written down before another one. */
  countedBeforeAtMost: number
  startsAMinute: number
  /** Ages in milliseconds of the evaluation's requests within the last {@link WINDOW_MS}. */
  recentAges: readonly number[]
  signal: AbortSignal
}

/** Why no more was asked, although more was planned. */
export type StopReason = AnswerClass | 'day_ended'

/** Of a run that asked no model. */
export const NOTHING_ASKED: Asked = {
  requests: 0,
  stop: null,
  learned: null,
  limits: { account: false, model: false, resetAt: null },
  unasked: new Set(),
  probed: new Set(),
  evaluated: new Set(),
  outcomes: new Map(),
}

export interface Asked {
  requests: number
  stop: { reason: StopReason; resetAt: Instant | null; preview: string } | null
  /** The account's minute limit, if it was met: what the rate was lowered to. */
  learned: number | null
  /** Whose limits were met. */
  limits: { account: boolean; model: boolean; resetAt: Instant | null }
  /** Models with a planned question that was not asked, or that the account's limits kept from them. */
  unasked: ReadonlySet<string>
  /** Models that answered, or failed to by themselves, in this run. */
  probed: ReadonlySet<string>
  /** Models whose evaluation is complete since this run. */
  evaluated: ReadonlySet<string>
  /** What both questions of a model came to, by model; answers from before the run are part of it. */
  outcomes: ReadonlyMap<string, LiteEvaluation>
}
