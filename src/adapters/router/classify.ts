import type { ResponseClass, CorrelatedFailure, Classification } from '../../domain/models/evaluation.ts'
import type { ModelResponse } from '../../domain/models/lite/suite.ts'
import { DAY_MS, addDays, dayOf, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { parseRetryAfter } from '../http.ts'
import { describeError, readResponseBody } from './response-body.ts'
import type { ErrorFacts } from './response-body.ts'

/** A response of the routing service, or why there is none. */
export interface RouterResponse {
  /** HTTP status; null when there was no response. */
  status: number | null
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>
  /** As far as it was read. */
  body: string
  /** How it came to its end. */
  ending: 'whole' | 'cut' | 'too-large' | 'timeout' | 'unreachable'
  /** When the response was whole, or given up. */
  endedAt: Instant
}

const PREVIEW_CODE_POINTS = 200

/** A greater number of seconds to wait is a mistake, or an attack. */
const LONGEST_WAIT_SECONDS = 172_800

/**
 * Classifies a response by status, headers and body, whether the body is JSON, HTML, an event stream or a part of one,
 * and also an error inside a 200 (docs/model-errors.md). The most specific evidence decides.
 */
export function classifyResponse(response: RouterResponse): Classification {
  const { endedAt } = response
  const { error, reply, readable } = readResponseBody(response.body)
  const headers = { ...error?.headers, ...response.headers }
  const reset = instantOfReset(headers['x-ratelimit-reset'], endedAt)
  const limit = countOf(headers['x-ratelimit-limit'])
  const waits = (error?.retryAfterSeconds ?? []).map((seconds) => afterSeconds(seconds, endedAt))
  const retryAt = latestOf(
    [parseRetryAfter(headers['retry-after'], endedAt, LONGEST_WAIT_SECONDS), ...waits],
    endedAt,
  )
  const within200 = response.status !== null && response.status < 300
  // An error inside a 200 has a status of its own.
  const status = !within200 ? response.status : error ? (error.status ?? 502) : null
  const resetInMs = reset === null ? null : reset - endedAt
  const facts = {
    ...(error ?? NO_ERROR),
    status: status ?? 0,
    within200,
    readable,
    limit,
    resetInMs,
    retryAt,
  }
  const decision = decideEnding(response, status, reply) ?? decide(facts)
  const midnight = decision.class === 'account_daily' ? startOfDay(addDays(dayOf(endedAt), 1)) : null
  const resetAt = reset ?? midnight
  return {
    correlated: null,
    ...decision,
    status,
    retryAt: latestOf([retryAt, resetAt], endedAt),
    limit,
    remaining: countOf(headers['x-ratelimit-remaining']),
    resetAt,
    providerName: error?.providerName ?? null,
    reply: decision.class === 'answered' ? reply : null,
    preview: previewOf(response),
  }
}

const NO_ERROR = describeError({})

function afterSeconds(seconds: unknown, now: Instant): Instant | null {
  if (typeof seconds !== 'number' || !(seconds >= 0)) return null
  return now + Math.ceil(Math.min(seconds, LONGEST_WAIT_SECONDS) * 1000)
}

/** The latest of the known times, and never before now; null when none is known. */
function latestOf(times: readonly (Instant | null)[], now: Instant): Instant | null {
  const known = times.filter((at) => at !== null)
  return known.length === 0 ? null : Math.max(now, ...known)
}

/** Epoch milliseconds, or seconds; null for a time that no limit can have. */
function instantOfReset(text: string | undefined, now: Instant): Instant | null {
  if (text === undefined || !/^\d{10}(\d{3})?$/.test(text.trim())) return null
  const at = Number(text) * (text.trim().length === 10 ? 1000 : 1)
  return at >= now - DAY_MS && at <= now + 2 * DAY_MS ? at : null
}

function countOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text.trim()) ? Number(text) : null
}

