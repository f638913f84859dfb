import type { CallPlan } from '../domain/models/quota.ts'
import type { Candidate } from '../domain/models/ranking.ts'
import { recommend } from '../domain/models/recommend.ts'
import type { StoredRun } from '../domain/models/schema.ts'
import { dayOf } from '../domain/time.ts'
import type { Instant } from '../domain/time.ts'
import type { Asked } from './asking.ts'
import { stopSentence } from './evaluation-report.ts'
import type { Known, Situation } from './evaluation-situation.ts'

/** What a run found out, to be ranked. */
export interface Findings {
  now: Instant
  known: Known
  asked: Asked
  /** Models that wait for another day's quota. */
  postponed: CallPlan['postponed']
  /** Health by endpoints, where they were asked. */
  health: ReadonlyMap<string, Candidate['health']>
  rankingVersion: string
  baseUrl: string
}

const NOT_PROBED: Candidate['health'] = {
  status: 'not_probed',
  latencyMs: null,
  rateLimitKind: 'none',
  checkedAt: null,
}

/** The recommendation that findings make. */
export function rankFindings(
  { mode, day, sifted, previous, notes }: Situation,
  { now, known, asked, postponed, health, rankingVersion, baseUrl }: Findings,
): StoredRun {
  // A forced run takes older scores only for what the account did not let it ask.
  const freshOnly = mode === 'forceEval' && asked.stop === null && postponed.length === 0
  const candidates = sifted.eligible.map((model): Candidate => {
    const each = known.models.get(model.id)
    return {
      model,
      health: health.get(model.id) ?? each?.health ?? NOT_PROBED,
      evaluation: (freshOnly ? each?.today : each?.evaluation) ?? null,
      failuresIn72h: each?.failuresIn72h ?? 0,
    }
  })
  const evaluations = candidates.flatMap(({ evaluation }) => evaluation ?? [])
  const ofToday = evaluations.some(({ updatedAt }) => dayOf(updatedAt) === day)
  const begunToday = known.attempts.filter((attempt) => attempt.day === day).map(({ model }) => model)
  const active = mode === 'fullEval' || mode === 'forceEval'
  const probed = active && asked.probed.size > 0
  return recommend({
    now,
    rankingVersion,
    refreshMode: mode,
    probeMode: mode === 'healthOnly' ? 'passive' : probed ? 'active' : 'metadata',
    liteEvalMode: active && ofToday ? 'active' : evaluations.length > 0 ? 'cached' : 'off',
    baseUrl,
    candidates,
    rejections: sifted.rejections,
    unsuffixed: sifted.unsuffixed,
    attemptedToday: new Set(begunToday).size,
    notes: [...notes, ...limitNotes(asked, postponed)],
    previous,
  })
}

function limitNotes({ stop, requests }: Asked, postponed: readonly string[]): string[] {
  const waiting = `${postponed.length} models were not asked: the account has no requests left for them today.`
  return [
    ...(stop ? [`Stopped after ${requests} requests: ${stopSentence(stop)}.`] : []),
    ...(postponed.length > 0 ? [waiting] : []),
  ]
}

/** True when a ranking says what the stored one of the same day says. */
export function saysTheSame(previous: StoredRun, ranked: StoredRun): boolean {
  if (previous.updatedAt.slice(0, 10) !== ranked.updatedAt.slice(0, 10)) return false
  const told = ({ models }: StoredRun): string =>
    JSON.stringify(models.map((model) => ({ ...model, previousRank: null })))
  return told(previous) === told(ranked)
}
