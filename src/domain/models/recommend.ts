import { formatInstant, startOfDay } from '../time.ts'
import type { Instant, Day } from '../time.ts'
import { FALLBACK_ROUTER, BASE_URL } from './catalogue.ts'
import { NOT_PROBED } from './history.ts'
import { LITE_SUITE } from './lite/suite.ts'
import { confidenceOf, coverageOf, rankCandidates } from './ranking.ts'
import type { Candidate } from './ranking.ts'
import { RANKING_VERSION, publishedText, withoutModelIds } from './schema.ts'
import type { RankedModel, StoredRun } from './schema.ts'
import { scoreOf } from './score.ts'

const CREATE_KEY_URL = 'https://openrouter.ai/settings/keys'
const FALLBACK = { id: FALLBACK_ROUTER, reason: 'OpenRouter-managed free model router' } as const

function publishedNote(note: string): string {
  return publishedText(withoutModelIds(note), 500)
}

type PreviousRun = Pick<StoredRun, 'models' | 'rankingVersion'> | null

export interface RunFacts extends Pick<
  StoredRun,
  | 'rankingVersion'
  | 'refreshMode'
  | 'probeMode'
  | 'liteEvalMode'
  | 'baseUrl'
  | 'rejections'
  | 'notes'
  | 'untested'
> {
  now: Instant
  /** At least one candidate. */
  candidates: readonly Candidate[]
  /** Evaluations started on this UTC day. */
  attemptedToday: number
  previous: PreviousRun
}

/** Creates the recommendation of a run: ranking, confidence, notes, and the components of each score. */
export function recommend(facts: RunFacts): StoredRun {
  const { now, candidates, previous, rejections } = facts
  const previousRanks = new Map(previous?.models.map(({ id, rank }) => [id, rank]))
  const ranked = rankCandidates(candidates, previousRanks, now)
  const models = ranked.map(({ model }) => model)
  const evalCoverage = coverageOf(ranked, facts.attemptedToday, now)
  const glitches = zeroPriced(rejections)
  const glitchNote = `Not candidates, because they are free without the free suffix (a price error or a preview): ${joinNames(glitches)}.`
  const notes = [
    ...FIXED_NOTES,
    ...facts.notes,
    ...(glitches.length > 0 ? [glitchNote] : []),
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
    ...confidenceOf(ranked, evalCoverage, now),
    evalCoverage,
    baseUrl: facts.baseUrl,
    createKeyUrl: CREATE_KEY_URL,
    fallback: { ...FALLBACK },
    models,
    notes: notes.map(publishedNote),
    rejections,
    explanations: Object.fromEntries(ranked.map(({ model, components }) => [model.id, components])),
    expirations: Object.fromEntries(
      candidates.flatMap(({ model: { id, expirationDay } }) =>
        expirationDay === null ? [] : [[id, expirationDay]],
      ),
    ),
    untested: facts.untested,
  }
}

/**
 * True when two recommendations have the same content and the same day, and the first is not later: it would be stale until
 * its time.
 */
export function hasSameContent(previous: StoredRun, ranked: StoredRun): boolean {
  const contentOf = (run: StoredRun): string => {
    const { models, rejections, updatedAt, baseUrl, rankingConfidence, expirations = {}, untested = [] } = run
    const ranking = models.map((model) => ({
      ...model,
      previousRank: null,
      expirationDay: expirations[model.id] ?? null,
      tested: !untested.includes(model.id),
    }))
    const glitches = zeroPriced(rejections).toSorted()
    // Confidence falls as tests grow older than 24 hours, with no other change.
    return JSON.stringify([updatedAt.slice(0, 10), baseUrl, rankingConfidence, ranking, glitches])
  }
  return previous.updatedAt <= ranked.updatedAt && contentOf(previous) === contentOf(ranked)
}

/** Rejected models with zero price that are not free variants: the notes name them. */
function zeroPriced(rejections: StoredRun['rejections']): string[] {
  return rejections.flatMap(({ id, reason }) => (reason === 'zero_price_without_suffix' ? [id] : []))
}

