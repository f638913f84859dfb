import type { Instant } from '../time.ts'
import type { LiteQuestion } from './lite/suite.ts'

/** The model-routing service and what it answers; docs/evaluating-models.md tells what it is asked, and when. */

/** API base of the public routing service. */
export const BASE_URL = 'https://openrouter.ai/api/v1'

/** How an answer came to its end. */
export type AnswerEnding = 'whole' | 'cut' | 'too-large' | 'timeout' | 'unreachable'

/** One answer as it came, or did not; {@link classifyAnswer} tells what it means. */
export interface RouterAnswer {
  /** HTTP status; null when there was no answer. */
  status: number | null
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>
  /** As far as it was read. */
  body: string
  ending: AnswerEnding
  /** When the answer was whole, or given up. */
  endedAt: Instant
  /** From the call to the end of its answer, in milliseconds. */
  latencyMs: number
}

/** One chat call of an evaluation. */
export interface ChatCall {
  /** `vendor/model:free` */
  model: string
  question: LiteQuestion
  /** Limit of the answer, in tokens, what the model thinks included. */
  maxTokens: number
  /** False for a model that takes no temperature. */
  temperature: boolean
  /** True to ask a model that thinks to do little of it. */
  lowEffort: boolean
}

/**
 * The routing service. A call that fails on its way is an answer too, so that it can be classified; only an abort
 * throws. The key goes to the configured base alone, and no redirect is followed.
 */
export interface ModelRouter {
  /** False when no key is configured: nothing but the catalogue can be asked then. */
  hasKey: boolean
  /** Every model the service lists. Costs no quota. */
  catalogue(signal: AbortSignal): Promise<RouterAnswer>
  /** What the key has left. Costs no quota; the service may keep an answer for about a minute. */
  key(signal: AbortSignal): Promise<RouterAnswer>
  /** Who serves a model, and how well. Costs no quota. */
  endpoints(model: string, signal: AbortSignal): Promise<RouterAnswer>
  /** Asks a model, at a price of zero, without a fallback to any other. Costs one request of the day. */
  chat(call: ChatCall, signal: AbortSignal): Promise<RouterAnswer>
}
