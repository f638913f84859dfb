import { ANSWER_CLASSES, classifyAnswer } from '../domain/models/answer-class.ts'
import type { CatalogueModel } from '../domain/models/catalogue.ts'
import type { DayScore, ModelAttempt, RunOutcome } from '../domain/models/evaluation-ledger.ts'
import { FAILURES_MS, knownModel } from '../domain/models/known.ts'
import type { KnownModel } from '../domain/models/known.ts'
import type { LiteSuite } from '../domain/models/lite/suite.ts'
import { STARTS_A_MINUTE, WINDOW_MS } from '../domain/models/pacing.ts'
import { KEY_STALE_MS, parseKeyRequests, planCalls, requestsLeft } from '../domain/models/quota.ts'
import type { CallPlan } from '../domain/models/quota.ts'
import type { Candidate } from '../domain/models/ranking.ts'
import { nextRankingVersion, recommend, siftCatalogue } from '../domain/models/recommend.ts'
import type { Sifted } from '../domain/models/recommend.ts'
import type { StoredRun } from '../domain/models/schema.ts'
import { proveRun, sealRun } from '../domain/models/stored-run.ts'
import type { RecommendationStore } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { addDays, DAY_MS, dayOf } from '../domain/time.ts'
import type { Day, Instant } from '../domain/time.ts'
import { askModels } from './ask-models.ts'
import type { Asked, AskPorts } from './ask-models.ts'
import { claimsOf } from './evaluation-claims.ts'
import { rateLimitOf, SETTING_OF, stopSentence } from './evaluation-report.ts'
import type { EvaluationReport } from './evaluation-report.ts'
import { withLease } from './lease.ts'
import type { HolderPorts } from './lease.ts'
import { probeEndpoints } from './probe-endpoints.ts'
import { readCatalogue } from './read-catalogue.ts'

export interface EvaluatePorts extends AskPorts, HolderPorts {
  recommendations: RecommendationStore
  /** Makes the suite of a UTC day. @throws Refusal `lite_suite_refused` */
  makeSuite: (day: Day) => Promise<LiteSuite>
  /** API base of the routing service, as it is published. */
  baseUrl: string
  /** Something an operator should know. */
  onNote: (message: string) => void
}

export interface EvaluateOptions {
  mode: StoredRun['refreshMode']
  dryRun: boolean
  signal: AbortSignal
}

export interface EvaluateResult {
  report: EvaluationReport
  /** True when a setting of the account or of this program mends the failure. */
  misconfigured: boolean
  /** True when the service is to blame for a failure. */
  unavailable: boolean
}

/** What a run knows before it asks anybody. */
interface Situation {
  mode: StoredRun['refreshMode']
  startedAt: Instant
  day: Day
  sifted: Sifted
  previous: StoredRun | null
  notes: string[]
}

const NOTHING_ASKED: Asked = {
  requests: 0,
  stop: null,
  learned: null,
  limits: { account: false, model: false, resetAt: null },
  probed: new Set(),
  evaluated: new Set(),
}

/**
 * Finds out which free model to recommend, within the quota of a free account, and stores the recommendation
 * (docs/evaluating-models.md). Whatever ends a run, every request it sent is written down.
 *
 * @throws Refusal `source_unavailable` when there is no catalogue, `lease_held`, `lease_lost`, those of the stores
 */
export async function evaluateModels(
  ports: EvaluatePorts,
  options: EvaluateOptions,
): Promise<EvaluateResult> {
  if (options.dryRun) return new Evaluation(ports, options).rehearse()
  return withLease(ports.evaluations, 'evaluating models', ports, async (token) => {
    const killed = await ports.evaluations.sweep(ports.clock())
    if (killed > 0) ports.onNote('the last evaluation was cut short; what it sent is counted')
    return new Evaluation(ports, options).run(token)
  })
}

class Evaluation {
  readonly #ports: EvaluatePorts
  readonly #options: EvaluateOptions
  readonly #began: number

  constructor(ports: EvaluatePorts, options: EvaluateOptions) {
    this.#ports = ports
    this.#options = options
    this.#began = ports.monotonic()
  }

