import { REJECTION_REASONS, judge } from '../../domain/models/catalogue.ts'
import type { CatalogueModel, RejectionReason } from '../../domain/models/catalogue.ts'
import { knownModel } from '../../domain/models/known.ts'
import { goneLeaders, rankCandidates } from '../../domain/models/ranking.ts'
import { siftCatalogue } from '../../domain/models/recommend.ts'
import type { EvalSummary } from '../../domain/models/schema.ts'
import type { ScoreComponent } from '../../domain/models/score.ts'
import type { Clock, State, ModelRouter } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { formatInstant } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { readLedgerRows } from './evaluation-context.ts'

/** Why a model stands where it stands, or is no candidate. */
export interface ModelExplanation {
  model: string
  eligible: boolean
  /** For a model that is no candidate. */
  rejection: { reason: RejectionReason | 'gone'; meaning: string } | null
  rank: number | null
  ranked: number
  score: number | null
  /** They add up to the score. */
  components: ScoreComponent[]
  tasks: EvalSummary['tasks']
  /** Requests of the last three days, the newest first. */
  attempts: {
    sentAt: string
    kind: 'tool' | 'text'
    class: string
    status: number | null
    latencyMs: number | null
  }[]
}

/**
 * Explains a model by the catalogue as it is now and by what the ledger knows; asks no model and writes nothing.
 *
 * @throws Refusal `source_unavailable` when there is no catalogue, `model_unknown` when the model is not in it
 */
export async function explainModel(
  { router, evaluations, clock }: ExplainPorts,
  id: string,
  signal: AbortSignal,
): Promise<ModelExplanation> {
  const now = clock()
  const { models } = await router.catalogue(signal)
  const model = models.find((each) => each.id === id)
  if (!model) {
    const near = models.find((each) => each.id === `${id}:free`)
    const hint = near ? `; did you mean ${near.id}?` : ''
    throw new Refusal<ExplainRefusal>(
      'model_unknown',
      `the service lists no model ${JSON.stringify(id)}${hint}`,
    )
  }
  const rows = await readLedgerRows(evaluations, now)
  const { eligible } = siftCatalogue(models, now)
  const all = eligible.map((each) => ({ model: each, ...knownModel(each.id, rows, now) }))
  const leaders = goneLeaders(all, now)
  const candidates = all.filter((each) => !leaders.has(each.model.id))
  const ranked = rankCandidates(candidates, new Map(), now)
  const found = ranked.find((each) => each.model.id === id)
  const rejection = leaders.has(id) ? GONE : rejectionOf(model, now)
  return {
    model: id,
    eligible: rejection === null,
    rejection,
    rank: found?.model.rank ?? null,
    ranked: ranked.length,
    score: found?.model.score ?? null,
    components: found?.components ?? [],
    tasks: found?.model.evalSummary.tasks ?? [],
    attempts: rows.attempts
      .filter((attempt) => attempt.model === id)
      .toReversed()
      .map(({ sentAt, kind, end }) => ({
        sentAt: formatInstant(sentAt),
        kind,
        class: end?.class ?? 'open',
        status: end?.status ?? null,
        latencyMs: end?.latencyMs ?? null,
      })),
  }
}

const GONE = {
  reason: 'gone',
  meaning: 'the service said, when it was asked last, that nobody serves it',
} as const

function rejectionOf(model: CatalogueModel, now: Instant): ModelExplanation['rejection'] {
  const judgement = judge(model, now)
  if (judgement.eligible) return null
  return { reason: judgement.reason, meaning: REJECTION_REASONS[judgement.reason] }
}

export interface ExplainPorts {
  router: Pick<ModelRouter, 'catalogue'>
  evaluations: Pick<State['evaluations'], 'attemptsSince' | 'scoresSince' | 'endpointsSince'>
  clock: Clock
}

/** Refusals of {@link explainModel}. */
type ExplainRefusal = 'model_unknown'
