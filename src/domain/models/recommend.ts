import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import type { CatalogueModel } from './catalogue.ts'
import { confidenceOf, coverageOf } from './coverage.ts'
import { FALLBACK_ROUTER, judge } from './eligibility.ts'
import type { RejectionReason } from './eligibility.ts'
import { LITE_SUITE } from './lite/suite.ts'
import { glitchNotes, movementNotes, STANDING_NOTES } from './notes.ts'
import { rankCandidates } from './ranking.ts'
import type { Candidate } from './ranking.ts'
import type { StoredRun } from './schema.ts'
import { publishedText, withoutModelIds } from './text.ts'

const CREATE_KEY_URL = 'https://openrouter.ai/settings/keys'
const FALLBACK = { id: FALLBACK_ROUTER, reason: 'OpenRouter-managed free model router' } as const

const NOTE_MOST = 500

/** A note as it is published. */
export function publishedNote(note: string): string {
  return publishedText(withoutModelIds(note), NOTE_MOST)
}

/** A catalogue, divided into those who are ranked and those who are not. */
export interface Sifted {
  eligible: CatalogueModel[]
  rejections: { id: string; reason: RejectionReason }[]
  /** Of the rejected, those priced at zero that are no free variant. */
  unsuffixed: CatalogueModel[]
}

/** Judges every model of a catalogue; each rejection has its reason. */
export function siftCatalogue(models: readonly CatalogueModel[], now: Instant): Sifted {
  const sifted: Sifted = { eligible: [], rejections: [], unsuffixed: [] }
  for (const model of models) {
    const judgement = judge(model, now)
    if (judgement.eligible) {
      sifted.eligible.push(model)
      continue
    }
    sifted.rejections.push({ id: model.id, reason: judgement.reason })
    if (judgement.reason === 'zero_price_without_suffix') sifted.unsuffixed.push(model)
  }
  return sifted
}

/** What a run found out, before it is ranked. */
export interface RunFacts {
  now: Instant
  /** `<UTC day>.v1`; a second run of the day `.v2`. */
  rankingVersion: string
  refreshMode: StoredRun['refreshMode']
  probeMode: StoredRun['probeMode']
  liteEvalMode: StoredRun['liteEvalMode']
  /** API base of the routing service. */
  baseUrl: string
  candidates: readonly Candidate[]
  rejections: readonly { id: string; reason: string }[]
  unsuffixed: readonly CatalogueModel[]
  /** Evaluations begun this UTC day. */
  attemptedToday: number
  /** What else is to be said: bad rows, a limit that was met. */
  notes: readonly string[]
  /** The recommendation before this one. */
  previous: Pick<StoredRun, 'models' | 'rankingVersion'> | null
}

/**
 * The whole recommendation of one run: ranking, confidence, notes, and why each model is where it is.
 *
 * @param facts at least one candidate
 */
export function recommend(facts: RunFacts): StoredRun {
  const { now, candidates, previous } = facts
  const previousRanks = new Map(previous?.models.map(({ id, rank }) => [id, rank]))
  const ranked = rankCandidates(candidates, previousRanks, now)
  const models = ranked.map(({ model }) => model)
  const evalCoverage = coverageOf(ranked, facts.attemptedToday, now)
  const confidence = confidenceOf(ranked, evalCoverage, now)
  const notes = [
    ...STANDING_NOTES,
    ...facts.notes,
    ...glitchNotes(facts.unsuffixed),
    ...movementNotes(models, previous),
  ]
  return {
    updatedAt: formatInstant(now),
    source: 'openrouter-models-api',
    rankingVersion: facts.rankingVersion,
    probeMode: facts.probeMode,
    refreshMode: facts.refreshMode,
    liteEvalMode: facts.liteEvalMode,
    liteEvalSuite: LITE_SUITE,
    rankingConfidence: confidence.level,
    rankingConfidenceReason: confidence.reason,
    evalCoverage,
    baseUrl: facts.baseUrl,
    createKeyUrl: CREATE_KEY_URL,
    fallback: { ...FALLBACK },
    models,
    notes: notes.map(publishedNote),
    rejections: facts.rejections.map((rejection) => ({ ...rejection })),
    explanations: Object.fromEntries(ranked.map(({ model, components }) => [model.id, components])),
  }
}

/** The version after the last one of the same day, `.v1` when there is none. */
export function nextRankingVersion(day: string, versions: readonly string[]): string {
  const numbers = versions.flatMap((version) => {
    const match = /^(\d{4}-\d{2}-\d{2})\.v(\d{1,6})$/.exec(version)
    return match?.[1] === day ? [Number(match[2])] : []
  })
  return `${day}.v${Math.max(0, ...numbers) + 1}`
}
