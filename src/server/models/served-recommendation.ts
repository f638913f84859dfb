import { withBaseUrl } from '../../domain/models/payloads.ts'
import type { Served } from '../../domain/models/payloads.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import { seedRun } from '../../domain/models/seed.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import type { RecommendationStore } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { coalesce } from '../coalesce.ts'
import type { Log } from '../log.ts'

/** What is served now. */
export type ServedRecommendation = () => Promise<Served>

/**
 * The stored recommendation, read and proved for every question, or the built-in seed while there is none, none that
 * can be read, or none that is sound: the contract names that fallback (docs/free-models.md). Each reason is logged.
 *
 * @param publishedBaseUrl address of the routing service to publish, whatever the stored run says
 */
export function servedRecommendation(
  store: Pick<RecommendationStore, 'current'>,
  publishedBaseUrl: string,
  log: Log,
): ServedRecommendation {
  const seed = withBaseUrl(seedRun(), publishedBaseUrl)
  const prove = provingOnce(publishedBaseUrl)
  return coalesce(async (): Promise<Served> => {
    let bytes
    try {
      bytes = await store.current()
    } catch (error) {
      const code = codeOf(error)
      log.error({ code, err: error }, 'the stored recommendation cannot be read; the seed is served')
      // A store that names damage has been reached.
      return { run: seed, seed: true, storeAnswers: code === 'storage_damaged' }
    }
    if (bytes === null) return { run: seed, seed: true, storeAnswers: true }
    try {
      return { run: prove(bytes), seed: false, storeAnswers: true }
    } catch (error) {
      log.error(
        { code: codeOf(error), err: error },
        'the stored recommendation is damaged; the seed is served',
      )
      return { run: seed, seed: true, storeAnswers: true }
    }
  })
}

/** Proves the same bytes once: between two runs nothing else is read. */
function provingOnce(publishedBaseUrl: string): (bytes: Uint8Array) => StoredRun {
  let proved: { bytes: Uint8Array; run: StoredRun } | null = null
  return (bytes) => {
    if (proved === null || Buffer.compare(proved.bytes, bytes) !== 0)
      proved = { bytes, run: withBaseUrl(proveRun(bytes), publishedBaseUrl) }
    return proved.run
  }
}

function codeOf(error: unknown): string {
  return error instanceof Refusal ? error.code : 'internal_error'
}
