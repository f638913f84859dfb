import { chatCandidates } from '../../domain/models/chat-candidates.ts'
import type { ChatCandidate } from '../../domain/models/chat-candidates.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import type { Clock, RecommendationStore } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'

/** A new recommendation counts after this long at the latest. */
const KEPT_MS = 10_000

/**
 * The models of the current recommendation that can chat, best first; none while nothing is stored. The built-in seed
 * is no recommendation to run on: nothing of it was ever measured.
 *
 * @throws Refusal of the store, when it cannot be read or holds anything else
 */
export function recommendedModels(
  store: Pick<RecommendationStore, 'current'>,
  clock: Clock,
): () => Promise<readonly ChatCandidate[]> {
  let kept: { at: Instant; read: Promise<readonly ChatCandidate[]> } | null = null
  const read = async (): Promise<readonly ChatCandidate[]> => {
    const bytes = await store.current()
    return bytes === null ? [] : chatCandidates(proveRun(bytes))
  }
  return () => {
    const at = clock()
    if (kept !== null && at >= kept.at && at - kept.at < KEPT_MS) return kept.read
    const reading = { at, read: read() }
    kept = reading
    reading.read.catch(() => {
      if (kept === reading) kept = null
    })
    return reading.read
  }
}
