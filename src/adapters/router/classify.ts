import type { ResponseClass, CorrelatedFailure, Classification } from '../../domain/models/evaluation.ts'
import type { ModelResponse } from '../../domain/models/lite/suite.ts'
import { DAY_MS, addDays, dayOf, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { firstCodePoints } from '../../domain/text.ts'
import { asJsonObject, parseJsonObject } from '../../domain/json.ts'
import type { JsonObject } from '../../domain/json.ts'
import { parseRetryAfter } from '../http.ts'
import { CompletionMessage, errorIn, finishReason, firstChoice } from '../completion-message.ts'

/** A response of the routing service, or the reason there is none. */
export interface RouterResponse {
  /** HTTP status; null without a response. */
  status: number | null
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>
  /** The part of the body that was read. */
  body: string
  /** The way the response ended. */
  ending: 'whole' | 'cut' | 'too-large' | 'timeout' | 'unreachable'
  /** Time at which the response was complete or abandoned. */
  endedAt: Instant
}

const PREVIEW_CODE_POINTS = 200

/** A longer wait in a response is a mistake or an attack. */
const MAX_WAIT_SECONDS = 172_800

/**
 * Classifies a response by status, headers and body, including errors inside a 200 (docs/model-errors.md). The body
 * may be JSON, HTML, an event stream or a part of one. The most specific evidence decides.
 */
export function classifyResponse(response: RouterResponse): Classification {
  const { endedAt } = response
  const { error, completion, readable } = readResponseBody(response.body)
  const headers = { ...error?.headers, ...response.headers }
  const reset = parseReset(headers['x-ratelimit-reset'], endedAt)
  const limit = parseCount(headers['x-ratelimit-limit'])
  const waits = (error?.retryAfterSeconds ?? []).map((seconds) => afterSeconds(seconds, endedAt))
  const retryAt = latestTime(
    [parseRetryAfter(headers['retry-after'], endedAt, MAX_WAIT_SECONDS), ...waits],
    endedAt,
  )
  const within200 = response.status !== null && response.status < 300
  // An error inside a 200 states its own status.
  const status = !within200 ? response.status : error ? (error.status ?? 502) : null
  const resetInMs = reset === null ? null : reset - endedAt
  const context = {
    ...(error ?? NO_ERROR),
    status: status ?? 0,
    within200,
    readable,
    limit,
    resetInMs,
    retryAt,
  }
  const decision = decideWithoutError(response.ending, status, completion) ?? decide(context)
  const kind = typeof decision === 'string' ? decision : 'ambiguous'
  const midnight = kind === 'account_daily' ? startOfDay(addDays(dayOf(endedAt), 1)) : null
  const resetAt = reset ?? midnight
  return {
    class: kind,
    correlated: typeof decision === 'string' ? null : decision.maybe,
    status,
    retryAt: latestTime([retryAt, resetAt], endedAt),
    limit,
    remaining: parseCount(headers['x-ratelimit-remaining']),
    resetAt,
    providerName: error?.providerName ?? null,
    response: kind === 'answered' ? completion : null,
    preview: createPreview(response),
  }
}

const NO_ERROR = parseErrorFacts({})

function afterSeconds(seconds: unknown, now: Instant): Instant | null {
  if (typeof seconds !== 'number' || !(seconds >= 0)) return null
  return now + Math.ceil(Math.min(seconds, MAX_WAIT_SECONDS) * 1000)
}

/** Returns the latest known time, but not before `now`; null if none is known. */
function latestTime(times: readonly (Instant | null)[], now: Instant): Instant | null {
  const known = times.filter((at) => at !== null)
  return known.length === 0 ? null : Math.max(now, ...known)
}

/** Parses epoch milliseconds or seconds; null for a time that no limit can have. */
function parseReset(text: string | undefined, now: Instant): Instant | null {
  if (text === undefined || !/^\d{10}(\d{3})?$/.test(text.trim())) return null
  const at = Number(text) * (text.trim().length === 10 ? 1000 : 1)
  return at >= now - DAY_MS && at <= now + 2 * DAY_MS ? at : null
}

function parseCount(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text.trim()) ? Number(text) : null
}

