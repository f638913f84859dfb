import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { onTestFinished } from 'vitest'
import { database } from '../../../src/adapters/sqlite/database.ts'
import { migrationsOf } from '../../../src/adapters/sqlite/migrate.ts'
import { libsqlEvaluations, libsqlRouterAllowance } from '../../../src/adapters/state/evaluations.ts'
import type { State } from '../../../src/domain/ports.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

export interface OpenEvaluations {
  evaluations: State['evaluations']
  allowance: State['allowance']
  /** The same store as another process sees it; in memory there is but one. */
  another(): OpenEvaluations
}

/** An empty store of the test's own; how a contract is run against an engine. */
export type EvaluationsOpener = () => Promise<OpenEvaluations>

export const evaluationsInFile: EvaluationsOpener = async () =>
  connectEvaluations(pathToFileURL(join(await temporaryFolder(), 'state.db')).href)

export const evaluationsInMemory: EvaluationsOpener = () => {
  const opened = connectEvaluations(':memory:')
  const same: OpenEvaluations = { ...opened, another: () => same }
  return Promise.resolve(same)
}

/** The store at a URL through a connection of its own. */
export function connectEvaluations(url: string): OpenEvaluations {
  const store = database({
    location: { url, authToken: null },
    store: 'state',
    migrationsFolder: migrationsOf('state'),
    nativeBusyMs: 10,
    retryMs: 5_000,
  })
  onTestFinished(() => store.close())
  return {
    evaluations: libsqlEvaluations(store),
    allowance: libsqlRouterAllowance(store),
    another: () => connectEvaluations(url),
  }
}
