import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Database } from '../../../src/adapters/sqlite/database.ts'
import { CACHE_BOUNDS, libsqlAnswerCache } from '../../../src/adapters/state/answer-cache.ts'
import type { CacheBounds } from '../../../src/adapters/state/answer-cache.ts'
import { libsqlChatLedger } from '../../../src/adapters/state/chat-ledger.ts'
import type { State } from '../../../src/domain/ports.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { openStore } from '../sqlite/lock-holder.ts'
import { libsqlEvaluations, libsqlRouterAllowance } from '../../../src/adapters/state/evaluations.ts'

/** The address of a state database of the test's own. */
export const stateUrl = async (): Promise<string> =>
  pathToFileURL(join(await temporaryFolder(), 'state.db')).href

/**
 * A connection of its own to a state database, closed when the test ends.
 *
 * @param fast as the chat opens it
 */
export const openState = (url: string, fast = false): Database => openStore('state', url, { fast })

export interface OpenChat {
  ledger: State['chat']
  /** For what no port tells. */
  database: Database
  cache(bounds?: CacheBounds): State['answers']
  /** Keys of damaged answers, in the order they were met. */
  damaged: string[]
  /** The same store as another process sees it; in memory there is but one. */
  another(): OpenChat
}

/** An empty store of the test's own; how a contract is run against an engine. */
export type ChatOpener = () => Promise<OpenChat>

export const chatInFile: ChatOpener = async () => connectChat(await stateUrl())

export const chatInMemory: ChatOpener = () => {
  const opened = connectChat(':memory:')
  const same: OpenChat = { ...opened, another: () => same }
  return Promise.resolve(same)
}

/** The store at a URL through a connection of its own. */
export function connectChat(url: string): OpenChat {
  const store = openState(url, true)
  const damaged: string[] = []
  return {
    ledger: libsqlChatLedger(store),
    database: store,
    cache: (bounds = CACHE_BOUNDS) => libsqlAnswerCache(store, (key) => damaged.push(key), bounds),
    damaged,
    another: () => connectChat(url),
  }
}

interface OpenEvaluations {
  evaluations: State['evaluations']
  allowance: State['allowance']
  /** The same store as another process sees it; in memory there is but one. */
  another(): OpenEvaluations
}

/** An empty store of the test's own; how a contract is run against an engine. */
export type EvaluationsOpener = () => Promise<OpenEvaluations>

export const evaluationsInFile: EvaluationsOpener = async () => connectEvaluations(await stateUrl())

export const evaluationsInMemory: EvaluationsOpener = () => {
  const opened = connectEvaluations(':memory:')
  const same: OpenEvaluations = { ...opened, another: () => same }
  return Promise.resolve(same)
}

/** The store at a URL through a connection of its own. */
export function connectEvaluations(url: string): OpenEvaluations {
  const store = openState(url)
  return {
    evaluations: libsqlEvaluations(store),
    allowance: libsqlRouterAllowance(store),
    another: () => connectEvaluations(url),
  }
}
