import type { AnswerClass } from '../domain/models/answer-class.ts'
import type { CatalogueModel } from '../domain/models/catalogue.ts'
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
  /** What each was sent today, and what it answered already. */
  before: ReadonlyMap<
    string,
    { sentToday: number; answers: ReadonlyMap<LiteQuestion['kind'], readonly TaskResult[]> }
  >
  startsAMinute: number
  /** Ages in milliseconds of the requests written down within the last {@link WINDOW_MS}. */
  recentAges: readonly number[]
  signal: AbortSignal
}

/** Why no more was asked, although more was planned. */
export type StopReason = AnswerClass | 'day_ended'

export interface Asked {
  requests: number
  stop: { reason: StopReason; resetAt: Instant | null; preview: string } | null
  /** The account's minute limit, if it was met: what the rate was lowered to. */
  learned: number | null
  /** Whose limits were met. */
  limits: { account: boolean; model: boolean; resetAt: Instant | null }
  /** Models that answered, or failed to by themselves, in this run. */
  probed: ReadonlySet<string>
  /** Models whose evaluation is complete since this run. */
  evaluated: ReadonlySet<string>
}
