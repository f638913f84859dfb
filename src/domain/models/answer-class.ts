import { DAY_MS } from '../time.ts'
import type { Instant } from '../time.ts'
import { readAnswerBody } from './answer-body.ts'
import type { ErrorFacts } from './answer-body.ts'
import type { HealthStatus } from './health.ts'
import type { ModelReply } from './reply.ts'
import { retryAtOf, utcMidnightAfter } from './retry-time.ts'
import type { RouterAnswer } from './router.ts'

/** What each kind of answer means, and whose matter it is (docs/model-errors.md). */
export const ANSWER_CLASSES = {
  answered: { scope: 'none', retries: false, ownFailure: false },
  account_daily: { scope: 'account', retries: false, ownFailure: false },
  account_minute: { scope: 'account', retries: true, ownFailure: false },
  account_busy: { scope: 'account', retries: true, ownFailure: false },
  account_key: { scope: 'account', retries: false, ownFailure: false },
  account_key_limit: { scope: 'account', retries: false, ownFailure: false },
  account_balance: { scope: 'account', retries: false, ownFailure: false },
  account_policy: { scope: 'account', retries: false, ownFailure: false },
  model_rate_limit: { scope: 'model', retries: true, ownFailure: true },
  provider_down: { scope: 'model', retries: true, ownFailure: true },
  timeout: { scope: 'model', retries: false, ownFailure: true },
  invalid_answer: { scope: 'model', retries: true, ownFailure: true },
  model_gone: { scope: 'model', retries: false, ownFailure: false },
  model_unsupported: { scope: 'model', retries: false, ownFailure: false },
  refused: { scope: 'model', retries: false, ownFailure: false },
  ambiguous: { scope: 'unknown', retries: true, ownFailure: true },
} as const satisfies Record<
  string,
  {
    scope: 'none' | 'account' | 'model' | 'unknown'
    /** True when one paced retry may change it. */
    retries: boolean
    /** True when it counts against the model's stability. */
    ownFailure: boolean
  }
>

export type AnswerClass = keyof typeof ANSWER_CLASSES

/** What an answer nobody can attribute would mean if models of different vendors got it too. */
type Suspicion = 'account_minute' | 'account_key' | 'service_down'

/** What an answer means. */
export interface Verdict {
  class: AnswerClass
  /** The rule that decided. */
  because: string
  /** HTTP status of the error, in a 200 too; null when there is none. */
  status: number | null
  /** Earliest time to ask again, where the answer tells. */
  retryAt: Instant | null
  /** Requests the named limit allows, where the answer tells. */
  limit: number | null
  remaining: number | null
  /** When that limit begins anew. */
  resetAt: Instant | null
  providerName: string | null
  /** For `ambiguous`. */
  suspicion: Suspicion | null
  /** For `answered`. */
  reply: ModelReply | null
  /** The beginning of what was answered, on one line. */
  preview: string
}

interface Facts {
  answer: RouterAnswer
  error: ErrorFacts
  status: number
  readable: boolean
  headers: Readonly<Record<string, string>>
  resetAt: Instant | null
}

interface Decision {
  class: AnswerClass
  because: string
  suspicion?: Suspicion
}

