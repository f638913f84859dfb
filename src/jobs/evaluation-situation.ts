import { ANSWER_CLASSES } from '../domain/models/answer-class.ts'
import { classifyAnswer } from '../domain/models/classify-answer.ts'
import type { ModelAttempt } from '../domain/models/evaluation-ledger.ts'
import { FAILURES_MS, knownModel } from '../domain/models/known.ts'
import type { KnownModel, LedgerRows } from '../domain/models/known.ts'
import type { LiteSuite } from '../domain/models/lite/suite.ts'
import { WINDOW_MS } from '../domain/models/pacing.ts'
import {
  KEY_STALE_MS,
  parseKeyRequests,
  planCalls,
  requestsLeft,
  requestsLeftOfModel,
} from '../domain/models/quota.ts'
import type { CallPlan } from '../domain/models/quota.ts'
import { siftCatalogue } from '../domain/models/recommend.ts'
import type { Sifted } from '../domain/models/recommend.ts'
import type { StoredRun } from '../domain/models/schema.ts'
import { proveRun } from '../domain/models/stored-run.ts'
import type { EvaluationLedger, RecommendationStore } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { addDays, dayOf, startOfDay } from '../domain/time.ts'
import type { Day, Instant } from '../domain/time.ts'
import type { Asked, AskOptions, AskPorts } from './asking.ts'
import { claimsOf } from './evaluation-claims.ts'
import { SETTING_OF } from './evaluation-report.ts'
import type { HolderPorts } from './lease.ts'
import { readCatalogue } from './read-catalogue.ts'

export interface EvaluatePorts extends AskPorts, HolderPorts {
  recommendations: RecommendationStore
  /** Makes the suite of a UTC day. @throws Refusal `lite_suite_refused` */
  makeSuite: (day: Day) => Promise<LiteSuite>
  /** API base of the routing service as it is asked, for errors. */
  serviceUrl: string
  /** API base of the routing service as it is published: readers send their keys there. */
  baseUrl: string
  /** Something an operator should know. */
  onNote: (message: string) => void
}

export interface EvaluateOptions {
  mode: StoredRun['refreshMode']
  dryRun: boolean
  signal: AbortSignal
}

/** What a run knows before it asks any model. */
export interface Situation {
  /** The mode that was asked for, or `metadataOnly` without a key. */
  mode: StoredRun['refreshMode']
  startedAt: Instant
  day: Day
  sifted: Sifted
  previous: StoredRun | null
  /** For whoever reads the recommendation. */
  notes: readonly string[]
}

/** What the ledger knows. */
export interface Known {
  /** Of every candidate. */
  models: ReadonlyMap<string, KnownModel>
  /** Of the last three days. */
  attempts: readonly ModelAttempt[]
  /** When the chat sent requests with the same key since midnight UTC. */
  chatRequests: readonly Instant[]
}

/** What is to be asked. */
export interface Planned {
  plan: CallPlan
  stop: Asked['stop']
  /** Requests of the day, the chat's too, that may be written down before another one. */
  countedBeforeAtMost: number
}

/** @throws Refusal `source_unavailable` when there is no catalogue; those of the object store */
export async function readSituation(
  { router, serviceUrl, clock, onNote, recommendations }: EvaluatePorts,
  { mode: asked, signal }: EvaluateOptions,
): Promise<Situation> {
  const startedAt = clock()
  const notes: string[] = []
  const mode = router.hasKey ? asked : 'metadataOnly'
  if (mode !== asked) {
    onNote('there is no OPENROUTER_API_KEY: only metadata is refreshed')
    notes.push('No key of the routing service is configured, so only metadata was refreshed.')
  }
  const { models, badRows } = await readCatalogue(router, serviceUrl, signal)
  if (badRows > 0) notes.push(`${badRows} rows of the catalogue could not be read.`)
  const previous = await previousRun(recommendations, notes)
  return { mode, startedAt, day: dayOf(startedAt), sifted: siftCatalogue(models, startedAt), previous, notes }
}

/** The recommendation before this one; one that is damaged is replaced, and said to be. */
async function previousRun(store: RecommendationStore, notes: string[]): Promise<StoredRun | null> {
  const bytes = await store.current()
  if (bytes === null) return null
  try {
    return proveRun(bytes)
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'storage_damaged') throw error
    notes.push('The recommendation before this one was damaged and is replaced.')
    return null
  }
}

