import type { CatalogueModel } from '../domain/models/catalogue.ts'
import type { KnownModel } from '../domain/models/known.ts'
import type { LiteQuestion } from '../domain/models/lite/suite.ts'
import { requestsLeftOfModel } from '../domain/models/quota.ts'
import type { QuotaClaim } from '../domain/models/quota.ts'
import { compareContenders, rankCandidates, withPerfectAnswers } from '../domain/models/ranking.ts'
import type { StoredRun } from '../domain/models/schema.ts'
import type { Instant } from '../domain/time.ts'

const BOTH: readonly LiteQuestion['kind'][] = ['tool', 'text']

/**
 * What each candidate would have to be asked, and whether it could become the primary by it.
 *
 * @param mode `forceEval` asks again what was answered today
 */
export function claimsOf(
  eligible: readonly CatalogueModel[],
  known: ReadonlyMap<string, KnownModel>,
  mode: StoredRun['refreshMode'],
  now: Instant,
): QuotaClaim[] {
  const candidates = eligible.flatMap((model) => {
    const each = known.get(model.id)
    return each ? [{ model, ...each }] : []
  })
  const ranked = rankCandidates(candidates, new Map(), now)
  const leader = ranked.find(({ gone }) => !gone)?.model
  return ranked.map(({ model, evaluation }): QuotaClaim => {
    const each = known.get(model.id)
    const answered = each?.answers ?? {}
    const again = mode === 'forceEval'
    const best = withPerfectAnswers({ model, evaluation: again ? null : evaluation })
    return {
      model: model.id,
      open: again ? BOTH : BOTH.filter((kind) => answered[kind] === undefined),
      left: requestsLeftOfModel(mode, each?.sentToday ?? 0),
      canWin: leader !== undefined && compareContenders(best, leader) <= 0,
      lastEvaluatedAt: each?.lastEvaluatedAt ?? null,
    }
  })
}
