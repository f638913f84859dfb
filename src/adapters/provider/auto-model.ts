import { requestShareOf } from '../../domain/agent/budget.ts'
import type { ModelCall, ModelEvent } from '../../domain/agent/model-call.ts'
import { DEFAULT_DAILY_LIMIT } from '../../domain/models/quota.ts'
import { chatCandidates } from '../../domain/models/ranking.ts'
import type { ChatCandidate } from '../../domain/models/ranking.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import type { ChatModel, Clock, ModelRouter, Objects, State } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'
import { TimeLimitExceeded, withTimeLimit } from '../http.ts'
import { classifyResponse } from '../router/classify.ts'
import { openRouter } from '../router/router.ts'
import { openProvider, withoutEvidence } from './chat-model.ts'
import type { IdleTimeouts } from './provider-stream.ts'
import { failedUpstream } from './upstream.ts'
import type { FailedRound } from './upstream.ts'

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

/** Maximum number of models tried in one round: the account has few requests a day. */
const MAX_MODELS = 3

/** Pause of a rate-limited model in milliseconds: the default if its response names none, and the maximum. */
const BUSY_MS = 60_000
const MAX_BUSY_MS = 3_600_000

/** Output tokens of a reasoning model, including its reasoning. They are free. */
const THINKING_MAX_TOKENS = 3_000

/**
 * Opens the best model of the current recommendation, at a price of zero and with providers that keep no prompts.
 * If the model reaches its own rate limit before any text, the next model that can chat is tried; the account's
 * limit applies to all models.
 */
export function openAutoModel(options: AutoModelOptions): ChatModel {
  const { base, key, referer, userAgent, clock, allowance } = options
  const headers = { 'http-referer': referer, 'x-openrouter-title': 'dash' }
  const provider = openProvider({ ...options, headers })
  const router = openRouter({ base, key, referer, userAgent, clock })
  const limit = dailyLimit(router, clock)
  const recommended = recommendedModels(options.recommendations, clock)
  const busyUntil = new Map<string, Instant>()
  const availableModels = async (): Promise<ChatCandidate[]> =>
    (await recommended()).filter(({ id }) => (busyUntil.get(id) ?? -Infinity) <= clock())

  /**
   * @returns the end of the model's own rate limit if it was reached before any text, with the failed round; null
   *   when the round is over
   */
  async function* runModel(
    candidate: ChatCandidate,
    call: ModelCall,
    signal: AbortSignal,
    permit: () => Promise<boolean>,
  ): AsyncGenerator<ModelEvent, { at: Instant; failed: FailedRound } | null> {
    const target = { model: candidate.id, extra: extraFields(candidate) }
    const bounded = withThinkingTokens(candidate, call)
    let hasText = false
    for await (const event of provider.run(target, bounded, signal, permit)) {
      const at = event.kind === 'failed' && !hasText ? rateLimitEnd(event, clock()) : null
      if (event.kind === 'failed' && at !== null) return { at, failed: event }
      if (event.kind === 'text') hasText = true
      yield withoutEvidence(event)
    }
    return null
  }

  return {
    async name() {
      const [first] = await availableModels()
      return (first ?? (await recommended())[0])?.id ?? ''
    },

    requestsPerDay: () => limit.latest(),

    async *ask(call, signal, turn) {
      // If every model is rate-limited, another request would only use up the day's quota.
      let failure = unsentRound((await recommended()).length > 0 ? 'http_429' : 'http_404')
      for (const candidate of (await availableModels()).slice(0, MAX_MODELS)) {
        const permit = async (): Promise<boolean> => {
          const perDay = await limit.current(signal)
          const perAddress = requestShareOf(perDay, options.requestShare)
          const turnShare = turn === undefined ? undefined : { turn, perAddress }
          return allowance.countChatRequest(candidate.id, clock(), perDay, turnShare)
        }
        const retry = yield* runModel(candidate, call, signal, permit)
        if (retry === null) return
        busyUntil.set(candidate.id, retry.at)
        failure = retry.failed
      }
      yield withoutEvidence(failure)
    },

    async close() {
      await provider.close()
      await router.close()
    },
  }
}

