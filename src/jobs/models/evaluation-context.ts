import type { CatalogueModel } from '../../domain/models/catalogue.ts'
import type { ModelAttempt } from '../../domain/models/evaluation.ts'
import { FAILURES_MS, knownModel } from '../../domain/models/known.ts'
import type { KnownModel, LedgerRows } from '../../domain/models/known.ts'
import type { LiteQuestion, LiteSuite } from '../../domain/models/lite/suite.ts'
import {
  KEY_STALE_MS,
  WINDOW_MS,
  planCalls,
  requestsLeft,
  requestsLeftOfModel,
} from '../../domain/models/quota.ts'
import type { CallPlan, QuotaClaim } from '../../domain/models/quota.ts'
import { compareContenders, rankCandidates, withPerfectAnswers } from '../../domain/models/ranking.ts'
import { siftCatalogue } from '../../domain/models/recommend.ts'
import type { Sifted } from '../../domain/models/recommend.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import type { State, Objects } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { addDays, dayOf, startOfDay } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import type { HolderPorts } from '../publisher.ts'
import { SETTING_OF } from './evaluation-report.ts'
import type { AskOptions, AskPorts, Asked } from './evaluation-report.ts'

export interface EvaluatePorts extends AskPorts, HolderPorts {
  recommendations: Objects['recommendations']
  /** Makes the suite of a UTC day. @throws Refusal `lite_suite_refused` */
  makeSuite: (day: Day) => Promise<LiteSuite>
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
  { router, clock, onNote, recommendations }: EvaluatePorts,
  { mode: asked, signal }: EvaluateOptions,
): Promise<Situation> {
  const startedAt = clock()
  const notes: string[] = []
  const mode = router.hasKey ? asked : 'metadataOnly'
  if (mode !== asked) {
    onNote('there is no OPENROUTER_API_KEY: only metadata is refreshed')
    notes.push('No key of the routing service is configured, so only metadata was refreshed.')
  }
  const { models, badRows } = await router.catalogue(signal)
  if (badRows > 0) notes.push(`${badRows} rows of the catalogue could not be read.`)
  const previous = await previousRun(recommendations, notes)
  return { mode, startedAt, day: dayOf(startedAt), sifted: siftCatalogue(models, startedAt), previous, notes }
}

/** The recommendation before this one; one that is damaged is replaced, and said to be. */
async function previousRun(store: Objects['recommendations'], notes: string[]): Promise<StoredRun | null> {
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
  evaluations: Pick<State['evaluations'], 'attemptsSince' | 'scoresSince' | 'endpointsSince'>,
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
  if ('failed' in answer && SETTING_OF[answer.failed.class] !== undefined) {
    const { class: reason, preview } = answer.failed
    return { ...nothing, stop: { reason, resetAt: null, preview } }
  }
  const key = 'facts' in answer ? answer.facts : null
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

const BOTH: readonly LiteQuestion['kind'][] = ['tool', 'text']

/**
 * What each candidate would have to be asked, and whether it could become the primary by it.
 *
 * @param mode `forceEval` asks again what was answered today
 */
function claimsOf(
  eligible: readonly CatalogueModel[],
  known: ReadonlyMap<string, KnownModel>,
  mode: StoredRun['refreshMode'],
  now: Instant,
): QuotaClaim[] {
  const candidates = eligible.flatMap((model) => {
    const each = known.get(model.id)
    return each ? [{ model, ...each }] : []
  })
  const ranked = rankCandidates(candidates, new Map(), now)
  const leader = ranked.find(({ gone }) => !gone)?.model
  return ranked.map(({ model, evaluation }): QuotaClaim => {
    const each = known.get(model.id)
    const answered = each?.answers ?? {}
    const again = mode === 'forceEval'
    const best = withPerfectAnswers({ model, evaluation: again ? null : evaluation })
    return {
      model: model.id,
      open: again ? BOTH : BOTH.filter((kind) => answered[kind] === undefined),
      left: requestsLeftOfModel(mode, each?.sentToday ?? 0),
      canWin: leader !== undefined && compareContenders(best, leader) <= 0,
      lastEvaluatedAt: each?.lastEvaluatedAt ?? null,
    }
  })
}
