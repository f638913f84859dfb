import type { StoredRun } from '../../domain/models/schema.ts'
import { seedRun } from '../../domain/models/seed.ts'
import type { Served } from '../../domain/models/shortlist.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import type { Objects } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Log } from '../route.ts'
import { singleFlight } from '../single-flight.ts'

/** Reads the recommendation that is served now. */
export type ServedRecommendation = () => Promise<Served>

/**
 * The stored recommendation, read and proved for every request, or the built-in seed while there is none, none that can
 * be read, or none that is sound: the contract names that fallback (docs/free-models.md). Each reason is logged.
 *
 * @param publishedBaseUrl address of the routing service to publish, whatever the stored run says
 */
export function servedRecommendation(
  store: Pick<Objects['recommendations'], 'current'>,
  publishedBaseUrl: string,
  log: Log,
): ServedRecommendation {
  const seedRunHere = { ...seedRun(), baseUrl: publishedBaseUrl }
  const seed = (storeAnswers: boolean): Served => ({ run: seedRunHere, seed: true, storeAnswers })
  // The same bytes are proved once: between two runs nothing else is read.
  let proved: { bytes: Uint8Array; run: StoredRun } | null = null
  return singleFlight(async (): Promise<Served> => {
    let bytes: Uint8Array | null | undefined
    try {
      bytes = await store.current()
      if (bytes === null) return seed(true)
      if (proved === null || Buffer.compare(proved.bytes, bytes) !== 0)
        proved = { bytes, run: { ...proveRun(bytes), baseUrl: publishedBaseUrl } }
      return { run: proved.run, seed: false, storeAnswers: true }
    } catch (error) {
      const code = error instanceof Refusal ? error.code : 'internal_error'
      const flaw = bytes ? 'is damaged' : 'cannot be read'
      log.error({ code, err: error }, `the stored recommendation ${flaw}; the seed is served`)
      // A store that names damage has been reached.
      return seed(bytes !== undefined || code === 'storage_damaged')
    }
  })
}
