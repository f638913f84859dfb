import { parseCatalogue } from '../domain/models/catalogue.ts'
import type { Catalogue } from '../domain/models/catalogue.ts'
import type { ModelRouter } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'

/** Refusals of {@link readCatalogue}. */
export type EvaluateRefusal = 'source_unavailable'

/**
 * The models the service lists.
 *
 * @param serviceUrl as errors name the service
 * @throws Refusal `source_unavailable` when it gives no catalogue
 */
export async function readCatalogue(
  router: Pick<ModelRouter, 'catalogue'>,
  serviceUrl: string,
  signal: AbortSignal,
): Promise<Catalogue> {
  const { status, ending, body } = await router.catalogue(signal)
  if (status === 200 && ending === 'whole') {
    try {
      return parseCatalogue(JSON.parse(body))
    } catch (cause) {
      throw unavailable(`${serviceUrl}/models is no catalogue of models; correct OPENROUTER_BASE_URL`, cause)
    }
  }
  const why = status === null ? OF_ENDING[ending] : `it answered ${status}`
  throw unavailable(`${serviceUrl}/models: ${why}; try again later, or correct OPENROUTER_BASE_URL`)
}

const OF_ENDING = {
  whole: 'it gave no answer',
  cut: 'its answer broke off',
  'too-large': 'its answer is too large',
  timeout: 'it gave no answer in time',
  unreachable: 'it cannot be reached',
} as const

function unavailable(detail: string, cause?: unknown): Refusal<EvaluateRefusal> {
  return new Refusal<EvaluateRefusal>('source_unavailable', detail, { cause })
}
