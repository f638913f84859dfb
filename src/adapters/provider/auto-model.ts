import { LRUCache } from 'lru-cache'
import { requestShareOf } from '../../domain/agent/budget.ts'
import type { ModelCall, ModelEvent } from '../../domain/agent/model-call.ts'
import { DEFAULT_DAILY_LIMIT } from '../../domain/models/quota.ts'
import { chatModels } from '../../domain/models/ranking.ts'
import type { RankedModel } from '../../domain/models/schema.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import type { ChatModel, Clock, ModelRouter, State } from '../../domain/ports.ts'
import type { Objects } from '../../domain/year/ports.ts'
import { TimeLimitExceeded, withTimeLimit } from '../http.ts'
import { openRouter } from '../router/router.ts'
import { openProvider } from './chat-model.ts'
import type { IdleTimeouts } from './upstream.ts'

export interface AutoModelOptions extends IdleTimeouts {
  /** API base of the routing service without a trailing slash. The key is sent to this base only. */
  base: string
  key: string
  /** Identifies the product to the service: the URL under which it is used. */
  referer: string
  userAgent: string
  recommendations: Pick<Objects['recommendations'], 'current'>
  /** Shared with the evaluation of models; each request is counted before it is sent. */
  allowance: State['allowance']
  /** Share of the account's daily requests, in millionths, that one address may send. */
  requestShare: number
  clock: Clock
}

/** Output tokens of a reasoning model, including its reasoning. They are free. */
const THINKING_MAX_TOKENS = 3_000

/** Only a price of zero and providers that keep no data: the service declines the request otherwise. */
const PROVIDER = { max_price: { prompt: 0, completion: 0 }, data_collection: 'deny' }

/**
 * Opens the models of the current recommendation that can chat, at a price of zero and with providers that keep no
 * prompts. The routing service gets them as a list and uses the first that responds.
 */
export function openAutoModel(options: AutoModelOptions): ChatModel {
  const { base, key, referer, userAgent, clock, allowance } = options
  const headers = { 'http-referer': referer, 'x-openrouter-title': 'dash' }
  const provider = openProvider({ ...options, headers })
  const router = openRouter({ base, key, referer, userAgent, clock })
  const limit = dailyLimit(router)
  const recommended = recommendedModels(options.recommendations)

  return {
    async name() {
      return (await recommended())[0]?.id ?? ''
    },

    requestsPerDay: () => limit(true),

    async *ask(call, signal, turn) {
      const models = await recommended()
      const [first] = models
      if (first === undefined) return yield NO_MODEL
      const permit = async (): Promise<boolean> => {
        const perDay = await limit()
        signal.throwIfAborted()
        const perAddress = requestShareOf(perDay, options.requestShare)
        const turnShare = turn === undefined ? undefined : { turn, perAddress }
        return allowance.countChatRequest(first.id, clock(), perDay, turnShare)
      }
      const isReasoning = models.some(({ supportsReasoning }) => supportsReasoning)
      const target = {
        ids: models.map(({ id }) => id),
        extra: { provider: PROVIDER, ...(isReasoning ? { reasoning: { effort: 'low' } } : {}) },
      }
      const bounded = isReasoning ? withThinkingTokens(call) : call
      yield* provider.run(target, bounded, signal, permit)
    },

    async close() {
      await provider.close()
      await router.close()
    },
  }
}

function withThinkingTokens(call: ModelCall): ModelCall {
  return { ...call, maxOutputTokens: Math.max(call.maxOutputTokens, THINKING_MAX_TOKENS) }
}

const NO_MODEL: ModelEvent = {
  kind: 'failed',
  error: 'upstream_error',
  code: 'http_404',
  usage: null,
  dispatched: false,
}

/** A new recommendation takes effect after this time at the latest. */
const RECOMMENDATION_TTL_MS = 10_000

/**
 * Reads the models of the current recommendation that can chat, best first; none while nothing is stored. The
 * built-in seed does not count: its models were never evaluated.
 *
 * @returns a function that throws the refusals of the store if it cannot be read or holds invalid data
 */
function recommendedModels(
  store: Pick<Objects['recommendations'], 'current'>,
): () => Promise<readonly RankedModel[]> {
  const cache = new LRUCache<'current', readonly RankedModel[]>({
    max: 1,
    ttl: RECOMMENDATION_TTL_MS,
    async fetchMethod() {
      const bytes = await store.current()
      return bytes === null ? [] : chatModels(proveRun(bytes))
    },
  })
  return () => cache.forceFetch('current')
}

/** The service's own numbers may be a minute old. */
const LIMIT_TTL_MS = 60_000

/** Short, because a chat user waits for this response. */
const KEY_TIMEOUT_MS = 2_000

/**
 * Returns a function for the account's requests per day, as the service reports them for the key; the limit of an account
 * without credits if it does not. A limit is read again after a minute: in the background, where an older one may be
 * returned.
 */
function dailyLimit(router: Pick<ModelRouter, 'key'>): (mayBeOlder?: boolean) => Promise<number> {
  const cache = new LRUCache<'limit', number>({
    max: 1,
    ttl: LIMIT_TTL_MS,
    fetchMethod: async (_key, known = DEFAULT_DAILY_LIMIT) => (await fetchDailyLimit(router)) ?? known,
  })
  return (allowStale = false) => cache.forceFetch('limit', { allowStale })
}

/** Returns null if the service does not respond in time. */
async function fetchDailyLimit(router: Pick<ModelRouter, 'key'>): Promise<number | null> {
  const { signal } = new AbortController()
  try {
    const key = await withTimeLimit(KEY_TIMEOUT_MS, signal, (limited) => router.key(limited))
    return 'facts' in key ? (key.facts?.limit ?? DEFAULT_DAILY_LIMIT) : null
  } catch (error) {
    if (error instanceof TimeLimitExceeded) return null
    throw error
  }
}
