import { UNRANKED_REASONS, filterCatalogue } from '../../domain/models/catalogue.ts'
import type { RejectionReason } from '../../domain/models/catalogue.ts'
import { historyOf } from '../../domain/models/history.ts'
import { unservedLeaders, rankCandidates } from '../../domain/models/ranking.ts'
import type { EvalSummary, ScoreComponent } from '../../domain/models/schema.ts'
import type { Clock, ModelRouter, State } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { formatInstant } from '../../domain/time.ts'
import { readRows } from './evaluate-models.ts'

/** Explanation of a model's rank, or of its rejection. */
export interface ModelExplanation {
  model: string
  eligible: boolean
  /** Set for a rejected model. */
  rejection: { reason: RejectionReason | 'gone'; meaning: string } | null
  rank: number | null
  ranked: number
  score: number | null
  /** Components whose points add up to the score. */
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

interface ExplainPorts {
  router: Pick<ModelRouter, 'catalogue'>
  evaluations: Pick<State['evaluations'], 'attemptsSince' | 'scoresSince' | 'endpointsSince'>
  clock: Clock
}

/**
 * Explains a model by the current catalogue and the stored evaluations; sends no prompt and writes nothing.
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
  if (!models.some((each) => each.id === id)) {
    const near = models.find((each) => each.id === `${id}:free`)
    const hint = near ? `; did you mean ${near.id}?` : ''
    const detail = `the service does not list the model ${JSON.stringify(id)}${hint}`
    throw new Refusal<'model_unknown'>('model_unknown', detail)
  }
  const rows = await readRows(evaluations, now)
  const { eligible, rejections } = filterCatalogue(models, now)
  const all = eligible.map((model) => ({ model, ...historyOf(model.id, rows, now) }))
  const leaders = unservedLeaders(all, now)
  const candidates = all.filter(({ model }) => !leaders.has(model.id))
  const ranked = rankCandidates(candidates, new Map(), now)
  const found = ranked.find(({ model }) => model.id === id)
  const reason = leaders.has(id) ? 'gone' : rejections.find((each) => each.id === id)?.reason
  return {
    model: id,
    eligible: reason === undefined,
    rejection: reason === undefined ? null : { reason, meaning: UNRANKED_REASONS[reason] },
    rank: found?.model.rank ?? null,
    ranked: ranked.length,
    score: found?.model.score ?? null,
    components: found?.components ?? [],
    tasks: found?.model.evalSummary.tasks ?? [],
    attempts: rows.attempts
      .filter(({ model }) => model === id)
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
