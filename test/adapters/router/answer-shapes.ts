import type { RouterResponse } from '../../../src/adapters/router/classify.ts'

/** Time of every response: Sunday, 1 March 2026, ten past midnight UTC. */
export const ANSWERED_AT = Date.UTC(2026, 2, 1, 0, 10)

const MIDNIGHT = Date.UTC(2026, 2, 2)

/** One shape of a response. */
export interface AnswerShape {
  shape: string
  answer: RouterResponse
  /** Seconds from the response to the next attempt; null if it names none. */
  retryAfter: number | null
}

export function answered(
  status: number | null,
  body: unknown,
  changes: Partial<RouterResponse> = {},
): RouterResponse {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { status, headers: {}, body: text, ending: 'whole', endedAt: ANSWERED_AT, ...changes }
}

/** Further parts of a shape; `wait` is its `retryAfter`. */
type Rest = Partial<RouterResponse> & { wait?: number }

/** A shape whose name begins with its HTTP status, unless there was no response. */
function row(shape: string, body: unknown, { wait, ...rest }: Rest = {}): AnswerShape {
  return { shape, answer: answered(statusOf(shape), body, rest), retryAfter: wait ?? null }
}

const statusOf = (shape: string): number | null => Number.parseInt(shape, 10) || null

const error = (code: unknown, message: string, metadata?: object): object => ({
  error: { code, message, ...(metadata ? { metadata } : {}) },
})

/** A shape whose body is an error with the HTTP status for its code. */
function failed(
  shape: string,
  message: string,
  { metadata, ...rest }: Rest & { metadata?: object } = {},
): AnswerShape {
  return row(shape, error(statusOf(shape), message, metadata), rest)
}

/** A shape that is known by the code of its `availability`. */
function available(status: number, code: string, wait?: number): AnswerShape {
  const availability = wait === undefined ? { code, retryable: false } : { code, retry_after: wait }
  const body = { error: { code: status, message: 'Not available', availability } }
  return row(`${status}, \`availability\` \`${code}\``, body, wait === undefined ? {} : { wait })
}

const limitHeaders = (limit: number, reset: number): Record<string, string> => ({
  'x-ratelimit-limit': String(limit),
  'x-ratelimit-remaining': '0',
  'x-ratelimit-reset': String(reset),
})

/** The same as an error repeats them. */
const repeated = (limit: number, reset: number): object => ({
  'X-RateLimit-Limit': String(limit),
  'X-RateLimit-Remaining': '0',
  'X-RateLimit-Reset': String(reset),
})

const upstream = (status: number, metadata: object = {}): object =>
  error(status, 'Provider returned error', { provider_name: 'Example Cloud', raw: 'try later', ...metadata })

const choice = (fields: object): object => ({ choices: [fields] })

/** An error inside the choice that it ended. */
const brokenOff = (code: number, said: string, metadata?: object): object =>
  choice({ message: { content: 'Hel' }, finish_reason: 'error', ...error(code, said, metadata) })

const emptied = (reason: string): object =>
  choice({ message: { role: 'assistant', content: null }, finish_reason: reason })

const event = (fields: object): string => `data: ${JSON.stringify(fields)}\n\n`
const COMMENT = ': OPENROUTER PROCESSING\n\n'
const BEGUN = event(choice({ delta: { content: 'a' } }))

const message = { role: 'assistant', content: 'hello' }
const call = { function: { name: 'f', arguments: '{}' } }
const provider = { provider_name: 'Example Cloud' }
const HTML = '<!DOCTYPE html><html><head><title>error</title></head><body>cloud</body></html>'
const DAILY =
  'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day'
/** The name of a model's limit, and what follows it. */
const BUSY = 'vendor/model/0a1b2c3d. High demand for vendor/model:free on OpenRouter - limited to'
const CREDITS =
  'This request requires more credits, or fewer max_tokens. You requested up to 3000 tokens, but can only afford 12'
const POLICY =
  'No endpoints found matching your data policy (Free model publication). Configure: https://openrouter.ai/settings/privacy'
const QUOTA = '{"error":{"status":"RESOURCE_EXHAUSTED","message":"quota free-models-per_day"}}'

const tomorrow = { wait: (MIDNIGHT - ANSWERED_AT) / 1000 }
const cut = { ending: 'cut' } as const

