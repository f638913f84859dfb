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
import { chatFormat } from './chat-completions.ts'
import { askOnce, published } from './chat-model.ts'
import type { IdleTimeouts } from './provider-stream.ts'
import { failedUpstream, openUpstream } from './upstream.ts'
import type { FailedRound } from './upstream.ts'

export interface AutoModelOptions extends IdleTimeouts {
  /** API base of the routing service, without a slash at its end. The key is sent to nowhere else. */
  base: string
  key: string
  /** Names the product to the service: the address under which it is used. */
  referer: string
  recommendations: Pick<Objects['recommendations'], 'current'>
  /** Shared with the evaluation of models; a request is counted before it is sent. */
  allowance: State['allowance']
  /** Share of the account's daily requests, in millionths, that one address may send. */
  requestShare: number
  clock: Clock
}

/** Models asked in one round: each request is one of the few of the day. */
const MAX_TRIES = 3

/** How long a model that had no room is left alone, when it does not tell, and at most. */
const BUSY_MS = 60_000
const MAX_BUSY_MS = 3_600_000

/** What a model that thinks may write, thoughts included; it costs nothing. */
const THINKING_MAX_TOKENS = 3_000

/**
 * The model of the current recommendation, at a price of zero and where nobody may keep what is said. When it meets its
 * own rate limit before it said anything, the next one that can chat is asked; an account's limit is met by all.
 */
export function openAutoModel(options: AutoModelOptions): ChatModel {
  const { base, key, referer, clock, allowance } = options
  const headers = { 'http-referer': referer, 'x-openrouter-title': 'dash' }
  const upstream = openUpstream({ base, key, headers })
  const router = openRouter({ base, key, referer, clock })
  const limit = dailyLimit(router, clock)
  const recommended = recommendedModels(options.recommendations, clock)
  const busyUntil = new Map<string, Instant>()
  const free = async (): Promise<ChatCandidate[]> =>
    (await recommended()).filter(({ id }) => (busyUntil.get(id) ?? -Infinity) <= clock())

  /** @returns when to ask a model again that met its own rate limit before any text; null when the round is over */
  async function* askModel(
    candidate: ChatCandidate,
    call: ModelCall,
    signal: AbortSignal,
  ): AsyncGenerator<ModelEvent, { at: Instant; failed: FailedRound } | null> {
    const to = { model: candidate.id, extra: extraOf(candidate) }
    let spoken = false
    for await (const event of askOnce(upstream, chatFormat, options, to, roomFor(candidate, call), signal)) {
      const at = event.kind === 'failed' && !spoken ? rateLimitEnd(event, clock()) : null
      if (event.kind === 'failed' && at !== null) return { at, failed: event }
      if (event.kind === 'text') spoken = true
      yield published(event)
    }
    return null
  }

  return {
    async name() {
      const [first] = await free()
      return (first ?? (await recommended())[0])?.id ?? ''
    },

    requestsPerDay: () => limit.latest(),

    async *ask(call, signal, turn) {
      // Where every model is busy, one more request would only be one less of the day.
      let refused = notSent((await recommended()).length > 0 ? 'http_429' : 'http_404')
      for (const candidate of (await free()).slice(0, MAX_TRIES)) {
        const perDay = await limit.current(signal)
        const asking =
          turn === undefined ? undefined : { turn, perAddress: requestShareOf(perDay, options.requestShare) }
        const counted = await allowance.countChatRequest(candidate.id, clock(), perDay, asking)
        signal.throwIfAborted()
        if (!counted) {
          refused = notSent('http_429')
          break
        }
        const retry = yield* askModel(candidate, call, signal)
        if (retry === null) return
        busyUntil.set(candidate.id, retry.at)
        refused = retry.failed
      }
      yield published(refused)
    },

    async close() {
      await upstream.close()
      await router.close()
    },
  }
}

/** When a model that met its own rate limit may be asked again; null for every other failure. */
function rateLimitEnd({ evidence }: FailedRound, now: Instant): Instant | null {
  if (evidence === null) return null
  const { class: kind, status, retryAt } = classifyResponse({ ...evidence, ending: 'whole', endedAt: now })
  const own = kind === 'model_rate_limit' || (kind === 'ambiguous' && status === 429)
  return own ? Math.min(Math.max(retryAt ?? now + BUSY_MS, now), now + MAX_BUSY_MS) : null
}

/** No price, nobody who keeps what is said, no list of others: a request that would need any of them is declined. */
function extraOf({ thinks }: ChatCandidate): Record<string, unknown> {
  return {
    provider: { max_price: { prompt: 0, completion: 0 }, data_collection: 'deny' },
    ...(thinks ? { reasoning: { effort: 'low' } } : {}),
  }
}

function roomFor({ thinks }: ChatCandidate, call: ModelCall): ModelCall {
  if (!thinks) return call
  return { ...call, maxOutputTokens: Math.max(call.maxOutputTokens, THINKING_MAX_TOKENS) }
}

function notSent(code: 'http_429' | 'http_404'): FailedRound {
  return failedUpstream(code, { dispatched: false })
}

/** A new recommendation counts after this long at the latest. */
const KEPT_MS = 10_000

/**
 * The models of the current recommendation that can chat, best first; none while nothing is stored. The built-in seed
 * is no recommendation to run on: nothing of it was ever measured.
 *
 * @throws Refusal of the store, when it cannot be read or holds anything else
 */
function recommendedModels(
  store: Pick<Objects['recommendations'], 'current'>,
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

/** The service itself may answer with numbers a minute old. */
const LIMIT_KEPT_MS = 60_000

/** A reader waits for this answer. */
const ANSWER_MS = 2_000

/**
 * Requests a day that the account has, as the service reports them for its key, or those of an account that never bought
 * credits.
 */
interface DailyLimit {
  /** At most a minute old. */
  current(signal: AbortSignal): Promise<number>
  /** The last one known, at once where there is any; a stale one is refreshed meanwhile. */
  latest(): Promise<number>
}

function dailyLimit(router: Pick<ModelRouter, 'key'>, clock: Clock): DailyLimit {
  let known: { limit: number; at: Instant } | null = null
  let refreshing: Promise<number> | null = null
  const current = async (signal: AbortSignal): Promise<number> => {
    const at = clock()
    if (known !== null && at >= known.at && at - known.at < LIMIT_KEPT_MS) return known.limit
    const limit = (await askKey(router, signal)) ?? known?.limit ?? DEFAULT_DAILY_LIMIT
    known = { limit, at }
    return limit
  }
  return {
    current,
    async latest() {
      refreshing ??= current(new AbortController().signal)
        .catch(() => known?.limit ?? DEFAULT_DAILY_LIMIT)
        .finally(() => (refreshing = null))
      return known?.limit ?? refreshing
    },
  }
}

/** null when the service does not answer. */
async function askKey(router: Pick<ModelRouter, 'key'>, signal: AbortSignal): Promise<number | null> {
  try {
    const key = await withTimeLimit(ANSWER_MS, signal, (limited) => router.key(limited))
    return 'facts' in key ? (key.facts?.limit ?? DEFAULT_DAILY_LIMIT) : null
  } catch (error) {
    if (error instanceof TimeLimitExceeded) return null
    throw error
  }
}
