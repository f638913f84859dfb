import type { Database } from '../../../src/adapters/sqlite/database.ts'
import {
  CACHE_BOUNDS,
  libsqlAnswerCache,
  libsqlChatKeys,
  libsqlChatLedger,
} from '../../../src/adapters/state/chat-stores.ts'
import type { CacheBounds } from '../../../src/adapters/state/chat-stores.ts'
import type { State } from '../../../src/domain/ports.ts'
import { newDatabase, openStore } from '../sqlite/lock-holder.ts'
import { libsqlEvaluations, libsqlRouterAllowance } from '../../../src/adapters/state/job-stores.ts'

/** The address of a state database of the test's own. */
export const stateUrl = async (): Promise<string> => newDatabase().url

/**
 * Opens a separate connection to a state database, closed when the test ends.
 *
 * @param fast as the chat opens it
 */
export const openState = (url: string, fast = false): Database => openStore('state', url, { fast })

/** A state database by its ports. */
export interface OpenState {
  ledger: State['chat']
  keys: State['chatKeys']
  evaluations: State['evaluations']
  allowance: State['allowance']
  cache(bounds?: CacheBounds): State['answers']
  /** Keys of damaged answers, in the order of their detection. */
  damaged: string[]
  /** A client for data that no port returns. */
  database: Database
  /** The same store as another process sees it. */
  another(): OpenState
}

/** An empty store of the test's own; how a contract is run against an engine. */
export type StateOpener = () => Promise<OpenState>

function connect(url: string, fast: boolean): OpenState {
  const store = openState(url, fast)
  const damaged: string[] = []
  return {
    ledger: libsqlChatLedger(store),
    keys: libsqlChatKeys(store),
    evaluations: libsqlEvaluations(store),
    allowance: libsqlRouterAllowance(store),
    cache: (bounds = CACHE_BOUNDS) => libsqlAnswerCache(store, (key) => damaged.push(key), bounds),
    damaged,
    database: store,
    another: () => connect(url, fast),
  }
}

/** Opens the store at a URL through a separate connection, as a server does for its chat. */
export const connectChat = (url: string): OpenState => connect(url, true)

/** The same as an evaluation opens it. */
export const connectEvaluations = (url: string): OpenState => connect(url, false)

export const chatInFile: StateOpener = async () => connectChat(await stateUrl())
export const evaluationsInFile: StateOpener = async () => connectEvaluations(await stateUrl())
