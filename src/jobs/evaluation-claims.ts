import type { CatalogueModel } from '../domain/models/catalogue.ts'
import type { KnownModel } from '../domain/models/known.ts'
import type { LiteQuestion } from '../domain/models/lite/suite.ts'
import { REQUESTS_A_MODEL } from '../domain/models/quota.ts'
import type { QuotaClaim } from '../domain/models/quota.ts'
import { compareContenders, rankCandidates, withPerfectAnswers } from '../domain/models/ranking.ts'
import type { StoredRun } from '../domain/models/schema.ts'
import type { Instant } from '../domain/time.ts'

const BOTH: readonly LiteQuestion['kind'][] = ['tool', 'text']

/**
 * What each candidate would have to be asked, and whether it could become the primary by it.
 *
 * @param mode `forceEval` asks again what was answered today, where a model has the requests left
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
    const sentToday = each?.sentToday ?? 0
    const again = mode === 'forceEval' && sentToday + BOTH.length <= REQUESTS_A_MODEL
    const best = withPerfectAnswers({ model, evaluation: again ? null : evaluation })
    return {
      model: model.id,
      open: again ? BOTH : BOTH.filter((kind) => answered[kind] === undefined),
      sentToday,
      spent: mode === 'forceEval' && !again,
      canWin: leader !== undefined && compareContenders(best, leader) <= 0,
      lastEvaluatedAt: each?.lastEvaluatedAt ?? null,
    }
  })
}