  /** Plans and ranks with what is known; sends no chat request and writes nothing. */
  async rehearse(): Promise<EvaluateResult> {
    const situation = await this.#look()
    if (situation.sifted.eligible.length === 0) return this.#withoutCandidates(situation)
    const known = await this.#known(situation)
    const { plan, stop } = await this.#plan(situation, known)
    const run = this.#rank(situation, known, { ...NOTHING_ASKED, stop }, new Map(), `${situation.day}.v1`)
    const report = this.#report(
      situation,
      'unchanged',
      { ...NOTHING_ASKED, stop },
      {
        ranked: run.models.length,
        primary: run.models[0]?.id ?? null,
        rankingVersion: null,
        reason: stop ? stopSentence(stop) : null,
      },
    )
    return result({ ...report, requests: plan.calls.length })
  }

  async run(token: string): Promise<EvaluateResult> {
    const { evaluations } = this.#ports
    const situation = await this.#look()
    const { mode, day, startedAt, sifted } = situation
    const run = await evaluations.beginRun({ day, refreshMode: mode, startedAt })
    const found =
      sifted.eligible.length === 0
        ? this.#withoutCandidates(situation)
        : await this.#evaluate(situation, run, token)
    const { outcome, rankingVersion, reason } = found.report
    const end = {
      endedAt: this.#ports.clock(),
      outcome,
      rankingVersion,
      startsAMinute: found.learned,
      reason,
    }
    await evaluations.endRun(run, end, sifted.rejections)
    return found
  }

  async #look(): Promise<Situation> {
    const { router, baseUrl, clock, onNote, recommendations } = this.#ports
    const { signal } = this.#options
    const startedAt = clock()
    const notes: string[] = []
    const mode = router.hasKey ? this.#options.mode : 'metadataOnly'
    if (mode !== this.#options.mode) {
      onNote('there is no OPENROUTER_API_KEY: only metadata is refreshed')
      notes.push('No key of the routing service is configured, so only metadata was refreshed.')
    }
    const catalogue = await readCatalogue(router, baseUrl, signal)
    if (catalogue.badRows > 0) notes.push(`${catalogue.badRows} rows of the catalogue could not be read.`)
    const previous = await previousRun(recommendations, notes)
    const sifted = siftCatalogue(catalogue.models, startedAt)
    return { mode, startedAt, day: dayOf(startedAt), sifted, previous, notes }
  }

  async #known({ sifted, startedAt, day }: Situation): Promise<Known> {
    const { evaluations } = this.#ports
    const attempts = await evaluations.attemptsSince(startedAt - FAILURES_MS)
    const scores = await evaluations.scoresSince(addDays(day, -3))
    return knownOf(sifted.eligible, attempts, scores, startedAt)
  }

  /** What to ask in which order; nothing in the modes that ask nobody. */
  async #plan(
    { mode, sifted, startedAt, day }: Situation,
    { models, attempts }: Known,
  ): Promise<{ plan: CallPlan; stop: Asked['stop'] }> {
    const nothing = { calls: [], postponed: [], budget: 0 }
    if (mode !== 'fullEval' && mode !== 'forceEval') return { plan: nothing, stop: null }
    const answer = await this.#ports.router.key(this.#options.signal)
    const verdict = classifyAnswer(answer)
    const refused = answer.status !== 200 && ANSWER_CLASSES[verdict.class].scope === 'account'
    if (refused && SETTING_OF[verdict.class] !== undefined) {
      return { plan: nothing, stop: { reason: verdict.class, resetAt: null, preview: verdict.preview } }
    }
    const key = answer.status === 200 ? parseKeyRequests(answer.body) : null
    const today = attempts.filter((attempt) => attempt.day === day)
    const lately = today.filter(({ sentAt }) => startedAt - sentAt <= KEY_STALE_MS)
    const left = requestsLeft(key, today.length, lately.length)
    return { plan: planCalls(claimsOf(sifted.eligible, models, mode, startedAt), left), stop: null }
  }

  async #evaluate(situation: Situation, run: number, token: string): Promise<Ended> {
    const { mode, sifted, day } = situation
    const known = await this.#known(situation)
    const { plan, stop } = await this.#plan(situation, known)
    const asked = stop ? { ...NOTHING_ASKED, stop } : await this.#ask(situation, known, plan, run, token)
    const health = new Map<string, Candidate['health']>()
    if (mode === 'healthOnly') {
      const before = new Map([...known.models].map(([id, each]) => [id, each.health]))
      const probed = await probeEndpoints(this.#ports.router, sifted.eligible, before, this.#options.signal)
      for (const [id, each] of probed.health) health.set(id, each)
      asked.stop = probed.stop
      asked.probed = new Set(health.keys())
    }
    const ended = asked.stop
    if (
      ended &&
      asked.probed.size === 0 &&
      ended.reason !== 'account_daily' &&
      ended.reason !== 'day_ended'
    ) {
      return { ...this.#failed(situation, asked), learned: asked.learned }
    }
    const after =
      asked.requests > 0 ? await this.#known({ ...situation, startedAt: this.#ports.clock(), day }) : known
    const version = await this.#version(situation)
    const limited = ended !== null || plan.postponed.length > 0
    const ranked = this.#rank(situation, after, asked, health, version, limited)
    for (const note of this.#limitNotes(asked, plan)) ranked.notes.push(note)
    return { ...(await this.#store(situation, ranked, asked, plan)), learned: asked.learned }
  }

  async #ask(
    { sifted, startedAt, day }: Situation,
    { models, attempts }: Known,
    plan: CallPlan,
    run: number,
    token: string,
  ): Promise<Asked> {
    if (plan.calls.length === 0) return { ...NOTHING_ASKED }
    const { evaluations } = this.#ports
    const suite = await this.#ports.makeSuite(day)
    const learned = await evaluations.learnedSince(startedAt - DAY_MS)
    const ages = attempts.map(({ sentAt }) => Math.max(0, startedAt - sentAt))
    const asks = new Set(plan.calls.map(({ model, kind }) => `${kind} ${model}`))
    const before = [...models].map(([model, { sentToday, answers }]) => {
      const kept = Object.values(answers).filter(({ kind }) => !asks.has(`${kind} ${model}`))
      return [
        model,
        { sentToday, answers: new Map(kept.map(({ kind, end }) => [kind, end.tasks ?? []])) },
      ] as const
    })
    return askModels(this.#ports, {
      run,
      token,
      day,
      plan,
      suite,
      models: new Map(sifted.eligible.map((model) => [model.id, model])),
      before: new Map(before),
      startsAMinute: Math.min(STARTS_A_MINUTE, learned ?? STARTS_A_MINUTE),
      recentAges: ages.filter((ageMs) => ageMs < WINDOW_MS),
      signal: this.#options.signal,
    })
  }

  /** @param limited true when the account did not let every model be asked, so that older scores may stand in */
  #rank(
    { mode, day, sifted, previous, notes }: Situation,
    { models, attempts }: Known,
    asked: Asked,
    health: ReadonlyMap<string, Candidate['health']>,
    rankingVersion: string,
    limited = true,
  ): StoredRun {
    const now = this.#ports.clock()
    const candidates = sifted.eligible.map((model): Candidate => {
      const known = models.get(model.id)
      const fresh = mode === 'forceEval' && !limited ? known?.today : known?.evaluation
      return {
        model,
        health: health.get(model.id) ?? known?.health ?? NOT_PROBED,
        evaluation: fresh ?? null,
        failuresIn72h: known?.failuresIn72h ?? 0,
      }
    })
    const evaluatedToday = candidates.some(
      ({ evaluation }) => evaluation && dayOf(evaluation.updatedAt) === day,
    )
    const counts = candidates.some(({ evaluation }) => evaluation !== null)
    const active = mode === 'fullEval' || mode === 'forceEval'
    return recommend({
      now,
      rankingVersion,
      refreshMode: mode,
      probeMode: mode === 'healthOnly' ? 'passive' : active && asked.probed.size > 0 ? 'active' : 'metadata',
      liteEvalMode: active && evaluatedToday ? 'active' : counts ? 'cached' : 'off',
      baseUrl: this.#ports.baseUrl,
      candidates,
      rejections: sifted.rejections,
      unsuffixed: sifted.unsuffixed,
      attemptedToday: new Set(attempts.filter((attempt) => attempt.day === day).map(({ model }) => model))
        .size,
      notes,
      previous,
    })
  }

  #limitNotes({ stop, requests }: Asked, { postponed }: CallPlan): string[] {
    const waiting = `${postponed.length} models were not asked: the account has no requests left for them today.`
    return [
      ...(stop ? [`Stopped after ${requests} requests: ${stopSentence(stop)}.`] : []),
      ...(postponed.length > 0 ? [waiting] : []),
    ]
  }

  async #version({ day, previous }: Situation): Promise<string> {
    const { evaluations, recommendations } = this.#ports
    const given = [...(await evaluations.versionsOf(day)), ...(await recommendations.versions())]
    return nextRankingVersion(day, previous ? [...given, previous.rankingVersion] : given)
  }

  async #store(
    situation: Situation,
    ranked: StoredRun,
    asked: Asked,
    plan: CallPlan,
  ): Promise<EvaluateResult> {
    const { previous } = situation
    const stopped = asked.stop !== null || plan.postponed.length > 0
    const same = previous !== null && asked.requests === 0 && !stopped && isSame(previous, ranked)
    if (!same) await this.#ports.recommendations.put(ranked.rankingVersion, sealRun(ranked))
    const outcome = same ? 'unchanged' : stopped ? 'partial' : 'complete'
    const spent = "the account's requests of the day do not reach every model"
    return result(
      this.#report(situation, outcome, asked, {
        ranked: ranked.models.length,
        primary: ranked.models[0]?.id ?? null,
        rankingVersion: same ? previous.rankingVersion : ranked.rankingVersion,
        reason: asked.stop ? stopSentence(asked.stop) : plan.postponed.length > 0 ? spent : null,
      }),
    )
  }

  /** The stored recommendation stays. */
  #withoutCandidates(situation: Situation): Ended {
    const reason =
      'the catalogue has no free text model that may be recommended; the stored recommendation stays'
    return { ...result(this.#keep(situation, NOTHING_ASKED, reason)), learned: null }
  }

  #failed(situation: Situation, asked: Asked): EvaluateResult {
    const { stop } = asked
    const reason = stop ? stopSentence(stop) : 'nothing was measured'
    const misconfigured = stop !== null && SETTING_OF[stop.reason] !== undefined
    const report = this.#keep(situation, asked, `${reason}; the stored recommendation stays`)
    return { report, misconfigured, unavailable: !misconfigured }
  }

  #keep(situation: Situation, asked: Asked, reason: string): EvaluationReport {
    const { previous } = situation
    return this.#report(situation, 'failed', asked, {
      ranked: 0,
      primary: previous?.models[0]?.id ?? null,
      rankingVersion: previous?.rankingVersion ?? null,
      reason,
    })
  }

  #report(
    { mode, sifted }: Situation,
    outcome: RunOutcome,
    asked: Asked,
    told: Pick<EvaluationReport, 'ranked' | 'primary' | 'rankingVersion' | 'reason'>,
  ): EvaluationReport {
    return {
      job: 'evaluate-models',
      outcome,
      refreshMode: mode,
      rankingVersion: told.rankingVersion,
      primary: told.primary,
      ranked: told.ranked,
      probed: asked.probed.size,
      evaluated: asked.evaluated.size,
      requests: asked.requests,
      rateLimit: rateLimitOf(asked.limits),
      durationMs: Math.round(this.#ports.monotonic() - this.#began),
      reason: told.reason,
      dryRun: this.#options.dryRun,
      rejected: sifted.rejections.map(({ id, reason }) => ({ model: id, reason })),
    }
  }
}

/** A result, and the rate the run learned. */
type Ended = EvaluateResult & { learned: number | null }

interface Known {
  models: Map<string, KnownModel>
  attempts: readonly ModelAttempt[]
}

const NOT_PROBED: Candidate['health'] = {
  status: 'not_probed',
  latencyMs: null,
  rateLimitKind: 'none',
  checkedAt: null,
}

function knownOf(
  eligible: readonly CatalogueModel[],
  attempts: readonly ModelAttempt[],
  scores: readonly DayScore[],
  now: Instant,
): Known {
  return { models: new Map(eligible.map(({ id }) => [id, knownModel(id, attempts, scores, now)])), attempts }
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

/** True when a ranking says what the stored one of the same day says. */
function isSame(previous: StoredRun, ranked: StoredRun): boolean {
  if (previous.updatedAt.slice(0, 10) !== ranked.updatedAt.slice(0, 10)) return false
  const told = (run: StoredRun): string =>
    JSON.stringify(run.models.map((model) => ({ ...model, previousRank: 0 })))
  return told(previous) === told(ranked)
}

function result(report: EvaluationReport): EvaluateResult {
  return { report, misconfigured: false, unavailable: false }
}
