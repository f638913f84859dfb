import { hasAnswer, toolUseOf } from '../../domain/models/evaluation.ts'
import type { CallPlan } from '../../domain/models/quota.ts'
import { goneLeaders } from '../../domain/models/ranking.ts'
import type { Candidate } from '../../domain/models/ranking.ts'
import { listed, publishedNote, recommend } from '../../domain/models/recommend.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import { dayOf } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { Known, Situation } from './evaluation-context.ts'
import { stopSentence } from './evaluation-report.ts'
import type { Asked } from './evaluation-report.ts'

/** What a run found out, to be ranked. */
export interface Findings {
  now: Instant
  known: Known
  asked: Asked
  plan: CallPlan
  rankingVersion: string
  baseUrl: string
}

const NOT_PROBED: Candidate['health'] = {
  status: 'not_probed',
  latencyMs: null,
  rateLimitKind: 'none',
  checkedAt: null,
}

/** The recommendation that findings make; null when nobody serves any candidate. */
export function rankFindings(
  { mode, day, sifted, previous, notes }: Situation,
  { now, known, asked, plan, rankingVersion, baseUrl }: Findings,
): StoredRun | null {
  // A forced run uses scores from before it only for what the account did not let it ask.
  const excused = new Set([...asked.unasked, ...plan.postponed])
  const all = sifted.eligible.map((model): Candidate => {
    const each = known.models.get(model.id)
    const freshOnly = mode === 'forceEval' && !excused.has(model.id)
    const fresh = asked.outcomes.get(model.id) ?? null
    const measured = fresh && !(each?.gone && hasAnswer(fresh)) ? fresh : null
    return {
      model,
      toolUse: (freshOnly ? toolUseOf(fresh) : each?.toolUse) ?? 'unknown',
      health: each?.health ?? NOT_PROBED,
      evaluation: freshOnly ? measured : (each?.evaluation ?? null),
      gone: each?.gone ?? false,
      failuresIn72h: each?.failuresIn72h ?? 0,
    }
  })
  const leaders = goneLeaders(all, now)
  const candidates = all.filter(({ model }) => !leaders.has(model.id))
  if (candidates.length === 0) return null
  const evaluations = candidates.flatMap(({ evaluation }) =>
    evaluation && hasAnswer(evaluation) ? evaluation : [],
  )
  const ofToday = evaluations.some(({ updatedAt }) => dayOf(updatedAt) === day)
  const begunToday = known.attempts.filter((attempt) => attempt.day === day).map(({ model }) => model)
  const active = mode === 'fullEval' || mode === 'forceEval'
  const probed = asked.probed.size > 0
  const probeMode = active ? 'active' : 'passive'
  return recommend({
    now,
    rankingVersion,
    refreshMode: mode,
    probeMode: probed ? probeMode : 'metadata',
    liteEvalMode: active && ofToday ? 'active' : evaluations.length > 0 ? 'cached' : 'off',
    baseUrl,
    candidates,
    rejections: [...sifted.rejections, ...[...leaders].map((id) => ({ id, reason: 'gone' }))],
    unsuffixed: sifted.unsuffixed,
    attemptedToday: new Set(begunToday).size,
    notes: [...notes, ...shortfallOf(mode, asked, plan).notes],
    previous,
  })
}

/**
 * True when a ranking says what the stored one of the same day says.
 *
 * @param notes of the new one, that must not get lost
 */
export function saysTheSame(previous: StoredRun, ranked: StoredRun, notes: readonly string[]): boolean {
  if (previous.updatedAt.slice(0, 10) !== ranked.updatedAt.slice(0, 10)) return false
  if (notes.some((note) => !previous.notes.includes(publishedNote(note)))) return false
  return previous.baseUrl === ranked.baseUrl && told(previous) === told(ranked)
}

/** The ranking, and the models nobody should take for free: the notes name them. */
function told({ models, rejections }: StoredRun): string {
  const glitches = rejections.flatMap(({ id, reason }) =>
    reason === 'zero_price_without_suffix' ? [id] : [],
  )
  return JSON.stringify([models.map((model) => ({ ...model, previousRank: null })), glitches.toSorted()])
}

/** What a run did not ask although its mode is to. */
export interface Shortfall {
  /** True when that makes the run `partial`. */
  partial: boolean
  /** For the report; null when everything was asked. */
  reason: string | null
  /** For whoever reads the recommendation. */
  notes: string[]
}

interface Cause {
  partial: boolean
  reason: string
  note: string
}

/** Tells what a run did not ask, and why, the weightiest cause first. */
export function shortfallOf(
  mode: StoredRun['refreshMode'],
  asked: Pick<Asked, 'stop' | 'requests' | 'unasked'>,
  { postponed, spent }: Pick<CallPlan, 'postponed' | 'spent'>,
): Shortfall {
  const causes = [
    stopped(asked),
    mode === 'healthOnly' ? untold([...asked.unasked]) : keptBack([...asked.unasked]),
    waiting(postponed),
    hadTheirs(spent),
  ].filter((cause) => cause !== null)
  return {
    partial: causes.some(({ partial }) => partial),
    reason: causes[0]?.reason ?? null,
    notes: causes.map(({ note }) => note),
  }
}

function stopped({ stop, requests }: Pick<Asked, 'stop' | 'requests'>): Cause | null {
  if (stop === null) return null
  const reason = stopSentence(stop)
  return { partial: true, reason, note: `Stopped after ${requests} requests: ${reason}.` }
}

function keptBack(models: readonly string[]): Cause | null {
  if (models.length === 0) return null
  const reason = `the account's limits kept questions from ${counted(models)}`
  return { partial: true, reason, note: `Not asked everything, for the account's limits: ${listed(models)}.` }
}

function waiting(models: readonly string[]): Cause | null {
  if (models.length === 0) return null
  const note = `Not asked, since the account has no requests left for them today: ${listed(models)}.`
  return { partial: true, reason: "the account's requests of the day do not reach every model", note }
}

function untold(models: readonly string[]): Cause | null {
  if (models.length === 0) return null
  const reason = `the service told nothing of the endpoints of ${counted(models)}`
  return { partial: true, reason, note: `The service told nothing of the endpoints of: ${listed(models)}.` }
}

function hadTheirs(models: readonly string[]): Cause | null {
  if (models.length === 0) return null
  return {
    partial: true,
    reason: `${counted(models)} had too few requests left this UTC day to be asked what is open`,
    note: `Not asked everything, having had their requests of the day: ${listed(models)}.`,
  }
}

function counted({ length }: readonly string[]): string {
  return length === 1 ? '1 model' : `${length} models`
}