export const ANSWER_SHAPES: readonly AnswerShape[] = [
  row('200, a message', choice({ message, finish_reason: 'stop' })),
  row('200, tool calls without content', choice({ message: { content: null, tool_calls: [call] } })),
  row(
    '200, an event stream with comments',
    `${COMMENT}${event(choice({ delta: { content: 'he' } }))}${event(
      choice({ delta: { content: 'llo' }, finish_reason: 'stop' }),
    )}data: [DONE]\n\n`,
  ),
  failed('429, `limit_source` `openrouter_free_tier_daily`', DAILY, {
    metadata: { headers: repeated(50, MIDNIGHT), limit_source: 'openrouter_free_tier_daily' },
    ...tomorrow,
  }),
  failed('429, message `free-models-per-day`', DAILY, tomorrow),
  failed(
    '429, message `free-models-per-day-high-balance`',
    'Rate limit exceeded: free-models-per-day-high-balance',
    { metadata: { headers: repeated(1000, MIDNIGHT) }, ...tomorrow },
  ),
  row('200, the daily limit inside', error(429, DAILY), tomorrow),
  row(
    '200, the daily limit in an event',
    COMMENT + event({ ...error(429, DAILY), ...choice({ delta: {}, finish_reason: 'error' }) }),
    tomorrow,
  ),
  row(
    '429, cut short after the message `free-models-per-day`',
    JSON.stringify(error(429, DAILY)).slice(0, 80),
    { ...cut, ...tomorrow },
  ),
  failed('429, only headers of a limit that ends at midnight', 'Too many requests', {
    headers: limitHeaders(50, MIDNIGHT),
    ...tomorrow,
  }),
  failed('429, `limit_source` `openrouter_free_tier_minute`', 'Rate limit exceeded', {
    metadata: {
      limit_source: 'openrouter_free_tier_minute',
      headers: repeated(16, ANSWERED_AT + 30_000),
    },
    wait: 30,
  }),
  failed('429, message `free-models-per-min`', 'Rate limit exceeded: free-models-per-min.'),
  failed('429, only headers of a limit that ends soon', 'Too many requests', {
    headers: limitHeaders(20, ANSWERED_AT + 12_000),
    wait: 12,
  }),
  failed('429, only a reset at midnight', 'Rate limit exceeded', {
    headers: { 'x-ratelimit-reset': String(MIDNIGHT) },
    ...tomorrow,
  }),
  failed('429, only a reset soon', 'Rate limit exceeded', {
    headers: { 'x-ratelimit-reset': String(ANSWERED_AT + 12_000) },
    wait: 12,
  }),
  failed('402, `limit_source` `openrouter_in_flight_budget`', 'Too many requests in flight', {
    metadata: { limit_source: 'openrouter_in_flight_budget' },
    headers: { 'retry-after': '3' },
    wait: 3,
  }),
  failed('402, only `Retry-After`', 'Wait', { headers: { 'retry-after': '2' }, wait: 2 }),
  failed('402, only `retry_after_seconds`', 'Wait', {
    metadata: { retry_after_seconds: 4 },
    wait: 4,
  }),
  failed('402, only `Retry-After` among the headers it repeats', 'Wait', {
    metadata: { headers: { 'Retry-After': '5' } },
    wait: 5,
  }),
  failed('402, more credits required', CREDITS),
  failed('402, `limit_source` `openrouter_credits`', 'Insufficient credits', {
    metadata: { limit_source: 'openrouter_credits' },
  }),
  failed('403, key limit exceeded', 'Key limit exceeded (total limit). Manage it using the settings'),
  failed('402, `limit_source` `openrouter_key_limit`', 'Limit', {
    metadata: { limit_source: 'openrouter_key_limit' },
  }),
  failed('401, no such key', 'User not found.'),
  failed('404, data policy', POLICY),
  available(404, 'privacy_restricted'),
  row(
    "429, the model's shared pool",
    upstream(429, {
      limit_source: 'upstream_provider_shared_pool',
      retry_after_seconds: 11,
      retry_after_seconds_raw: 10.918,
    }),
    { wait: 11 },
  ),
  failed('429, message `limit_rpm`', `Rate limit exceeded: limit_rpm/${BUSY} 8 requests per minute.`, {
    metadata: { headers: repeated(8, ANSWERED_AT + 12_000), provider_name: null },
    wait: 12,
  }),
  failed('429, message `limit_rpd`', `Rate limit exceeded: limit_rpd/${BUSY} 200 requests per day.`, {
    metadata: { headers: repeated(200, MIDNIGHT), provider_name: null },
    ...tomorrow,
  }),
  row("429, a provider's, with a quota per day in its message", upstream(429, { raw: QUOTA })),
  row("429, a provider's, beside headers of a limit", upstream(429), {
    headers: { 'x-ratelimit-limit': '50' },
  }),
  row("429, cut short after a provider's words", JSON.stringify(upstream(429)).slice(0, 60), cut),
  available(429, 'capacity_exhausted', 7),
  row("200, a provider's 429 inside a choice", brokenOff(429, 'Provider returned error', provider)),
  failed('429, without an owner', 'Too many requests', {
    headers: { 'retry-after': 'Sun, 01 Mar 2026 00:10:20 GMT' },
    wait: 20,
  }),
  row('429, HTML', HTML),
  row('502, provider unavailable', upstream(502)),
  available(503, 'temporarily_unavailable'),
  failed('529, overloaded', 'Overloaded'),
  row("401, a provider's own", upstream(401)),
  row("402, a provider's own", upstream(402)),
  row('200, an error without a code inside', { error: { message: 'Internal error' } }),
  row('200, only `finish_reason` `error`', choice({ message, finish_reason: 'error' })),
  row(
    '200, `error_type` `authentication` inside',
    error('unauthorized', 'No', { error_type: 'authentication' }),
  ),
  row('200, a 401 inside', brokenOff(401, 'Unauthorized')),
  row('200, a 402 inside', error(402, 'Insufficient balance')),
  row('200, a key limit inside', error(403, 'Key limit exceeded')),
  row('200, a data policy inside', error(404, 'Breaks a data policy')),
  row('200, a 400 inside', error(400, 'bad request')),
  row('200, a 404 inside', error(404, 'not found')),
  row("200, a provider's 400 inside", upstream(400)),
  row('200, a 401 in a later event', BEGUN + event(error(401, 'No'))),
  row('200, a 504 inside', error(504, 'Timed out')),
  row('200, a 429 inside, without an owner', error(429, 'Too many')),
  row('200, an error in a later event', BEGUN + event(error(502, 'Upstream broke', provider))),
  failed('404, no endpoints for the model', 'No endpoints found for vendor/model:free.'),
  failed('400, no such model', 'vendor/model:free is not a valid model ID'),
  ...['free_variant_ended', 'no_endpoints', 'model_deprecated', 'model_unavailable_upstream'].map((code) =>
    available(404, code),
  ),
  failed('403, a closed region', 'Forbidden in your region'),
  available(403, 'region_restricted'),
  available(400, 'model_not_found'),
  failed('404, no support of tools', 'No endpoints found that support tool use.'),
  failed(
    '404, no support of `tool_choice`',
    "No endpoints found that support the provided 'tool_choice' value.",
  ),
  available(404, 'constraint_filtered'),
  available(400, 'wrong_endpoint'),
  failed('400, an unsupported parameter', 'temperature is not supported'),
  failed('400, `error_type` `context_length_exceeded`', 'Too long', {
    metadata: { error_type: 'context_length_exceeded' },
  }),
  failed('403, moderation with its reasons', 'Input flagged', {
    metadata: { reasons: ['violence'], flagged_input: 'x', ...provider, model_slug: 'vendor/model' },
  }),
  failed('403, a guardrail with its patterns', 'Blocked', { metadata: { patterns: ['secret'] } }),
  row('200, `error_type` `refusal` inside', error('refused', 'No', { error_type: 'refusal' })),
  row('402, HTML', HTML),
  row('403, HTML', HTML),
  failed('403, an unknown message', 'Forbidden'),
  row('no complete response in time', '', { ending: 'timeout' }),
  failed('504', 'Timed out', { metadata: { error_type: 'timeout' } }),
  row('524, HTML', HTML),
  row('502, HTML', HTML),
  row('301, a redirect, which is not followed', '', {
    headers: { location: 'https://elsewhere.example' },
  }),
  row('no connection', '', { ending: 'unreachable' }),
  row('200, cut short', '{"choices":[{"message":{"content":"he', cut),
  row('200, too large', '{"choices":[{"me', { ending: 'too-large' }),
  row('200, HTML', HTML),
  row('200, empty', ''),
  row('200, an empty message', emptied('stop')),
  row('200, an empty message that a filter emptied', emptied('content_filter')),
  row('200, a refusal instead of a message', choice({ message: { content: null, refusal: 'No.' } })),
  row('200, no choices', { id: 'gen-1', choices: [] }),
]
