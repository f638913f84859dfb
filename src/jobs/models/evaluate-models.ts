import type { CatalogueModel } from '../../domain/models/catalogue.ts'
import type { EndpointRecord, RunOutcome } from '../../domain/models/evaluation.ts'
import { STARTS_A_MINUTE } from '../../domain/models/quota.ts'
import type { CallPlan } from '../../domain/models/quota.ts'
import { nextRankingVersion } from '../../domain/models/recommend.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import { sealRun } from '../../domain/models/stored-run.ts'
import type { ModelRouter } from '../../domain/ports.ts'
import { DAY_MS, addDays, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { messageOf, withLease } from '../publisher.ts'
import { askModels } from './ask-models.ts'
import { askOptionsOf, planQuestions, readKnown, readSituation } from './evaluation-context.ts'
import type { EvaluateOptions, EvaluatePorts, Known, Planned, Situation } from './evaluation-context.ts'
import { rankFindings, saysTheSame, shortfallOf } from './evaluation-ranking.ts'
import { NOTHING_ASKED, SETTING_OF, rateLimitOf, stopSentence } from './evaluation-report.ts'
import type { Asked, EvaluationReport, StopReason } from './evaluation-report.ts'

/** Asked at the same time; the service is asked for facts, not the models. */
const AT_ONCE = 4

/**
 * What the service says of the endpoints of models; no model is asked.
 *
 * @returns a record of each model the service answered for, and the stop when the account may not ask
 */
async function probeEndpoints(
  router: ModelRouter,
  models: readonly CatalogueModel[],
  signal: AbortSignal,
): Promise<{ records: EndpointRecord[]; stop: Asked['stop'] }> {
  const records: EndpointRecord[] = []
  let stop: Asked['stop'] = null
  const waiting = models.map(({ id }) => id)
  const probe = async (): Promise<void> => {
    for (let model = waiting.shift(); model !== undefined && !stop; model = waiting.shift()) {
      const answer = await router.endpoints(model, signal)
      if ('failed' in answer) {
        stop = { reason: 'account_key', resetAt: null, preview: answer.failed.preview }
        return
      }
      if (answer.facts) records.push(answer.facts)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, probe))
  return { records, stop }
}

export interface EvaluateResult {
  report: EvaluationReport
  /** True when a setting of the account or of this program mends the failure. */
  misconfigured: boolean
  /** True when the service is to blame for a failure. */
  unavailable: boolean
}

/** A result, and the rate the run learned. */
type Ended = EvaluateResult & { learned: number | null }

/** Stops after which older scores make a recommendation although nothing was measured. */
const KEEPS_THE_CACHE: ReadonlySet<StopReason> = new Set([
  'account_daily',
  'account_minute',
  'account_busy',
  'day_ended',
])

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
    const situation = await readSituation(this.#ports, this.#options)
    if (situation.sifted.eligible.length === 0) return this.#withoutCandidates(situation)
    const known = await readKnown(this.#ports, situation, situation.startedAt)
    const { plan, stop } = await planQuestions(this.#ports, situation, known, this.#options.signal)
    if (stop) return this.#failed(situation, { ...NOTHING_ASKED, stop })
    const run = rankFindings(situation, {
      now: situation.startedAt,
      known,
      asked: { ...NOTHING_ASKED, unasked: new Set(plan.calls.map(({ model }) => model)) },
      plan,
      rankingVersion: nextRankingVersion(situation.day, []),
      baseUrl: this.#ports.baseUrl,
    })
    if (!run) return this.#unserved(situation, NOTHING_ASKED)
    const report = this.#report(situation, 'unchanged', NOTHING_ASKED, {
      ranked: run.models.length,
      primary: run.models[0]?.id ?? null,
      rankingVersion: null,
      reason: shortfallOf(situation.mode, NOTHING_ASKED, plan).reason,
      rejections: run.rejections,
    })
    return result({ ...report, requests: plan.calls.length })
  }

  async run(token: string): Promise<EvaluateResult> {
    const { evaluations } = this.#ports
    const situation = await readSituation(this.#ports, this.#options)
    const { mode, day, startedAt, sifted } = situation
    const run = await evaluations.beginRun({ day, refreshMode: mode, startedAt })
    const found = await this.#orAbandon(run, async () =>
      sifted.eligible.length === 0
        ? this.#withoutCandidates(situation)
        : this.#evaluate(situation, run, token),
    )
    const { outcome, rankingVersion, reason, rejected } = found.report
    const end = {
      endedAt: this.#ports.clock(),
      outcome,
      rankingVersion,
      startsAMinute: found.learned,
      reason,
    }
    await evaluations.endRun(
      run,
      end,
      rejected.map((each) => ({ id: each.model, reason: each.reason })),
    )
    return found
  }

  /** A run that cannot go on ends at once, so that nobody takes what it left open for the work of one that goes on. */
  async #orAbandon<T>(run: number, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      const reason = this.#options.signal.aborted ? 'interrupted' : messageOf(error)
      // Where the ledger itself fails, the next run ends this one.
      await this.#ports.evaluations.abandonRun(run, this.#ports.clock(), reason).catch(() => undefined)
      throw error
    }
  }

  async #evaluate(situation: Situation, run: number, token: string): Promise<Ended> {
    const { signal } = this.#options
    const known = await readKnown(this.#ports, situation, situation.startedAt)
    const planned = await planQuestions(this.#ports, situation, known, signal)
    const asked = await this.#find(situation, known, planned, run, token)
    const { learned } = asked
    if (asked.stop && asked.probed.size === 0 && !KEEPS_THE_CACHE.has(asked.stop.reason)) {
      return { ...this.#failed(situation, asked), learned }
    }
    const now = this.#now(situation)
    const { plan } = planned
    const ranked = rankFindings(situation, {
      now,
      known: asked.requests + asked.probed.size > 0 ? await readKnown(this.#ports, situation, now) : known,
      asked,
      plan,
      rankingVersion: await this.#version(situation),
      baseUrl: this.#ports.baseUrl,
    })
    if (!ranked) return { ...this.#unserved(situation, asked), learned }
    return { ...(await this.#store(situation, ranked, asked, plan)), learned }
  }

  /** Asks models, or for their endpoints, as the mode tells; all of it is in the ledger on return. */
  async #find(
    situation: Situation,
    known: Known,
    planned: Planned,
    run: number,
    token: string,
  ): Promise<Asked> {
    const { stop } = planned
    if (stop) return { ...NOTHING_ASKED, stop }
    return situation.mode === 'healthOnly'
      ? this.#probe(situation)
      : this.#ask(situation, known, planned, run, token)
  }

  async #probe({ sifted }: Situation): Promise<Asked> {
    const { router, evaluations } = this.#ports
    const { records, stop } = await probeEndpoints(router, sifted.eligible, this.#options.signal)
    await evaluations.saveEndpoints(records)
    const probed = new Set(records.map(({ model }) => model))
    const unasked = sifted.eligible.map(({ id }) => id).filter((id) => !probed.has(id))
    return { ...NOTHING_ASKED, stop, probed, unasked: new Set(unasked) }
  }

  /** The time, but no later than the day of the run, whose suite and scores it ranks. */
  #now({ day }: Situation): Instant {
    return Math.min(this.#ports.clock(), startOfDay(addDays(day, 1)) - 1)
  }

  async #ask(
    situation: Situation,
    known: Known,
    planned: Planned,
    run: number,
    token: string,
  ): Promise<Asked> {
    if (planned.plan.calls.length === 0) return NOTHING_ASKED
    const suite = await this.#ports.makeSuite(situation.day)
    const learned = await this.#ports.evaluations.learnedSince(situation.startedAt - DAY_MS)
    return askModels(this.#ports, {
      ...askOptionsOf(situation, known, planned),
      run,
      token,
      suite,
      startsAMinute: Math.min(STARTS_A_MINUTE, learned ?? STARTS_A_MINUTE),
      signal: this.#options.signal,
    })
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
    const { previous, mode } = situation
    const { partial, reason, notes } = shortfallOf(mode, asked, plan)
    const nothingNew = asked.requests === 0 && !partial
    const same = previous !== null && nothingNew && saysTheSame(previous, ranked, notes)
    if (!same) await this.#ports.recommendations.put(ranked.rankingVersion, sealRun(ranked))
    const outcome = same ? 'unchanged' : partial ? 'partial' : 'complete'
    return result(
      this.#report(situation, outcome, asked, {
        ranked: ranked.models.length,
        primary: ranked.models[0]?.id ?? null,
        rankingVersion: same ? previous.rankingVersion : ranked.rankingVersion,
        reason,
        rejections: ranked.rejections,
      }),
    )
  }

  /** The stored recommendation stays. */
  #withoutCandidates(situation: Situation): Ended {
    const reason =
      'the catalogue has no free text model that may be recommended; the stored recommendation stays'
    return { ...result(this.#keep(situation, NOTHING_ASKED, reason)), learned: null }
  }

  /** The catalogue lists candidates, and the service says of each that nobody serves it: the stored one stays too. */
  #unserved(situation: Situation, asked: Asked): EvaluateResult {
    const reason = 'the service says that nobody serves any candidate; the stored recommendation stays'
    return { report: this.#keep(situation, asked, reason), misconfigured: false, unavailable: true }
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
      rejections: situation.sifted.rejections,
    })
  }

  #report(
    { mode }: Situation,
    outcome: RunOutcome,
    asked: Asked,
    told: Pick<EvaluationReport, 'ranked' | 'primary' | 'rankingVersion' | 'reason'> &
      Pick<StoredRun, 'rejections'>,
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
      rejected: told.rejections.map(({ id, reason }) => ({ model: id, reason })),
    }
  }
}

function result(report: EvaluationReport): EvaluateResult {
  return { report, misconfigured: false, unavailable: false }
}
