import { parseRetryAfter } from '../http.ts'
import { addDays, dayOf, startOfDay } from '../time.ts'
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

/** Nobody waits longer; a greater number is a mistake, or an attack. */
const LONGEST_WAIT_SECONDS = 172_800

/**
 * The earliest time to ask again, as an answer tells it: the latest of all it names.
 *
 * @param header value of `Retry-After`: seconds, or a date
 * @param seconds what the body names, of any type
 * @param resetAt when the limit begins anew
 * @param now when the answer came
 * @returns null when it tells nothing
 */
export function retryAtOf(
  header: string | undefined,
  seconds: readonly unknown[],
  resetAt: Instant | null,
  now: Instant,
): Instant | null {
  const times = [
    parseRetryAfter(header, now, LONGEST_WAIT_SECONDS),
    ...seconds.map((each) => afterSeconds(each, now)),
    resetAt,
  ]
  const told = times.filter((at) => at !== null)
  return told.length === 0 ? null : Math.max(now, ...told)
}

/** The midnight UTC that ends the day of an instant. */
export function utcMidnightAfter(instant: Instant): Instant {
  return startOfDay(addDays(dayOf(instant), 1))
}

function afterSeconds(seconds: unknown, now: Instant): Instant | null {
  if (typeof seconds !== 'number' || !(seconds >= 0)) return null
  return now + Math.ceil(Math.min(seconds, LONGEST_WAIT_SECONDS) * 1000)
}

/** Refusal codes of `/api/free-llm/*` and `/api/status/free-llm` (docs/free-models.md): the whole, closed list. */
export const FREE_MODELS_REFUSALS = [
  'invalid_limit',
  'invalid_filter',
  'method_not_allowed',
  'internal_error',
] as const
export type FreeModelsRefusal = (typeof FREE_MODELS_REFUSALS)[number]

/**
 * Text of a service as it may be published: well-formed Unicode, control characters as spaces, cut by code point.
 *
 * @param most code points kept
 */
export function publishedText(text: string, most: number): string {
  const plain = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
  // No code point is longer than two units: what is behind need not be looked at.
  const points = Array.from(plain.slice(0, 2 * most + 2).toWellFormed())
  return points.length > most ? `${points.slice(0, most - 1).join('')}…` : plain
}

/**
 * A published text that no reader takes for a recommendation: readers collect every text with a slash and `:free` as the
 * id of a model to use.
 */
export function withoutModelIds(text: string): string {
  return text.replaceAll(':free', ' (free)')
}

/** A JSON value with every text changed, names of fields included. */
export function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [change(name), mapTexts(item, change)]),
  )
}

/** A JSON value whose every text, names of fields included, is well-formed Unicode. */
export function wellFormed(value: unknown): unknown {
  return mapTexts(value, (text) => text.toWellFormed())
}
