import { classifyAnswer } from '../domain/models/classify-answer.ts'
import type { CatalogueModel } from '../domain/models/catalogue.ts'
import { parseEndpoints } from '../domain/models/endpoints.ts'
import type { EndpointHealth } from '../domain/models/endpoints.ts'
import type { EndpointRecord } from '../domain/models/evaluation-ledger.ts'
import type { ModelRouter } from '../domain/ports.ts'
import type { Asked } from './asking.ts'

/** Asked at the same time; the service is asked for facts, not the models. */
const AT_ONCE = 4

/**
 * What the service says of the endpoints of models; no model is asked.
 *
 * @returns a record of each model the service answered for, and the stop when the account may not ask
 */
export async function probeEndpoints(
  router: ModelRouter,
  models: readonly CatalogueModel[],
  signal: AbortSignal,
): Promise<{ records: EndpointRecord[]; stop: Asked['stop'] }> {
  const records: EndpointRecord[] = []
  let stop: Asked['stop'] = null
  const waiting = models.map(({ id }) => id)
  const probe = async (): Promise<void> => {
    for (let model = waiting.shift(); model !== undefined && !stop; model = waiting.shift()) {
      const answer = await router.endpoints(model, signal)
      if (answer.status === 401) {
        stop = { reason: 'account_key', resetAt: null, preview: classifyAnswer(answer).preview }
        return
      }
      const found = read(answer)
      if (found) records.push({ model, checkedAt: answer.endedAt, ...found })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, probe))
  return { records, stop }
}

/** Null when the answer tells nothing; a model the service does not know has no usable endpoint. */
function read({
  status,
  ending,
  body,
}: Awaited<ReturnType<ModelRouter['endpoints']>>): EndpointHealth | null {
  if (status === 404) return { usable: false, latencyMs: null }
  return status === 200 && ending === 'whole' ? parseEndpoints(body) : null
}
