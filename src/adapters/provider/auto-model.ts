import { requestShareOf } from '../../domain/agent/budget.ts'
import type { ChatModel } from '../../domain/ports.ts'
import type { ModelCall } from '../../domain/agent/model-call.ts'
import { classifyAnswer } from '../../domain/models/classify-answer.ts'
import type { ChatCandidate } from '../../domain/models/chat-candidates.ts'
import type { Clock, RecommendationStore, RouterAllowance } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'
import { openRouter } from '../router/router.ts'
import { chatDialect } from './chat-completions.ts'
import { toModelEvent } from './chat-model.ts'
import { dailyLimit } from './daily-limit.ts'
import type { RoundEnd } from './dialect.ts'
import { upstreamError } from './failure.ts'
import { recommendedModels } from './recommended.ts'
import type { SilenceLimits } from './reply.ts'
import { askOnce } from './round.ts'
import { openUpstream } from './upstream.ts'

export interface AutoModelOptions extends SilenceLimits {
  /** API base of the routing service, without a slash at its end. The key is sent to nowhere else. */
  base: string
  key: string
  /** Names the product to the service: the address under which it is used. */
  referer: string
  recommendations: Pick<RecommendationStore, 'current'>
  /** Shared with the evaluation of models; a request is counted before it is sent. */
  allowance: RouterAllowance
  /** Share of the account's daily requests, in millionths, that one address may send. */
  requestShare: number
  clock: Clock
}

/** Models asked in one round: each request is one of the few of the day. */
const MOST_TRIES = 3

/** How long a model that had no room is left alone, when it does not tell, and at most. */
const BUSY_MS = 60_000
const MOST_BUSY_MS = 3_600_000

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

  return {
    async name() {
      const [first] = await free()
      return (first ?? (await recommended())[0])?.id ?? ''
    },

    requestsPerDay: () => limit.latest(),

    async *ask(call, signal, turn) {
      // Where every model is busy, one more request would only be one less of the day.
      let end: RoundEnd = declined((await recommended()).length > 0 ? 'http_429' : 'http_404')
      for (const candidate of (await free()).slice(0, MOST_TRIES)) {
        const perDay = await limit.current(signal)
        const asking =
          turn === undefined ? undefined : { turn, perAddress: requestShareOf(perDay, options.requestShare) }
        const counted = await allowance.countChatRequest(candidate.id, clock(), perDay, asking)
        signal.throwIfAborted()
        if (!counted) {
          end = declined('http_429')
          break
        }
        let spoken = false
        let retryAt: Instant | null = null
        const to = { model: candidate.id, extra: extraOf(candidate) }
        for await (const event of askOnce(
          upstream,
          chatDialect(),
          options,
          to,
          roomFor(candidate, call),
          signal,
        )) {
          if (event.kind === 'text') spoken = true
          retryAt = event.kind === 'failed' && !spoken ? rateLimitEnd(event, clock()) : null
          if (retryAt !== null && event.kind === 'failed') end = event
          else yield toModelEvent(event)
        }
        if (retryAt === null) return
        busyUntil.set(candidate.id, retryAt)
      }
      yield toModelEvent(end)
    },

    async close() {
      await upstream.close()
      await router.close()
    },
  }
}

/** When a model that met its own rate limit may be asked again; null for every other failure. */
function rateLimitEnd({ evidence }: Extract<RoundEnd, { kind: 'failed' }>, now: Instant): Instant | null {
  if (evidence === null) return null
  const answer = { ...evidence, ending: 'whole' as const, endedAt: now, latencyMs: 0 }
  const { class: kind, status, retryAt } = classifyAnswer(answer)
  const own = kind === 'model_rate_limit' || (kind === 'ambiguous' && status === 429)
  return own ? Math.min(Math.max(retryAt ?? now + BUSY_MS, now), now + MOST_BUSY_MS) : null
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

function declined(code: 'http_429' | 'http_404'): RoundEnd {
  return { kind: 'failed', ...upstreamError(code, { dispatched: false }).round }
}