const NO_ERROR: ErrorFacts = {
  status: null,
  message: '',
  limitSource: null,
  errorType: null,
  availability: null,
  providerName: null,
  fromProvider: false,
  filtered: false,
  retryAfterSeconds: [],
  headers: {},
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

const PREVIEW_CODE_POINTS = 200

/**
 * Tells what an answer means: by status, headers and body, whether the body is JSON, HTML, an event stream or a part
 * of one, and also for an error inside a 200 (docs/model-errors.md). The most specific evidence decides.
 */
export function classifyAnswer(answer: RouterAnswer): Verdict {
  const { error, reply, readable } = readAnswerBody(answer.body)
  const headers = { ...error?.headers, ...answer.headers }
  const reset = instantOfReset(headers['x-ratelimit-reset'], answer.endedAt)
  const status = statusOf(answer, error)
  const facts = { answer, error: error ?? NO_ERROR, status: status ?? 0, readable, headers, resetAt: reset }
  const decision = decideEnding(answer, status, reply) ?? decide(facts)
  const resetAt = reset ?? (decision.class === 'account_daily' ? utcMidnightAfter(answer.endedAt) : null)
  return {
    class: decision.class,
    because: decision.because,
    status,
    retryAt: retryAtOf(answer.headers['retry-after'], facts.error.retryAfterSeconds, resetAt, answer.endedAt),
    limit: countOf(headers['x-ratelimit-limit']),
    remaining: countOf(headers['x-ratelimit-remaining']),
    resetAt,
    providerName: facts.error.providerName,
    suspicion: decision.suspicion ?? null,
    reply: decision.class === 'answered' ? reply : null,
    preview: previewOf(answer),
  }
}

/** The health a model has by an answer that was no reply to the question. */
export function healthOfFailure({ class: kind, status }: Pick<Verdict, 'class' | 'status'>): HealthStatus {
  if (ANSWER_CLASSES[kind].scope === 'account') return 'not_probed'
  if (kind === 'timeout') return 'timeout'
  return status !== null && status >= 400 ? `http_${status}` : 'failed'
}

/** Whose rate limit an answer was. */
export function rateLimitKind(kind: AnswerClass): 'account' | 'model' | 'none' {
  if (kind === 'account_daily' || kind === 'account_minute') return 'account'
  return kind === 'model_rate_limit' ? 'model' : 'none'
}

/** The status that counts: an error's own inside a 200, else the HTTP status when it is an error's. */
function statusOf(answer: RouterAnswer, error: ErrorFacts | null): number | null {
  if (answer.status === null) return null
  if (answer.status < 300) return error ? (error.status ?? 502) : null
  return answer.status
}

/** Decides what needs no look at an error: replies, and answers that did not come whole. */
function decideEnding(
  { ending, body }: RouterAnswer,
  status: number | null,
  reply: ModelReply | null,
): Decision | null {
  if (ending === 'timeout') return { class: 'timeout', because: 'no whole answer in time' }
  if (ending === 'unreachable') {
    return { class: 'ambiguous', because: 'no connection', suspicion: 'service_down' }
  }
  if (status !== null) return null
  if (ending !== 'whole') return { class: 'invalid_answer', because: `the answer was ${ending}` }
  if (reply) return { class: 'answered', because: 'a message' }
  return { class: 'invalid_answer', because: body.trim() === '' ? 'an empty answer' : 'no message in a 200' }
}

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

function byMessage({ error: { message, fromProvider }, status }: Facts): Decision | null {
  if (fromProvider) return null
  const free = /free-models-per-(day|min)/.exec(message)
  if (free) {
    return { class: free[1] === 'day' ? 'account_daily' : 'account_minute', because: `message ${free[0]}` }
  }
  if (status === 404 && /data policy/i.test(message)) {
    return { class: 'account_policy', because: 'message data policy' }
  }
  if ((status === 402 || status === 403) && /key limit exceeded/i.test(message)) {
    return { class: 'account_key_limit', because: 'message key limit' }
  }
  if (status === 404 && /support (tool use|the provided)/i.test(message)) {
    return { class: 'model_unsupported', because: 'message no support' }
  }
  return null
}

/** Limits in headers are the service's own: no provider's are passed on. */
function byHeaders({ error, headers, status, resetAt, answer }: Facts): Decision | null {
  const limit = countOf(headers['x-ratelimit-limit'])
  if (status !== 429 || limit === null || error.fromProvider) return null
  const waitMs = resetAt === null ? null : resetAt - answer.endedAt
  const daily = waitMs === null ? limit >= SMALLEST_DAILY_LIMIT : waitMs > LONGEST_MINUTE_WAIT_MS
  return { class: daily ? 'account_daily' : 'account_minute', because: 'headers of a limit' }
}

function byProvider({ error, status }: Facts): Decision | null {
  if (!error.fromProvider) return null
  return { class: OF_PROVIDER_STATUS[status] ?? 'provider_down', because: `a provider's ${status}` }
}

function byStatus({ error, status, readable, answer }: Facts): Decision {
  const because = `status ${status}`
  if (status === 408 || status === 504 || status === 524) return { class: 'timeout', because }
  if (status === 402 && answer.headers['retry-after'] !== undefined) {
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
  }
  if (status === 401 || status === 402 || status === 403) {
    return { class: 'ambiguous', because, suspicion: 'account_key' }
  }
  return { class: 'ambiguous', because, suspicion: 'service_down' }
}

function lookUp(table: Readonly<Record<string, AnswerClass>>, key: string | null): AnswerClass | null {
  return key !== null && Object.hasOwn(table, key) ? (table[key] ?? null) : null
}

function countOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text.trim()) ? Number(text) : null
}

/** Epoch milliseconds, or seconds; null for a time that no limit can have. */
function instantOfReset(text: string | undefined, now: Instant): Instant | null {
  if (text === undefined || !/^\d{10}(\d{3})?$/.test(text.trim())) return null
  const at = Number(text) * (text.trim().length === 10 ? 1000 : 1)
  return at >= now - DAY_MS && at <= now + 2 * DAY_MS ? at : null
}

function previewOf({ body, ending, status }: RouterAnswer): string {
  const line = body.replaceAll(/\s+/g, ' ').trim().toWellFormed()
  if (line !== '')
    return [...line.slice(0, 2 * PREVIEW_CODE_POINTS)].slice(0, PREVIEW_CODE_POINTS).join('').toWellFormed()
  return status === null ? ending : `${status} without a body`
}
