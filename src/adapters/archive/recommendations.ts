import { createStorage } from 'unstorage'
import type { Driver } from 'unstorage'
import type { RecommendationStore } from '../../domain/ports.ts'
import { readObject } from './read-object.ts'

/** A store of recommendations that holds connections; whoever opens it closes it. */
export type OpenRecommendations = RecommendationStore & { close(): Promise<void> }

const CURRENT = 'free-llm:current'
const RUNS = 'free-llm:runs'

const VERSION_PATTERN = /^\d{4}-\d{2}-\d{2}\.v\d{1,6}$/

/**
 * Recommendations on an unstorage engine: every run under `free-llm/runs/<rankingVersion>`, the newest also under
 * `free-llm/current`, the one object of the store that is ever replaced (docs/free-models.md).
 *
 * @param driver must refuse to overwrite an object with other bytes, but for writes with `replace`, which it does in one
 *   step
 * @param prepare resolves when the engine can be trusted with writes
 */
export function unstorageRecommendations(driver: Driver, prepare: () => Promise<void>): OpenRecommendations {
  const storage = createStorage({ driver })
  return {
    close: async () => storage.dispose(),

    current: () => readObject(storage, CURRENT),

    run: async (rankingVersion) => readObject(storage, runKey(rankingVersion)),

    async versions() {
      const keys: string[] = await driver.getKeys(RUNS, {})
      return keys.flatMap((key) => {
        const version = key.slice(key.lastIndexOf('/') + 1)
        return VERSION_PATTERN.test(version) && key.endsWith(`runs/${version}`) ? [version] : []
      })
    },

    async put(rankingVersion, bytes) {
      const key = runKey(rankingVersion)
      await prepare()
      await storage.setItemRaw(key, bytes)
      await storage.setItemRaw(CURRENT, bytes, { replace: true })
    },

    async ping() {
      await storage.hasItem(CURRENT)
    },
  }
}

function runKey(rankingVersion: string): string {
  if (!VERSION_PATTERN.test(rankingVersion))
    throw new Error(`${JSON.stringify(rankingVersion.slice(0, 80))} is no ranking version`)
  return `${RUNS}:${rankingVersion}`
}
