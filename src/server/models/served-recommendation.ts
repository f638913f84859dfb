import type { StoredRun } from '../../domain/models/schema.ts'
import { seedRun } from '../../domain/models/seed.ts'
import type { Served } from '../../domain/models/shortlist.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import type { Objects } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Log } from '../route.ts'
import { singleFlight } from '../single-flight.ts'

/** Reads the current recommendation. */
export type ServedRecommendation = () => Promise<Served>

/**
 * Reads and verifies the stored recommendation for every request. If it is missing, unreadable or damaged, the built-in
 * seed is served (docs/free-models.md) and an error is logged.
 *
 * @param publishedBaseUrl URL of the routing service to publish instead of the stored one
 */
export function servedRecommendation(
  store: Pick<Objects['recommendations'], 'current'>,
  publishedBaseUrl: string,
  log: Log,
): ServedRecommendation {
  const publishedSeedRun = { ...seedRun(), baseUrl: publishedBaseUrl }
  const seed = (storeAnswers: boolean): Served => ({ run: publishedSeedRun, seed: true, storeAnswers })
  // Verify the same bytes only once: they change only with a new run.
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
      const problem = bytes ? 'is damaged' : 'cannot be read'
      log.error({ code, err: error }, `the stored recommendation ${problem}; the seed is served`)
      // A store that reports damage was reachable.
      return seed(bytes !== undefined || code === 'storage_damaged')
    }
  })
}
