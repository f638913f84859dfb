import pLimit from 'p-limit'
import { compareVersions } from '../../domain/models/changes.ts'
import { RANKING_VERSION } from '../../domain/models/schema.ts'
import type { RankedModel, StoredRun } from '../../domain/models/schema.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import type { Objects } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { singleFlight } from '../single-flight.ts'
import type { ServedRecommendation } from './routes.ts'

/** Newest runs that are read; for the changes, the first of them has none before it. */
export const RUNS_MAX = 61

const READS_AT_ONCE = 4

/** A stored run without its tasks, which need most of its memory. */
type RunSummary = Pick<StoredRun, 'rankingVersion' | 'updatedAt' | 'rejections'> & {
  /** Rank 1 first. */
  models: readonly Omit<RankedModel, 'evalSummary'>[]
}

/** A run by its version; null if it is missing or damaged. */
interface ReadRun {
  rankingVersion: string
  run: RunSummary | null
}

/** Reads the newest runs up to the served one, in ascending order. */
export type StoredRuns = () => Promise<readonly ReadRun[]>

type RunStore = Pick<Objects['recommendations'], 'run' | 'versions'>

/** Creates a reader that reads and verifies each sound run once: it never changes. */
export function storedRuns(store: RunStore, recommendation: ServedRecommendation): StoredRuns {
  let proved = new Map<string, RunSummary>()
  const limit = pLimit(READS_AT_ONCE)
  return singleFlight(async () => {
    const { run: current, seed } = await recommendation()
    // A run that a crash stored without making it the current one was never served.
    const isServed = (version: string): boolean =>
      seed || compareVersions(version, current.rankingVersion) <= 0
    const stored = await store.versions()
    const versions = stored
      .filter((version) => RANKING_VERSION.test(version) && isServed(version))
      .toSorted(compareVersions)
      .slice(-RUNS_MAX)
    const runs = await Promise.all(
      versions.map((rankingVersion) =>
        limit(async () => ({
          rankingVersion,
          run: proved.get(rankingVersion) ?? (await readRun(store, rankingVersion)),
        })),
      ),
    )
    proved = new Map(runs.flatMap(({ rankingVersion, run }) => (run ? [[rankingVersion, run]] : [])))
    return runs
  })
}

/** @returns null if the run is missing, damaged, or another one */
async function readRun(store: RunStore, version: string): Promise<RunSummary | null> {
  try {
    const bytes = await store.run(version)
    if (bytes === null) return null
    const { rankingVersion, updatedAt, rejections, models } = proveRun(bytes)
    if (rankingVersion !== version) return null
    const withoutTasks = models.map(({ evalSummary: _evalSummary, ...model }) => model)
    return { rankingVersion, updatedAt, rejections, models: withoutTasks }
  } catch (error) {
    if (error instanceof Refusal && error.code === 'storage_damaged') return null
    throw error
  }
}
