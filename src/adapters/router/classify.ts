import type { AnswerClass, Suspicion, Verdict } from '../../domain/models/evaluation.ts'
import type { ModelReply } from '../../domain/models/lite/suite.ts'
import { DAY_MS, addDays, dayOf, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { parseRetryAfter } from '../http.ts'
import { describeError, readAnswerBody } from './answer-body.ts'
import type { ErrorFacts } from './answer-body.ts'

/** How a response came to its end. */
export type ResponseEnding = 'whole' | 'cut' | 'too-large' | 'timeout' | 'unreachable'

/** A response of the routing service, or why there is none. */
export interface RouterResponse {
  /** HTTP status; null when there was no response. */
  status: number | null
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>
  /** As far as it was read. */
  body: string
  ending: ResponseEnding
  /** When the response was whole, or given up. */
  endedAt: Instant
}

const NO_ERROR = describeError({})

const PREVIEW_CODE_POINTS = 200

/** Nobody waits longer; a greater number is a mistake, or an attack. */
const LONGEST_WAIT_SECONDS = 172_800

/**
 * Tells what a response means: by status, headers and body, whether the body is JSON, HTML, an event stream or a part
 * of one, and also for an error inside a 200 (docs/model-errors.md). The most specific evidence decides.
 */
export function classifyAnswer(response: RouterResponse): Verdict {
  const { endedAt } = response
  const { error, reply, readable } = readAnswerBody(response.body)
  const headers = { ...error?.headers, ...response.headers }
  const reset = instantOfReset(headers['x-ratelimit-reset'], endedAt)
  const status = statusOf(response, error)
  const limit = countOf(headers['x-ratelimit-limit'])
  const retryAt = latestOf(waitsOf(headers['retry-after'], error, endedAt), endedAt)
  const decision =
    decideEnding(response, status, reply) ??
    decide({
      error: error ?? NO_ERROR,
      status: status ?? 0,
      within200: isSuccess(response),
      readable,
      limit,
      resetInMs: reset === null ? null : reset - endedAt,
      retryAt,
    })
  const midnight = decision.class === 'account_daily' ? startOfDay(addDays(dayOf(endedAt), 1)) : null
  const resetAt = reset ?? midnight
  return {
    class: decision.class,
    because: decision.because,
    status,
    retryAt: latestOf([retryAt, resetAt], endedAt),
    limit,
    remaining: countOf(headers['x-ratelimit-remaining']),
    resetAt,
    providerName: error?.providerName ?? null,
    suspicion: decision.suspicion ?? null,
    reply: decision.class === 'answered' ? reply : null,
    preview: previewOf(response),
  }
}

/** When to ask again, each way the response names it: `Retry-After`, and the error's own numbers of seconds. */
function waitsOf(header: string | undefined, error: ErrorFacts | null, now: Instant): (Instant | null)[] {
  const seconds = (error?.retryAfterSeconds ?? []).map((each) => afterSeconds(each, now))
  return [parseRetryAfter(header, now, LONGEST_WAIT_SECONDS), ...seconds]
}

function afterSeconds(seconds: unknown, now: Instant): Instant | null {
  if (typeof seconds !== 'number' || !(seconds >= 0)) return null
  return now + Math.ceil(Math.min(seconds, LONGEST_WAIT_SECONDS) * 1000)
}

/** The latest of the known times, and never before now; null when none is known. */
function latestOf(times: readonly (Instant | null)[], now: Instant): Instant | null {
  const known = times.filter((at) => at !== null)
  return known.length === 0 ? null : Math.max(now, ...known)
}

/** The status that counts: an error's own inside a 200, else the HTTP status when it is an error's. */
function statusOf(response: RouterResponse, error: ErrorFacts | null): number | null {
  if (isSuccess(response)) return error ? (error.status ?? 502) : null
  return response.status
}

function isSuccess({ status }: RouterResponse): boolean {
  return status !== null && status < 300
}

/** Epoch milliseconds, or seconds; null for a time that no limit can have. */
function instantOfReset(text: string | undefined, now: Instant): Instant | null {
  if (text === undefined || !/^\d{10}(\d{3})?$/.test(text.trim())) return null
  const at = Number(text) * (text.trim().length === 10 ? 1000 : 1)
  return at >= now - DAY_MS && at <= now + 2 * DAY_MS ? at : null
}

/** What names the account that asked: the service repeats it in its errors, and previews are published. */
const IDENTIFYING: readonly [RegExp, string][] = [
  [/"user_id"\s*:\s*"[^"]*"?,?/g, ''],
  [/\bBearer\s+[^\s"'<>]+/gi, 'Bearer (key)'],
  [/\bsk-[\w-]{6,}/g, '(key)'],
  [/\b(user|org)_[A-Za-z0-9]{4,}/g, '($1)'],
]

function previewOf({ body, ending, status }: RouterResponse): string {
  const whole = body.replaceAll(/\s+/g, ' ').trim().toWellFormed()
  const line = IDENTIFYING.reduce((text, [what, stand]) => text.replaceAll(what, stand), whole)
  if (line !== '') return Array.from(line).slice(0, PREVIEW_CODE_POINTS).join('')
  return status === null ? ending : `${status} without a body`
}

function countOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text.trim()) ? Number(text) : null
}

/** What the rules look at. */
interface Facts {
  error: ErrorFacts
  status: number
  /** True when the HTTP status is that of a success. */
  within200: boolean
  readable: boolean
  /** Time until the named limit begins anew. */
  resetInMs: number | null
  /** Requests the named limit allows. */
  limit: number | null
  /** Earliest time to ask again, where a header or the error names one. */
  retryAt: Instant | null
}

interface Decision {
  class: AnswerClass
  because: string
  suspicion?: Suspicion
}

const OF_LIMIT_SOURCE: Readonly<Record<string, AnswerClass>> = {
  openrouter_free_tier_daily: 'account_daily',
  openrouter_free_tier_minute: 'account_minute',
  openrouter_in_flight_budget: 'account_busy',
  openrouter_key_limit: 'account_key_limit',
  openrouter_credits: 'account_balance',
  upstream_provider_shared_pool: 'model_rate_limit',
}

const OF_AVAILABILITY: Readonly<Record<string, AnswerClass>> = {
  capacity_exhausted: 'model_rate_limit',
  temporarily_unavailable: 'provider_down',
  privacy_restricted: 'account_policy',
  free_variant_ended: 'model_gone',
  no_endpoints: 'model_gone',
  model_deprecated: 'model_gone',
  model_unavailable_upstream: 'model_gone',
  model_not_found: 'model_gone',
  region_restricted: 'model_gone',
  constraint_filtered: 'model_unsupported',
  wrong_endpoint: 'model_unsupported',
}

const OF_ERROR_TYPE: Readonly<Record<string, AnswerClass>> = {
  provider_overloaded: 'provider_down',
  provider_unavailable: 'provider_down',
  server: 'provider_down',
  timeout: 'timeout',
  authentication: 'account_key',
  payment_required: 'account_balance',
  not_found: 'model_gone',
  content_policy_violation: 'refused',
  refusal: 'refused',
  context_length_exceeded: 'model_unsupported',
  invalid_request: 'model_unsupported',
}

/** What a type of error says after the service had taken the question, too. */
const STANDS_WITHIN_200: ReadonlySet<AnswerClass> = new Set(['provider_down', 'timeout', 'refused'])

/** What a provider's own status says of its model. */
const OF_PROVIDER_STATUS: Readonly<Record<number, AnswerClass>> = {
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

/** No daily limit is this small, and no minute's limit this large. */
const SMALLEST_DAILY_LIMIT = 50

const LONGEST_MINUTE_WAIT_MS = 120_000

/** Decides what needs no look at an error: replies, and responses that did not come whole. */
function decideEnding(
  { ending, body }: RouterResponse,
  status: number | null,
  reply: ModelReply | null,
): Decision | null {
  if (ending === 'timeout') return { class: 'timeout', because: 'no whole answer in time' }
  if (ending === 'unreachable') {
    return { class: 'ambiguous', because: 'no connection', suspicion: 'service_down' }
  }
  if (status !== null) return null
  if (ending !== 'whole') return { class: 'invalid_answer', because: `the answer was ${ending}` }
  if (reply && saysNothing(reply)) {
    return reply.finishReason === 'content_filter'
      ? { class: 'refused', because: 'an empty message, filtered' }
      : { class: 'invalid_answer', because: 'an empty message' }
  }
  if (reply) return { class: 'answered', because: 'a message' }
  return { class: 'invalid_answer', because: body.trim() === '' ? 'an empty answer' : 'no message in a 200' }
}

/** A model that thought until its tokens were used up was cut short; any other says something, or was not served. */
function saysNothing({ text, toolCalls, finishReason }: ModelReply): boolean {
  return finishReason !== 'length' && toolCalls.length === 0 && text.trim() === ''
}

/** Decides what an error means. */
function decide(facts: Facts): Decision {
  return byNamedCause(facts) ?? byMessage(facts) ?? byHeaders(facts) ?? byProvider(facts) ?? byStatus(facts)
}

function byNamedCause({ error }: Facts): Decision | null {
  const named = lookUp(OF_LIMIT_SOURCE, error.limitSource)
  if (named) return { class: named, because: `limit_source ${error.limitSource}` }
  const availability = lookUp(OF_AVAILABILITY, error.availability)
  if (availability) return { class: availability, because: `availability ${error.availability}` }
  return error.filtered ? { class: 'refused', because: 'reasons of a filter' } : null
}

function byMessage({ error: { message, fromProvider }, status, within200 }: Facts): Decision | null {
  if (fromProvider) return null
  const free = /free-models-per-(day|min)/.exec(message)
  if (free) {
    return { class: free[1] === 'day' ? 'account_daily' : 'account_minute', because: `message ${free[0]}` }
  }
  if (within200) return null
  if (status === 404 && /data policy/i.test(message)) {
    return { class: 'account_policy', because: 'message data policy' }
  }
  if ((status === 402 || status === 403) && /key limit exceeded/i.test(message)) {
    return { class: 'account_key_limit', because: 'message key limit' }
  }
  if (status === 404 && /support (tool use|the provided)/i.test(message)) {
    return { class: 'model_unsupported', because: 'message no support' }
  }
  if (status === 403 && /\b(region|country|territory)\b/i.test(message)) {
    return { class: 'model_gone', because: 'message region' }
  }
  return null
}

/** Limits in headers are the service's own: no provider's are passed on. */
function byHeaders({ error, limit, status, resetInMs }: Facts): Decision | null {
  if (status !== 429 || limit === null || error.fromProvider) return null
  const daily = resetInMs === null ? limit >= SMALLEST_DAILY_LIMIT : resetInMs > LONGEST_MINUTE_WAIT_MS
  return { class: daily ? 'account_daily' : 'account_minute', because: 'headers of a limit' }
}

function byProvider({ error, status, within200 }: Facts): Decision | null {
  if (!error.fromProvider) return null
  if (within200) return { class: classWithin200(status), because: `a provider's ${status} in a 200` }
  return { class: OF_PROVIDER_STATUS[status] ?? 'provider_down', because: `a provider's ${status}` }
}

function byStatus({ error, status, readable, within200, retryAt }: Facts): Decision {
  if (within200) return byStatusWithin200(error, status)
  const because = `status ${status}`
  if (status === 408 || status === 504 || status === 524) return { class: 'timeout', because }
  if (status === 402 && retryAt !== null) {
    return { class: 'account_busy', because: 'status 402 with a time to retry' }
  }
  const typed = lookUp(OF_ERROR_TYPE, error.errorType)
  if (typed) return { class: typed, because: `error_type ${error.errorType}` }
  if (status === 429) return { class: 'ambiguous', because, suspicion: 'account_minute' }
  if (readable) {
    if (status === 401) return { class: 'account_key', because }
    if (status === 402) return { class: 'account_balance', because }
    if (status === 404 || status === 410) return { class: 'model_gone', because }
    if (status >= 500) return { class: 'provider_down', because }
    if (status === 400 || status === 413 || status === 422) return { class: 'model_unsupported', because }
    // A key that is not taken is a 401; a 403 says in its own words what it forbids.
    if (status === 403) return { class: 'ambiguous', because, suspicion: 'service_down' }
  }
  if (status === 401 || status === 402 || status === 403) {
    return { class: 'ambiguous', because, suspicion: 'account_key' }
  }
  return { class: 'ambiguous', because, suspicion: 'service_down' }
}

/**
 * The service had taken the question and found somebody to ask: what broke off after that is nobody's key, balance or
 * request, whatever code it carries. Only an untold 429 may still be the account's.
 */
function byStatusWithin200({ errorType }: ErrorFacts, status: number): Decision {
  const typed = lookUp(OF_ERROR_TYPE, errorType)
  if (typed && STANDS_WITHIN_200.has(typed)) return { class: typed, because: `error_type ${errorType}` }
  const because = `status ${status} in a 200`
  return status === 429
    ? { class: 'ambiguous', because, suspicion: 'account_minute' }
    : { class: classWithin200(status), because }
}

function classWithin200(status: number): AnswerClass {
  const told = OF_PROVIDER_STATUS[status] ?? 'provider_down'
  return told === 'model_rate_limit' || told === 'timeout' ? told : 'provider_down'
}

function lookUp(table: Readonly<Record<string, AnswerClass>>, key: string | null): AnswerClass | null {
  return key !== null && Object.hasOwn(table, key) ? (table[key] ?? null) : null
}