/** The next version of a day: `<UTC day>.v1`, then `.v2`. */
export function nextRankingVersion(day: string, versions: readonly string[]): string {
  const ofDay = versions.filter((each) => RANKING_VERSION.test(each) && each.startsWith(day))
  const numbers = ofDay.map((version) => Number(version.slice(`${day}.v`.length)))
  return `${day}.v${Math.max(0, ...numbers) + 1}`
}

const FIXED_NOTES = [
  'Free model availability and rate limits can vary.',
  'The daily test is a small practical heuristic (writing files through a tool, one shell command, a decoding puzzle), not an official benchmark result.',
  'Use openrouter/free if the recommended model is temporarily unavailable.',
] as const

const MOVES_DESCRIBED = 5
const NAMES_LISTED = 10

const PARTS = {
  metadataScore: 'metadata',
  healthScore: 'health',
  latencyScore: 'latency',
  liteEvalScore: 'test',
  instabilityPenalty: 'instability penalty',
} as const

/**
 * Changes since the previous recommendation: the primary's first, then the five longest moves, then models that entered
 * and left.
 */
function movementNotes(models: readonly RankedModel[], previous: PreviousRun): string[] {
  if (previous === null) return []
  const before = new Map(previous.models.map((model) => [model.id, model]))
  const current = new Set(models.map(({ id }) => id))
  const [primary, previousPrimary] = [models[0]?.id, previous.models[0]?.id]
  const changed = primary !== undefined && previousPrimary !== undefined && primary !== previousPrimary
  const moves = models.flatMap((model) => {
    const previousModel = before.get(model.id)
    if (!previousModel || previousModel.rank === model.rank) return []
    const first = changed && (model.id === primary || model.id === previousPrimary) ? 1 : 0
    return [{ model, old: previousModel, first, distance: Math.abs(model.rank - previousModel.rank) }]
  })
  moves.sort((a, b) => b.first - a.first || b.distance - a.distance || a.model.rank - b.model.rank)
  const entered = models.filter(({ id }) => !before.has(id)).map(({ id, rank }) => `${id} (rank ${rank})`)
  const leavers = previous.models.filter(({ id }) => !current.has(id))
  const leaverNames = leavers.map(({ id, rank }) => `${id} (was ${rank})`)
  const more = moves.length - MOVES_DESCRIBED
  return [
    changed
      ? `The primary changed from ${previousPrimary} to ${primary} since ${previous.rankingVersion}.`
      : `The primary is the same as in ${previous.rankingVersion}.`,
    ...moves
      .slice(0, MOVES_DESCRIBED)
      .map(({ model, old: previousModel }) => describeMove(model, previousModel)),
    ...(more > 0 ? [`${more} more moved.`] : []),
    ...(entered.length > 0 ? [`New in the ranking: ${joinNames(entered)}.`] : []),
    ...(leaverNames.length > 0 ? [`No longer ranked: ${joinNames(leaverNames)}.`] : []),
  ]
}

/** The members of a ranked model that explain its move. */
export type ScoredModel = Pick<RankedModel, 'id' | 'name' | 'rank' | keyof typeof PARTS>

/** Describes the move of a model between two runs and the parts of the score that caused it. */
export function describeMove(model: ScoredModel, previousModel: ScoredModel): string {
  const rose = model.rank < previousModel.rank
  const gained = scoreOf(model) - scoreOf(previousModel)
  const deltas = (Object.keys(PARTS) as (keyof typeof PARTS)[]).flatMap((name) => {
    const delta = model[name] - previousModel[name]
    return delta === 0 ? [] : [`${PARTS[name]} ${delta > 0 ? '+' : ''}${delta}`]
  })
  // A model moves against its own score when others leave or move further.
  const others = gained === 0 || rose !== gained > 0 ? ['others moved'] : []
  const cause = [...(deltas.length > 0 ? deltas : ['its score is the same']), ...others].join(', ')
  return `${model.id} ${rose ? 'rose' : 'fell'} from ${previousModel.rank} to ${model.rank}: ${cause}.`
}

