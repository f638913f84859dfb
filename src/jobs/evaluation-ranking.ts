import { hasAnswer, toolUseOf } from '../domain/models/evaluation.ts'
import type { CallPlan } from '../domain/models/quota.ts'
import { goneLeaders } from '../domain/models/ranking.ts'
import type { Candidate } from '../domain/models/ranking.ts'
import { publishedNote, recommend } from '../domain/models/recommend.ts'
import type { StoredRun } from '../domain/models/schema.ts'
import { dayOf } from '../domain/time.ts'
import type { Instant } from '../domain/time.ts'
import type { Asked } from './asking.ts'
import { shortfallOf } from './evaluation-shortfall.ts'
import type { Known, Situation } from './evaluation-situation.ts'

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