/** What attempts and scores tell of every candidate at an instant. */
export async function readKnown(
  { evaluations }: Pick<EvaluatePorts, 'evaluations'>,
  { sifted, day }: Pick<Situation, 'sifted' | 'day'>,
  now: Instant,
): Promise<Known> {
  const rows = await readLedgerRows(evaluations, now)
  const models = sifted.eligible.map(({ id }) => [id, knownModel(id, rows, now)] as const)
  const chatRequests = await evaluations.chatRequestsSince(startOfDay(day))
  return { models: new Map(models), attempts: rows.attempts, chatRequests }
}

/** What {@link knownModel} goes by. */
export async function readLedgerRows(
  evaluations: Pick<EvaluationLedger, 'attemptsSince' | 'scoresSince' | 'endpointsSince'>,
  now: Instant,
): Promise<LedgerRows> {
  return {
    attempts: await evaluations.attemptsSince(now - FAILURES_MS),
    scores: await evaluations.scoresSince(addDays(dayOf(now), -3)),
    endpoints: await evaluations.endpointsSince(now - FAILURES_MS),
  }
}

/** What to ask in which order; nothing in the modes that ask no model, nor with a key that is not taken. */
export async function planQuestions(
  { router }: Pick<EvaluatePorts, 'router'>,
  { mode, sifted, startedAt, day }: Situation,
  { models, attempts, chatRequests }: Known,
  signal: AbortSignal,
): Promise<Planned> {
  const nothing: Planned = {
    plan: { calls: [], postponed: [], spent: [], budget: 0 },
    stop: null,
    countedBeforeAtMost: -1,
  }
  if (mode !== 'fullEval' && mode !== 'forceEval') return nothing
  const answer = await router.key(signal)
  const verdict = classifyAnswer(answer)
  const refused = answer.status !== 200 && ANSWER_CLASSES[verdict.class].scope === 'account'
  if (refused && SETTING_OF[verdict.class] !== undefined) {
    return { ...nothing, stop: { reason: verdict.class, resetAt: null, preview: verdict.preview } }
  }
  const key = answer.status === 200 ? parseKeyRequests(answer.body) : null
  const ours = attempts.filter((attempt) => attempt.day === day)
  const today = [...ours.map(({ sentAt }) => sentAt), ...chatRequests]
  const lately = today.filter((sentAt) => startedAt - sentAt <= KEY_STALE_MS)
  // The service said so itself, and nothing newer tells otherwise: it counts what was sent from elsewhere too.
  const spent = key === null && ours.some(({ end }) => end?.class === 'account_daily')
  const left = spent ? 0 : requestsLeft(key, today.length, lately.length)
  const plan = planCalls(claimsOf(sifted.eligible, models, mode, startedAt), left)
  return { plan, stop: null, countedBeforeAtMost: today.length + left - 1 }
}

/** The part of what `askModels` needs that a plan and the ledger tell. */
export function askOptionsOf(
  { mode, sifted, startedAt, day }: Situation,
  { models, attempts }: Known,
  { plan, countedBeforeAtMost }: Planned,
): Pick<AskOptions, 'day' | 'plan' | 'models' | 'before' | 'countedBeforeAtMost' | 'recentAges'> {
  const asks = new Set(plan.calls.map(({ model, kind }) => `${kind} ${model}`))
  const before = [...models].map(([model, { sentToday, answers }]) => {
    const kept = Object.values(answers).filter(({ kind }) => !asks.has(`${kind} ${model}`))
    return [
      model,
      {
        sentToday,
        left: requestsLeftOfModel(mode, sentToday),
        answers: new Map(kept.map(({ kind, end }) => [kind, end.tasks ?? []])),
      },
    ] as const
  })
  const ages = attempts.map(({ sentAt }) => Math.max(0, startedAt - sentAt))
  return {
    day,
    plan,
    models: new Map(sifted.eligible.map((model) => [model.id, model])),
    before: new Map(before),
    countedBeforeAtMost,
    recentAges: ages.filter((ageMs) => ageMs < WINDOW_MS),
  }
}