/** Returns the end of a model's own rate limit; null for every other failure. */
function rateLimitEnd({ evidence }: FailedRound, now: Instant): Instant | null {
  if (evidence === null) return null
  const { class: kind, status, retryAt } = classifyResponse({ ...evidence, ending: 'whole', endedAt: now })
  const isModelLimit = kind === 'model_rate_limit' || (kind === 'ambiguous' && status === 429)
  return isModelLimit ? Math.min(Math.max(retryAt ?? now + BUSY_MS, now), now + MAX_BUSY_MS) : null
}

/**
 * Request fields that allow only a price of zero, providers that keep no data, and no fallback model: the service
 * declines the request otherwise.
 */
function extraFields({ isReasoning }: ChatCandidate): Record<string, unknown> {
  return {
    provider: { max_price: { prompt: 0, completion: 0 }, data_collection: 'deny' },
    ...(isReasoning ? { reasoning: { effort: 'low' } } : {}),
  }
}

function withThinkingTokens({ isReasoning }: ChatCandidate, call: ModelCall): ModelCall {
  if (!isReasoning) return call
  return { ...call, maxOutputTokens: Math.max(call.maxOutputTokens, THINKING_MAX_TOKENS) }
}

function unsentRound(code: 'http_429' | 'http_404'): FailedRound {
  return failedUpstream(code, { dispatched: false })
}

/** A new recommendation takes effect after this time at the latest. */
const RECOMMENDATION_TTL_MS = 10_000

/**
 * Reads the models of the current recommendation that can chat, best first; none while nothing is stored. The
 * built-in seed does not count: its models were never evaluated.
 *
 * @throws Refusal of the store if it cannot be read or holds invalid data
 */
function recommendedModels(
  store: Pick<Objects['recommendations'], 'current'>,
  clock: Clock,
): () => Promise<readonly ChatCandidate[]> {
  let cached: { at: Instant; read: Promise<readonly ChatCandidate[]> } | null = null
  const read = async (): Promise<readonly ChatCandidate[]> => {
    const bytes = await store.current()
    return bytes === null ? [] : chatCandidates(proveRun(bytes))
  }
  return () => {
    const at = clock()
    if (cached !== null && at >= cached.at && at - cached.at < RECOMMENDATION_TTL_MS) return cached.read
    const pending = { at, read: read() }
    cached = pending
    pending.read.catch(() => {
      if (cached === pending) cached = null
    })
    return pending.read
  }
}

/** The service's own numbers may be a minute old. */
const LIMIT_TTL_MS = 60_000

/** Short, because a chat user waits for this response. */
const KEY_TIMEOUT_MS = 2_000

/**
 * The account's requests per day, as the service reports them for the key; the limit of an account without credits
 * if it does not.
 */
interface DailyLimit {
  /** At most a minute old. */
  current(signal: AbortSignal): Promise<number>
  /** Returns the last known limit immediately if there is one, and refreshes a stale one in the background. */
  latest(): Promise<number>
}

function dailyLimit(router: Pick<ModelRouter, 'key'>, clock: Clock): DailyLimit {
  let cached: { limit: number; at: Instant } | null = null
  let refreshing: Promise<number> | null = null
  const current = async (signal: AbortSignal): Promise<number> => {
    const at = clock()
    if (cached !== null && at >= cached.at && at - cached.at < LIMIT_TTL_MS) return cached.limit
    const limit = (await fetchDailyLimit(router, signal)) ?? cached?.limit ?? DEFAULT_DAILY_LIMIT
    cached = { limit, at }
    return limit
  }
  return {
    current,
    async latest() {
      refreshing ??= current(new AbortController().signal)
        .catch(() => cached?.limit ?? DEFAULT_DAILY_LIMIT)
        .finally(() => (refreshing = null))
      return cached?.limit ?? refreshing
    },
  }
}

/** Returns null if the service does not respond in time. */
async function fetchDailyLimit(
  router: Pick<ModelRouter, 'key'>,
  signal: AbortSignal,
): Promise<number | null> {
  try {
    const key = await withTimeLimit(KEY_TIMEOUT_MS, signal, (limitedSignal) => router.key(limitedSignal))
    return 'facts' in key ? (key.facts?.limit ?? DEFAULT_DAILY_LIMIT) : null
  } catch (error) {
    if (error instanceof TimeLimitExceeded) return null
    throw error
  }
}
