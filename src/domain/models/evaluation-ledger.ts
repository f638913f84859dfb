import type { LeaseKeeper } from '../lease.ts'
import type { Day, Instant } from '../time.ts'
import type { AnswerClass } from './answer-class.ts'
import type { LiteQuestion, TaskResult } from './lite/suite.ts'
import type { StoredRun } from './schema.ts'

/** How a run of `evaluate-models` ended. */
export type RunOutcome = 'complete' | 'partial' | 'unchanged' | 'failed'

/** Where a request to a model was written down. */
interface AttemptStart {
  run: number
  model: string
  kind: LiteQuestion['kind']
  sentAt: Instant
}

/** How a request ended. */
export interface AttemptEnd {
  settledAt: Instant
  /** `abandoned`: its run was killed before it ended. */
  class: AnswerClass | 'abandoned'
  /** HTTP status of the error, or null. */
  status: number | null
  latencyMs: number | null
  /** True when the reply had the form that was asked for; null without a reply. */
  asAsked: boolean | null
  /** The graded tasks of its question; null without a reply. */
  tasks: readonly TaskResult[] | null
}

/** A request that was written down, sent or not: all count. */
export interface ModelAttempt extends AttemptStart {
  id: number
  /** UTC day of `sentAt`. */
  day: Day
  /** Null while it is open. */
  end: AttemptEnd | null
}

/** The evaluation of a model on one UTC day. */
export interface DayScore {
  model: string
  day: Day
  evaluatedAt: Instant
  /** False when a question got no answer: its tasks then have no points. */
  complete: boolean
  tasks: readonly TaskResult[]
}

/** What the service said of a model's endpoints when it was asked for nothing else. */
export interface EndpointRecord {
  model: string
  checkedAt: Instant
  /** True when at least one endpoint takes requests. */
  usable: boolean
  /** Median of the fastest usable endpoint, in milliseconds; null where it is not told. */
  latencyMs: number | null
}

/** What must hold for a request to be written down, checked in the statement that writes it. */
export interface AttemptGuard {
  /** Of the lease. */
  token: string
  /** Requests the model may have been sent this UTC day before this one, but for those the account's limits kept from it. */
  sentBeforeAtMost: number
  /** Requests of the UTC day, the chat's too, that may have been written down before this one; null without a limit. */
  countedBeforeAtMost: number | null
}

/** The number of an attempt, or why none was written. */
export type CountedAttempt = { counted: number } | { refused: 'lease_lost' | 'model_spent' | 'day_spent' }

/** What a run leaves behind when it ends. */
export interface RunEnd {
  endedAt: Instant
  outcome: RunOutcome
  rankingVersion: string | null
  /** The rate that was learned by meeting the account's minute limit; null when it was not met. */
  startsAMinute: number | null
  reason: string | null
}

/**
 * Runs, attempts and scores of `evaluate-models`, and the lease that lets one run at a time. Everything is durable on
 * return. Kept for {@link EVALUATIONS_KEPT_DAYS} days.
 */
export interface EvaluationLedger extends LeaseKeeper {
  /** Ends every run that has no end as killed, and its open attempts as abandoned; returns how many runs. */
  sweep(now: Instant): Promise<number>
  /** Begins a run, and forgets what is older than is kept; returns the run's number. */
  beginRun(run: { day: Day; refreshMode: StoredRun['refreshMode']; startedAt: Instant }): Promise<number>
  endRun(run: number, end: RunEnd, rejections: readonly { id: string; reason: string }[]): Promise<void>
  /** Ends a run that cannot go on as failed, and its open attempts as abandoned; one that has ended stays as it is. */
  abandonRun(run: number, endedAt: Instant, reason: string): Promise<void>
  /** Writes a request down before it is sent. */
  countAttempt(attempt: AttemptStart, guard: AttemptGuard): Promise<CountedAttempt>
  /** Tells how an attempt ended; told again, the later counts. */
  settleAttempt(attempt: number, end: AttemptEnd): Promise<void>
  /** Keeps the evaluation of a day. A complete one stays when one comes that is not. */
  saveScore(score: DayScore): Promise<void>
  /** Every attempt sent at or after an instant, ascending. */
  attemptsSince(since: Instant): Promise<ModelAttempt[]>
  /** Every evaluation of a day or a later one, ascending by day, then model. */
  scoresSince(day: Day): Promise<DayScore[]>
  /** Keeps what was said of endpoints; what was said of the same model before is replaced. */
  saveEndpoints(records: readonly EndpointRecord[]): Promise<void>
  /** What was said at or after an instant, one record a model, in no order. */
  endpointsSince(since: Instant): Promise<EndpointRecord[]>
  /** When the chat sent requests to the same service at or after an instant, ascending: see {@link RouterAllowance}. */
  chatRequestsSince(since: Instant): Promise<Instant[]>
  /** The lowest rate a run since an instant learned; null when there is none. */
  learnedSince(since: Instant): Promise<number | null>
  /** Ranking versions given on a day. */
  versionsOf(day: Day): Promise<string[]>
  ping(): Promise<void>
}

/** Nothing looks further back than three days; the rest is for whoever asks what happened. */
export const EVALUATIONS_KEPT_DAYS = 90
