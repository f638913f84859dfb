import { classifyAnswer } from '../domain/models/answer-class.ts'
import type { CatalogueModel } from '../domain/models/catalogue.ts'
import { parseEndpoints } from '../domain/models/endpoints.ts'
import type { Candidate } from '../domain/models/ranking.ts'
import type { ModelRouter } from '../domain/ports.ts'
import type { Asked } from './asking.ts'

/** Asked at the same time; the service is asked for facts, not the models. */
const AT_ONCE = 4

/**
 * The health of models by what the service says of their endpoints; no model is asked. Without a usable endpoint it is
 * `failed`; else what the last probe of the past day said stands, and without one `imperfect`.
 *
 * @param known health by the last probes
 * @returns health of those the service answered for, and the stop when the account may not ask
 */
export async function probeEndpoints(
  router: ModelRouter,
  models: readonly CatalogueModel[],
  known: ReadonlyMap<string, Candidate['health']>,
  signal: AbortSignal,
): Promise<{ health: Map<string, Candidate['health']>; stop: Asked['stop'] }> {
  const health = new Map<string, Candidate['health']>()
  let stop: Asked['stop'] = null
  const waiting = [...models]
  const probe = async (): Promise<void> => {
    for (let model = waiting.shift(); model && !stop; model = waiting.shift()) {
      const answer = await router.endpoints(model.id, signal)
      if (answer.status === 401) {
        stop = { reason: 'account_key', resetAt: null, preview: classifyAnswer(answer).preview }
        return
      }
      const found = answer.status === 404 ? { usable: false, latencyMs: null } : read(answer)
      if (found === null) continue
      const before = known.get(model.id)
      const active = before && before.status !== 'not_probed' ? before.status : 'imperfect'
      health.set(model.id, {
        status: found.usable ? active : 'failed',
        latencyMs: found.latencyMs,
        rateLimitKind: before?.rateLimitKind ?? 'none',
        checkedAt: answer.endedAt,
      })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, probe))
  return { health, stop }
}

function read({
  status,
  ending,
  body,
}: Awaited<ReturnType<ModelRouter['endpoints']>>): ReturnType<typeof parseEndpoints> {
  return status === 200 && ending === 'whole' ? parseEndpoints(body) : null
}