/** Names of the account that asked: the service repeats them in its errors, and previews are published. */
const IDENTIFYING: readonly [RegExp, string][] = [
  [/"user_id"\s*:\s*"[^"]*"?,?/g, ''],
  [/\bBearer\s+[^\s"'<>]+/gi, 'Bearer (key)'],
  [/\bsk-[\w-]{6,}/g, '(key)'],
  [/\b(user|org)_[A-Za-z0-9]{4,}/g, '($1)'],
]

function previewOf({ body, ending, status }: RouterResponse): string {
  const whole = body.replaceAll(/\s+/g, ' ').trim().toWellFormed()
  const line = IDENTIFYING.reduce((text, [name, stand]) => text.replaceAll(name, stand), whole)
  if (line !== '') return Array.from(line).slice(0, PREVIEW_CODE_POINTS).join('')
  return status === null ? ending : `${status} without a body`
}

/** Everything the rules go by. */
interface Facts extends Omit<ErrorFacts, 'status'> {
  status: number
  /** True when the HTTP status is that of a success. */
  within200: boolean
  readable: boolean
  /** Time until the named limit resets. */
  resetInMs: number | null
  /** Requests the named limit allows. */
  limit: number | null
  /** Earliest time of another request, where a header or the error names one. */
  retryAt: Instant | null
}

interface Decision {
  class: ResponseClass
  because: string
  correlated?: CorrelatedFailure
}

/** Decides replies, and responses that did not come whole. */
function decideEnding(
  { ending, body }: RouterResponse,
  status: number | null,
  reply: ModelResponse | null,
): Decision | null {
  if (ending === 'timeout') return { class: 'timeout', because: 'no whole answer in time' }
  if (ending === 'unreachable')
    return { class: 'ambiguous', because: 'no connection', correlated: 'service_down' }
  if (status !== null) return null
  if (ending !== 'whole') return { class: 'invalid_answer', because: `the answer was ${ending}` }
  if (reply && !saysNothing(reply)) return { class: 'answered', because: 'a message' }
  if (reply?.finishReason === 'content_filter')
    return { class: 'refused', because: 'an empty message, filtered' }
  if (reply) return { class: 'invalid_answer', because: 'an empty message' }
  return { class: 'invalid_answer', because: body.trim() === '' ? 'an empty answer' : 'no message in a 200' }
}

/** A model that reasoned until its tokens were used up was cut short; any other says something, or was not served. */
function saysNothing({ text, toolCalls, finishReason }: ModelResponse): boolean {
  return finishReason !== 'length' && toolCalls.length === 0 && text.trim() === ''
}

/** Decides what an error means. */
function decide(facts: Facts): Decision {
  const { limitSource, availability, filtered, within200 } = facts
  return (
    named(`limit_source ${limitSource}`) ??
    named(`availability ${availability}`) ??
    (filtered ? { class: 'refused', because: 'reasons of a filter' } : null) ??
    byMessage(facts) ??
    byHeaders(facts) ??
    byProvider(facts) ??
    (within200 ? byStatusWithin200(facts) : byStatus(facts))
  )
}

/** Causes that the service names, each by its field and its value. */
const NAMED: Readonly<Record<string, ResponseClass>> = {
  'limit_source openrouter_free_tier_daily': 'account_daily',
  'limit_source openrouter_free_tier_minute': 'account_minute',
  'limit_source openrouter_in_flight_budget': 'account_busy',
  'limit_source openrouter_key_limit': 'account_key_limit',
  'limit_source openrouter_credits': 'account_balance',
  'limit_source upstream_provider_shared_pool': 'model_rate_limit',
  'availability capacity_exhausted': 'model_rate_limit',
  'availability temporarily_unavailable': 'provider_down',
  'availability privacy_restricted': 'account_policy',
  'availability free_variant_ended': 'model_gone',
  'availability no_endpoints': 'model_gone',
  'availability model_deprecated': 'model_gone',
  'availability model_unavailable_upstream': 'model_gone',
  'availability model_not_found': 'model_gone',
  'availability region_restricted': 'model_gone',
  'availability constraint_filtered': 'model_unsupported',
  'availability wrong_endpoint': 'model_unsupported',
  'error_type provider_overloaded': 'provider_down',
  'error_type provider_unavailable': 'provider_down',
  'error_type server': 'provider_down',
  'error_type timeout': 'timeout',
  'error_type authentication': 'account_key',
  'error_type payment_required': 'account_balance',
  'error_type not_found': 'model_gone',
  'error_type content_policy_violation': 'refused',
  'error_type refusal': 'refused',
  'error_type context_length_exceeded': 'model_unsupported',
  'error_type invalid_request': 'model_unsupported',
}

function named(cause: string): Decision | null {
  const found = Object.hasOwn(NAMED, cause) ? NAMED[cause] : undefined
  return found === undefined ? null : { class: found, because: cause }
}

/** The service's own words for an error of a status; no provider's count. */
const MESSAGES: readonly { of: readonly number[]; says: RegExp; class: ResponseClass; because: string }[] = [
  { of: [404], says: /data policy/i, class: 'account_policy', because: 'message data policy' },
  { of: [402, 403], says: /key limit exceeded/i, class: 'account_key_limit', because: 'message key limit' },
  {
    of: [404],
    says: /support (tool use|the provided)/i,
    class: 'model_unsupported',
    because: 'message no support',
  },
  { of: [403], says: /\b(region|country|territory)\b/i, class: 'model_gone', because: 'message region' },
]

function byMessage({ message, fromProvider, status, within200 }: Facts): Decision | null {
  if (fromProvider) return null
  const [free, per] = /free-models-per-(day|min)/.exec(message) ?? []
  if (free) return { class: per === 'day' ? 'account_daily' : 'account_minute', because: `message ${free}` }
  const rule = MESSAGES.find(({ of, says }) => !within200 && of.includes(status) && says.test(message))
  return rule ? { class: rule.class, because: rule.because } : null
}

/** No daily limit is this small, and no minute's limit this large. */
const SMALLEST_DAILY_LIMIT = 50
const LONGEST_MINUTE_WAIT_MS = 120_000

/** Limits in headers are the service's own: no provider's are passed on. */
function byHeaders({ fromProvider, limit, status, resetInMs }: Facts): Decision | null {
  if (status !== 429 || limit === null || fromProvider) return null
  const daily = resetInMs === null ? limit >= SMALLEST_DAILY_LIMIT : resetInMs > LONGEST_MINUTE_WAIT_MS
  return { class: daily ? 'account_daily' : 'account_minute', because: 'headers of a limit' }
}

/** A provider's own status, as it describes its model. */
const OF_PROVIDER: Readonly<Record<number, ResponseClass>> = {
  400: 'model_unsupported',
  403: 'refused',
  404: 'model_gone',
  408: 'timeout',
  413: 'model_unsupported',
  422: 'model_unsupported',
  429: 'model_rate_limit',
  504: 'timeout',
  524: 'timeout',
}

function byProvider({ fromProvider, status, within200 }: Facts): Decision | null {
  if (!fromProvider) return null
  if (within200) return { class: classWithin200(status), because: `a provider's ${status} in a 200` }
  return { class: OF_PROVIDER[status] ?? 'provider_down', because: `a provider's ${status}` }
}

/** A status of the service in a body of JSON; of 500 and above: `provider_down`. */
const OF_SERVICE: Readonly<Record<number, ResponseClass>> = {
  400: 'model_unsupported',
  401: 'account_key',
  402: 'account_balance',
  404: 'model_gone',
  410: 'model_gone',
  413: 'model_unsupported',
  422: 'model_unsupported',
}

function byStatus({ errorType, status, readable, retryAt }: Facts): Decision {
  const because = `status ${status}`
  if ([408, 504, 524].includes(status)) return { class: 'timeout', because }
  if (status === 402 && retryAt !== null)
    return { class: 'account_busy', because: 'status 402 with a time to retry' }
  const typed = named(`error_type ${errorType}`)
  if (typed) return typed
  const known = OF_SERVICE[status] ?? (status >= 500 ? 'provider_down' : undefined)
  if (readable && known) return { class: known, because }
  // A key that is not taken is a 401; a 403 in JSON says in its own words what it forbids.
  const isOfKey = status === 401 || status === 402 || (status === 403 && !readable)
  const other = isOfKey ? 'account_key' : 'service_down'
  return { class: 'ambiguous', because, correlated: status === 429 ? 'account_minute' : other }
}

/**
 * The service had taken the question and found a provider: what broke off after that is nobody's key, balance or request,
 * whatever code it carries. Only a 429 that tells nothing more may still be the account's.
 */
function byStatusWithin200({ errorType, status }: Facts): Decision {
  const typed = named(`error_type ${errorType}`)
  if (typed && ['provider_down', 'timeout', 'refused'].includes(typed.class)) return typed
  const because = `status ${status} in a 200`
  if (status === 429) return { class: 'ambiguous', because, correlated: 'account_minute' }
  return { class: classWithin200(status), because }
}

function classWithin200(status: number): ResponseClass {
  const own = OF_PROVIDER[status]
  return own === 'model_rate_limit' || own === 'timeout' ? own : 'provider_down'
}
