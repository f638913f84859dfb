import { openRecommendations } from '../adapters/objects/open.ts'
import type { OpenRecommendations } from '../adapters/objects/archive.ts'
import { database } from '../adapters/sqlite/database.ts'
import { migrationsOf } from '../adapters/sqlite/migrate.ts'
import { openRouter } from '../adapters/router/router.ts'
import { memoryShell } from '../adapters/sandbox/shell.ts'
import { libsqlEvaluations } from '../adapters/state/evaluations.ts'
import type { Clock } from '../domain/ports.ts'
import type { EvaluatePorts } from '../jobs/models/evaluation-context.ts'
import { makeLiteSuite } from '../jobs/models/lite-suite.ts'
import { listeningUrl } from './settings/config.ts'
import type { Config } from './settings/config.ts'
import { pause, isDeadProcess, thisProcess } from './process-identity.ts'
import { BATCH_BUSY } from './wire-audit.ts'

const IN_MEMORY = { url: ':memory:', authToken: null }

/** The store of a rehearsal where nothing was ever kept. */
const NO_RECOMMENDATIONS: OpenRecommendations = {
  current: () => Promise.resolve(null),
  run: () => Promise.resolve(null),
  versions: () => Promise.resolve([]),
  put: () => Promise.reject(new Error('a rehearsal keeps nothing')),
  ping: () => Promise.resolve(),
  close: () => Promise.resolve(),
}

/**
 * What an evaluation of models needs; `close` ends everything it opened. Apart from wire.ts, since the service's client
 * and the sandbox take long to load.
 *
 * @param there which stores are used; the others are empty, and nothing can be kept in them
 */
export function openEvaluation(
  config: Config,
  clock: Clock,
  watch: Pick<EvaluatePorts, 'onProgress' | 'onNote'>,
  there: { state: boolean; objects: boolean } = { state: true, objects: true },
): { ports: EvaluatePorts; close: () => Promise<void> } {
  const state = database({
    location: there.state ? config.state : IN_MEMORY,
    store: 'state',
    migrationsFolder: migrationsOf('state'),
    ...BATCH_BUSY,
  })
  const referer = config.baseUrl ?? listeningUrl(config.host, config.port)
  const router = openRouter({ base: config.openRouterUrl, key: config.openRouterKey, referer, clock })
  const shell = memoryShell()
  const recommendations = there.objects ? openRecommendations(config.store) : NO_RECOMMENDATIONS
  return {
    ports: {
      router,
      evaluations: libsqlEvaluations(state),
      recommendations,
      makeSuite: (day) => makeLiteSuite(day, shell),
      baseUrl: config.publishedBaseUrl,
      clock,
      monotonic: () => performance.now(),
      sleep: pause,
      holder: thisProcess(),
      isDead: isDeadProcess,
      ...watch,
    },
    async close() {
      state.close()
      await router.close()
      await shell.close()
      await recommendations.close()
    },
  }
}
