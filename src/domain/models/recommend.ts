import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import { FALLBACK_ROUTER, judge } from './catalogue.ts'
import type { CatalogueModel, RejectionReason } from './catalogue.ts'
import { LITE_SUITE } from './lite/suite.ts'
import { confidenceOf, coverageOf, rankCandidates } from './ranking.ts'
import type { Candidate } from './ranking.ts'
import { publishedText, withoutModelIds } from './schema.ts'
import type { RankedModel, StoredRun } from './schema.ts'

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

/** How many moves are told one by one. */
const MOVES_TOLD = 5
const NAMES_TOLD = 10

/** Said in every recommendation. */
export const STANDING_NOTES = [
  'Free model availability and rate limits can vary.',
  'The lite eval is a small practical heuristic (writing files through a tool, one shell command, a decoding puzzle), not an official benchmark result.',
  'Use openrouter/free if the recommended model is temporarily unavailable.',
] as const

const PARTS = [
  ['metadataScore', 'metadata'],
  ['healthScore', 'health'],
  ['latencyScore', 'latency'],
  ['liteEvalScore', 'lite eval'],
  ['instabilityPenalty', 'instability penalty'],
] as const

/**
 * What moved since the recommendation before, and why: the primary's change always, then the five longest moves, then
 * who came and who left.
 */
function movementNotes(
  models: readonly RankedModel[],
  previous: Pick<StoredRun, 'models' | 'rankingVersion'> | null,
): string[] {
  if (previous === null) return ['There is no recommendation before this one to compare with.']
  const before = new Map(previous.models.map((model) => [model.id, model]))
  const [primary] = models
  const [deposed] = previous.models
  const changed = primary !== undefined && deposed !== undefined && primary.id !== deposed.id
  const moves = models
    .flatMap((model) => {
      const old = before.get(model.id)
      return old && old.rank !== model.rank ? [{ model, old }] : []
    })
    .sort((a, b) => distance(b) - distance(a) || a.model.rank - b.model.rank)
  const current = new Set(models.map(({ id }) => id))
  const came = models.filter(({ id }) => !before.has(id)).map(({ id, rank }) => `${id} (rank ${rank})`)
  const left = previous.models
    .filter(({ id }) => !current.has(id))
    .map(({ id, rank }) => `${id} (was ${rank})`)
  const first = moves.filter(({ model }) => changed && (model.id === primary.id || model.id === deposed.id))
  const told = [...first, ...moves.filter((move) => !first.includes(move))].slice(0, MOVES_TOLD)
  const untold = moves.length - told.length
  return [
    changed
      ? `The primary changed from ${deposed.id} to ${primary.id} since ${previous.rankingVersion}.`
      : `The primary is the same as in ${previous.rankingVersion}.`,
    ...told.map(describeMove),
    ...(untold > 0 ? [`${untold} more moved.`] : []),
    ...(came.length > 0 ? [`New in the ranking: ${listed(came)}.`] : []),
    ...(left.length > 0 ? [`No longer ranked: ${listed(left)}.`] : []),
  ]
}

/** Names models that cost nothing without being a free variant: nobody should take them for free. */
function glitchNotes(unsuffixed: readonly CatalogueModel[]): string[] {
  if (unsuffixed.length === 0) return []
  const ids = listed(unsuffixed.map(({ id }) => id))
  return [
    `Priced at zero without the free suffix (a price glitch or a preview), so never a candidate: ${ids}.`,
  ]
}

interface Move {
  model: RankedModel
  old: RankedModel
}

function distance({ model, old }: Move): number {
  return Math.abs(model.rank - old.rank)
}

function describeMove({ model, old }: Move): string {
  const verb = model.rank < old.rank ? 'rose' : 'fell'
  const deltas = PARTS.flatMap(([name, label]) => {
    const delta = model[name] - old[name]
    return delta === 0 ? [] : [`${label} ${delta > 0 ? '+' : ''}${delta}`]
  })
  const why = deltas.length > 0 ? deltas.join(', ') : 'its score is the same, others moved'
  return `${model.id} ${verb} from ${old.rank} to ${model.rank}: ${why}.`
}

/** Names in a row, the first ten. */
export function listed(names: readonly string[]): string {
  const more = names.length - NAMES_TOLD
  return more > 0 ? `${names.slice(0, NAMES_TOLD).join(', ')} and ${more} more` : names.join(', ')
}