/** Identifiers of the account: the service repeats them in its errors, and previews are published. */
const IDENTIFYING: readonly [RegExp, string][] = [
  [/"user_id"\s*:\s*"[^"]*"?,?/g, ''],
  [/\bBearer\s+[^\s"'<>]+/gi, 'Bearer (key)'],
  [/\bsk-[\w-]{6,}/g, '(key)'],
  [/\b(user|org)_[A-Za-z0-9]{4,}/g, '($1)'],
  [/\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '/(id)'],
]

/** Length of the beginning of a body that its preview is made of: bodies have megabytes. */
const PREVIEWED_LENGTH = 16 * 1024

function createPreview({ body, ending, status }: RouterResponse): string {
  const beginning = body.trimStart().slice(0, PREVIEWED_LENGTH)
  const whole = beginning.replaceAll(/\s+/g, ' ').trim().toWellFormed()
  const line = IDENTIFYING.reduce(
    (text, [pattern, replacement]) => text.replaceAll(pattern, replacement),
    whole,
  )
  if (line !== '') return firstCodePoints(line, PREVIEW_CODE_POINTS)
  return status === null ? ending : `${status} without a body`
}

interface ErrorContext extends Omit<ErrorFacts, 'status'> {
  status: number
  within200: boolean
  /** True if the body is JSON or an event stream. */
  readable: boolean
  /** Milliseconds until the named limit resets. */
  resetInMs: number | null
  limit: number | null
  /** Earliest time of another request, if a header or the error names one. */
  retryAt: Instant | null
}

/** The class, or what an ambiguous response may be if models of different vendors get it too. */
type Decision = ResponseClass | { maybe: CorrelatedFailure }

/** Classifies responses without an error, and incomplete ones. */
function decideWithoutError(
  ending: RouterResponse['ending'],
  status: number | null,
  completion: ModelResponse | null,
): Decision | null {
  if (ending === 'timeout') return 'timeout'
  if (ending === 'unreachable') return { maybe: 'service_down' }
  if (status !== null) return null
  if (ending !== 'whole' || completion === null) return 'invalid_answer'
  if (!isEmptyCompletion(completion)) return 'answered'
  return completion.finishReason === 'content_filter' ? 'refused' : 'invalid_answer'
}

/** Returns true for a completion without text and tool calls, unless reasoning used up all its tokens. */
function isEmptyCompletion({ text, toolCalls, finishReason: reason }: ModelResponse): boolean {
  return reason !== 'length' && toolCalls.length === 0 && text.trim() === ''
}

/** Classifies an error by the first rule that applies, from the most to the least specific. */
function decide(context: ErrorContext): Decision {
  const { limitSource, availability, errorType, filtered, fromProvider, within200 } = context
  return (
    CLASS_BY_CAUSE.get(`limit_source ${limitSource}`) ??
    CLASS_BY_CAUSE.get(`availability ${availability}`) ??
    (filtered ? 'refused' : null) ??
    decideByMessage(context) ??
    decideByHeaders(context) ??
    (fromProvider ? null : CLASS_BY_CAUSE.get(`error_type ${errorType}`)) ??
    (within200 ? decideWithin200(context) : decideByStatus(context))
  )
}

/** Class of each cause that the service names by a field and its value; other types of errors agree with their status. */
const CLASS_BY_CAUSE = new Map<string, ResponseClass>(
  Object.entries({
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
    'error_type timeout': 'timeout',
    'error_type content_policy_violation': 'refused',
    'error_type refusal': 'refused',
  } satisfies Record<string, ResponseClass>),
)

/** The service's own error messages by status; those of providers do not count. */
const MESSAGES: readonly { statuses: number[]; pattern: RegExp; class: ResponseClass }[] = [
  { statuses: [404], pattern: /data policy/i, class: 'account_policy' },
  { statuses: [402, 403], pattern: /key limit exceeded/i, class: 'account_key_limit' },
  { statuses: [404], pattern: /support (tool use|the provided)/i, class: 'model_unsupported' },
  { statuses: [403], pattern: /\b(region|country|territory)\b/i, class: 'model_gone' },
  { statuses: [400], pattern: /is not a valid model ID/i, class: 'model_gone' },
]

function decideByMessage({ message, fromProvider, status, within200 }: ErrorContext): ResponseClass | null {
  if (fromProvider) return null
  const per = /free-models-per-(day|min)/.exec(message)?.[1]
  if (per !== undefined) return per === 'day' ? 'account_daily' : 'account_minute'
  // The limit of a single model, which the service sets while many use it.
  if (/\blimit_rp[dm]\//.test(message)) return 'model_rate_limit'
  if (within200) return null
  const found = MESSAGES.find(({ statuses, pattern }) => statuses.includes(status) && pattern.test(message))
  return found?.class ?? null
}

/** Bounds that distinguish a daily limit from a limit per minute: number of requests, and time until the reset. */
const SMALLEST_DAILY_LIMIT = 50
const LONGEST_MINUTE_WAIT_MS = 120_000

/** Classifies by the limit headers of the service, which does not forward those of providers. */
function decideByHeaders({ fromProvider, limit, status, resetInMs }: ErrorContext): ResponseClass | null {
  if (status !== 429 || fromProvider || (limit === null && resetInMs === null)) return null
  const daily = resetInMs === null ? (limit ?? 0) >= SMALLEST_DAILY_LIMIT : resetInMs > LONGEST_MINUTE_WAIT_MS
  return daily ? 'account_daily' : 'account_minute'
}

const TIMEOUTS: ReadonlySet<number> = new Set([408, 504, 524])

/** Class of a provider's status, which describes its model; others are `provider_down`. */
const PROVIDER_STATUS_CLASSES: Readonly<Record<number, ResponseClass>> = {
  400: 'model_unsupported',
  403: 'refused',
  404: 'model_gone',
  413: 'model_unsupported',
  422: 'model_unsupported',
  429: 'model_rate_limit',
}

/** Class of a status of the service with a JSON body; 500 and above are `provider_down`. */
const SERVICE_STATUS_CLASSES: Readonly<Record<number, ResponseClass>> = {
  400: 'model_unsupported',
  401: 'account_key',
  402: 'account_balance',
  404: 'model_gone',
  410: 'model_gone',
  413: 'model_unsupported',
  422: 'model_unsupported',
}

function decideByStatus({ fromProvider, status, readable, retryAt }: ErrorContext): Decision {
  if (TIMEOUTS.has(status)) return 'timeout'
  if (fromProvider) return PROVIDER_STATUS_CLASSES[status] ?? 'provider_down'
  if (status === 402 && retryAt !== null) return 'account_busy'
  const known = SERVICE_STATUS_CLASSES[status] ?? (status >= 500 ? 'provider_down' : undefined)
  if (readable && known) return known
  if (status === 429) return { maybe: 'account_minute' }
  // A rejected key is a 401. A 403 in JSON describes what it forbids.
  const isKeyStatus = status === 401 || status === 402 || (status === 403 && !readable)
  return { maybe: isKeyStatus ? 'account_key' : 'service_down' }
}

/**
 * Classifies an error inside a 200. The service had accepted the request and found a provider, so the failure is
 * not caused by the key, the balance or the request. Only a 429 without details may still be the account's limit.
 */
function decideWithin200({ fromProvider, status }: ErrorContext): Decision {
  if (status === 429) return fromProvider ? 'model_rate_limit' : { maybe: 'account_minute' }
  return TIMEOUTS.has(status) ? 'timeout' : 'provider_down'
}

/** The contents of a body that a classification uses. */
interface ParsedBody {
  /** True for JSON and for an event stream of JSON. */
  readable: boolean
  error: ErrorFacts | null
  /** The model's message; null if there is none. */
  completion: ModelResponse | null
}

/** An error as the service or a provider describes it. */
interface ErrorFacts {
  /** The error's own code if it is an HTTP status. */
  status: number | null
  message: string
  limitSource: string | null
  errorType: string | null
  availability: string | null
  providerName: string | null
  /** True if the error came from a provider. */
  fromProvider: boolean
  /** True if a content filter or a guardrail refused the request. */
  filtered: boolean
  /** Seconds to wait, from each field that can hold them. */
  retryAfterSeconds: readonly unknown[]
  /** Headers repeated in the error, names in lower case. */
  headers: Readonly<Record<string, string>>
}

/** Parses a body that may be JSON, an event stream, HTML, or a part of one of them. */
function readResponseBody(text: string): ParsedBody {
  const body = text.replace(/^\uFEFF/, '')
  const whole = parseJsonObject(body)
  const documents = whole === null ? parseEvents(body) : [whole]
  if (documents.length === 0) return { readable: false, error: parseCutError(body), completion: null }
  const error = documents.map(findError).find((found) => found !== null) ?? null
  return { readable: true, error, completion: error ? null : parseCompletion(documents) }
}

/** Parses an error whose JSON was cut off. */
function parseCutError(body: string): ErrorFacts | null {
  if (!/^\s*\{\s*"error"/.test(body)) return null
  const message = nonEmptyText(body) ?? ''
  return {
    ...parseErrorFacts({ message }),
    fromProvider: /Provider returned error|"provider_name"/.test(body),
  }
}

/** Parses the JSON of each event of a stream. Comments, which only keep the connection open, are skipped. */
function parseEvents(body: string): JsonObject[] {
  const lines = body.split(/\r\n|[\r\n]/).filter((line) => line.startsWith('data:'))
  return lines.map((line) => parseJsonObject(line.slice('data:'.length))).filter((event) => event !== null)
}

function findError(document: JsonObject): ErrorFacts | null {
  const error = errorIn(document)
  if (error !== null) return parseErrorFacts(asJsonObject(error) ?? { message: error })
  return finishReason(firstChoice(document)) === 'error' ? parseErrorFacts({}) : null
}

/** Extracts the facts of an error from its JSON object. */
function parseErrorFacts(error: JsonObject): ErrorFacts {
  const metadata = asJsonObject(error['metadata']) ?? {}
  const availability = asJsonObject(error['availability']) ?? asJsonObject(metadata['availability']) ?? {}
  const message = nonEmptyText(error['message']) ?? ''
  const providerName = nonEmptyText(metadata['provider_name'])
  return {
    status: parseStatus(error['code']),
    message,
    limitSource: nonEmptyText(metadata['limit_source']),
    errorType: nonEmptyText(metadata['error_type']),
    availability: nonEmptyText(availability['code']),
    providerName,
    fromProvider:
      providerName !== null || metadata['raw'] !== undefined || /^Provider returned error/i.test(message),
    filtered: metadata['reasons'] !== undefined || metadata['patterns'] !== undefined,
    retryAfterSeconds: [
      metadata['retry_after_seconds'],
      metadata['retry_after_seconds_raw'],
      availability['retry_after'],
    ],
    headers: lowerCaseHeaders(asJsonObject(metadata['headers']) ?? {}),
  }
}

/** Parses an HTTP status from a code, which may be a number, digits, or another word of a provider. */
function parseStatus(code: unknown): number | null {
  const status = typeof code === 'string' ? Number(code) : code
  const isStatus = typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600
  return isStatus ? status : null
}

function lowerCaseHeaders(headers: JsonObject): Record<string, string> {
  const known = Object.entries(headers).flatMap(([name, value]) => {
    const text = typeof value === 'number' ? String(value) : nonEmptyText(value)
    return text === null ? [] : [[name.toLowerCase(), text] as const]
  })
  return Object.fromEntries(known)
}

function parseCompletion(documents: readonly JsonObject[]): ModelResponse | null {
  const message = new CompletionMessage()
  for (const document of documents) message.add(document)
  if (message.isMissing) return null
  return {
    text: message.text.toWellFormed(),
    toolCalls: message.calls.map(({ name, arguments: written }) => ({
      name: name.toWellFormed(),
      arguments: written,
    })),
    finishReason: message.refusal === '' ? nonEmptyText(message.finish) : 'content_filter',
  }
}

function nonEmptyText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value.toWellFormed() : null
}