/** Joins the first ten names and counts the others. */
export function joinNames(names: readonly string[]): string {
  const more = names.length - NAMES_LISTED
  return more > 0 ? `${names.slice(0, NAMES_LISTED).join(', ')} and ${more} more` : names.join(', ')
}

/** The day on which these facts were published by their makers and the routing service. */
const FACTS_DAY: Day = '2026-08-22'

interface Facts {
  id: string
  name: string
  listed: Day
  context: number
  output: number
  /** Parameters in billions, when published. */
  billions?: number
  /** Supported parameters besides {@link COMMON}. */
  supports: string
}

const COMMON = 'include_reasoning max_tokens reasoning temperature tools'

const FACTS: readonly Facts[] = [
  {
    id: 'z-ai/glm-5.2:free',
    name: 'Z.ai: GLM 5.2 (free)',
    listed: '2026-06-16',
    context: 256_000,
    output: 256_000,
    supports: 'reasoning_effort response_format seed stop structured_outputs tool_choice',
  },
  {
    id: 'nvidia/nemotron-3-ultra-550b-a55b:free',
    name: 'NVIDIA: Nemotron 3 Ultra (free)',
    listed: '2026-06-04',
    context: 1_000_000,
    output: 65_536,
    billions: 550,
    supports: 'reasoning_effort seed tool_choice',
  },
  {
    id: 'nvidia/nemotron-3-super-120b-a12b:free',
    name: 'NVIDIA: Nemotron 3 Super (free)',
    listed: '2026-03-11',
    context: 262_144,
    output: 262_144,
    billions: 120,
    supports: 'reasoning_effort response_format seed structured_outputs tool_choice',
  },
  {
    id: 'google/gemma-4-31b-it:free',
    name: 'Google: Gemma 4 31B (free)',
    listed: '2026-04-02',
    context: 262_144,
    output: 32_768,
    billions: 31,
    supports: 'response_format seed tool_choice',
  },
  {
    id: 'cohere/north-mini-code:free',
    name: 'Cohere: North Mini Code (free)',
    listed: '2026-06-17',
    context: 256_000,
    output: 64_000,
    billions: 30,
    supports: 'seed stop tool_choice',
  },
]

/** The built-in recommendation while none is stored: a few models ranked by published facts, marked as not measured. */
export function seedRun(): StoredRun {
  const run = recommend({
    now: startOfDay(FACTS_DAY),
    rankingVersion: `${FACTS_DAY}.v1`,
    refreshMode: 'metadataOnly',
    probeMode: 'metadata',
    liteEvalMode: 'off',
    baseUrl: BASE_URL,
    candidates: FACTS.map(candidateOf),
    rejections: [],
    attemptedToday: 0,
    notes: [],
    previous: null,
  })
  return {
    ...run,
    source: 'seed',
    rankingConfidence: 'low',
    rankingConfidenceReason: 'Built-in seed: ranked only by published facts, not measured.',
    notes: [
      `This is the built-in seed, with facts as published on ${FACTS_DAY}: no stored recommendation could be read.`,
      ...FIXED_NOTES,
    ],
  }
}

function candidateOf({ id, name, listed, context, output, billions, supports }: Facts): Candidate {
  const model = {
    id,
    name,
    createdAt: startOfDay(listed),
    contextLength: context,
    maxCompletionTokens: output,
    prices: { prompt: 0, completion: 0 },
    inputModalities: ['text'],
    outputModalities: ['text'],
    supportedParameters: `${COMMON} ${supports}`.split(' '),
    expirationDay: null,
    expirationUnreadable: false,
    description: billions === undefined ? '' : `${billions}B parameters`,
    isRouterOrAlias: false,
  }
  return { model, health: NOT_PROBED, evaluation: null, toolUse: 'unknown', gone: false, failuresIn72h: 0 }
}
