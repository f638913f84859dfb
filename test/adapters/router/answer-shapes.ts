import type { RouterResponse } from '../../../src/adapters/router/classify.ts'
import type { AnswerClass } from '../../../src/domain/models/evaluation.ts'

/** When every shape was answered: Sunday, 1 March 2026, ten past midnight UTC. */
export const ANSWERED_AT = Date.UTC(2026, 2, 1, 0, 10)

const MIDNIGHT = Date.UTC(2026, 2, 2)

/** One shape of an answer, and what it means. */
export interface AnswerShape {
  shape: string
  answer: RouterResponse
  means: AnswerClass
  /** Seconds after the answer at which to ask again; null when it does not tell. */
  retryAfter: number | null
}

export function answered(
  status: number | null,
  body: unknown,
  changes: Partial<RouterResponse> = {},
): RouterResponse {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return {
    status,
    headers: {},
    body: text,
    ending: 'whole',
    endedAt: ANSWERED_AT,
    ...changes,
  }
}

const error = (code: unknown, message: string, metadata?: object, rest: object = {}): object => ({
  error: { code, message, ...(metadata ? { metadata } : {}), ...rest },
})

const limitHeaders = (limit: number, reset: number): Record<string, string> => ({
  'X-RateLimit-Limit': String(limit),
  'X-RateLimit-Remaining': '0',
  'X-RateLimit-Reset': String(reset),
})

const realHeaders = (limit: number, reset: number): Record<string, string> =>
  Object.fromEntries(
    Object.entries(limitHeaders(limit, reset)).map(([name, value]) => [name.toLowerCase(), value]),
  )

const upstream = (status: number, metadata: object = {}): object =>
  error(status, 'Provider returned error', { provider_name: 'Example Cloud', raw: 'try later', ...metadata })

/** An error inside the choice that it ended. */
const brokenOff = (code: number, said: string): object => ({
  choices: [{ message: { content: 'Hel' }, finish_reason: 'error', ...error(code, said) }],
})

const available = (code: string, status: number): RouterResponse =>
  answered(status, error(status, 'Not available', undefined, { availability: { code, retryable: false } }))

const message = { role: 'assistant', content: 'hello' }
const DAILY =
  'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day'
const HTML = '<!DOCTYPE html><html><head><title>error</title></head><body>cloud</body></html>'
const emptied = (reason: string): object => ({
  choices: [{ message: { role: 'assistant', content: null }, finish_reason: reason }],
})
const whole = { choices: [{ message, finish_reason: 'stop' }] }

const row = (
  shape: string,
  answer: RouterResponse,
  means: AnswerClass,
  retryAfter: number | null = null,
): AnswerShape => ({ shape, answer, means, retryAfter })

const untilMidnight = (MIDNIGHT - ANSWERED_AT) / 1000

export const ANSWER_SHAPES: readonly AnswerShape[] = [
  row('200, a message', answered(200, whole), 'answered'),
  row(
    '200, tool calls without content',
    answered(200, {
      choices: [{ message: { content: null, tool_calls: [{ function: { name: 'f', arguments: '{}' } }] } }],
    }),
    'answered',
  ),
  row(
    '200, an event stream with comments',
    answered(
      200,
      ': OPENROUTER PROCESSING\n\ndata: {"choices":[{"delta":{"content":"he"}}]}\n\ndata: {"choices":[{"delta":{"content":"llo"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    ),
    'answered',
  ),
  row(
    '429, `limit_source` `openrouter_free_tier_daily`',
    answered(
      429,
      error(429, DAILY, { headers: limitHeaders(50, MIDNIGHT), limit_source: 'openrouter_free_tier_daily' }),
    ),
    'account_daily',
    untilMidnight,
  ),
  row('429, message `free-models-per-day`', answered(429, error(429, DAILY)), 'account_daily', untilMidnight),
  row(
    '429, message `free-models-per-day-high-balance`',
    answered(
      429,
      error(429, 'Rate limit exceeded: free-models-per-day-high-balance', {
        headers: limitHeaders(1000, MIDNIGHT),
      }),
    ),
    'account_daily',
    untilMidnight,
  ),
  row('200, the daily limit inside', answered(200, error(429, DAILY)), 'account_daily', untilMidnight),
  row(
    '200, the daily limit in an event',
    answered(
      200,
      `: OPENROUTER PROCESSING\n\ndata: ${JSON.stringify({ ...error(429, DAILY), choices: [{ delta: {}, finish_reason: 'error' }] })}\n\n`,
    ),
    'account_daily',
    untilMidnight,
  ),
  row(
    '429, cut short after the message `free-models-per-day`',
    answered(429, JSON.stringify(error(429, DAILY)).slice(0, 80), { ending: 'cut' }),
    'account_daily',
    untilMidnight,
  ),
  row(
    '429, only headers of a limit that ends at midnight',
    answered(429, error(429, 'Too many requests'), { headers: realHeaders(50, MIDNIGHT) }),
    'account_daily',
    untilMidnight,
  ),
  row(
    '429, `limit_source` `openrouter_free_tier_minute`',
    answered(
      429,
      error(429, 'Rate limit exceeded', {
        limit_source: 'openrouter_free_tier_minute',
        headers: limitHeaders(16, ANSWERED_AT + 30_000),
      }),
    ),
    'account_minute',
    30,
  ),
  row(
    '429, message `free-models-per-min`',
    answered(429, error(429, 'Rate limit exceeded: free-models-per-min.')),
    'account_minute',
  ),
  row(
    '429, only headers of a limit that ends soon',
    answered(429, error(429, 'Too many requests'), { headers: realHeaders(20, ANSWERED_AT + 12_000) }),
    'account_minute',
    12,
  ),
  row(
    '402, `limit_source` `openrouter_in_flight_budget`',
    answered(
      402,
      error(402, 'Too many requests in flight', { limit_source: 'openrouter_in_flight_budget' }),
      { headers: { 'retry-after': '3' } },
    ),
    'account_busy',
    3,
  ),
  row(
    '402, only `Retry-After`',
    answered(402, error(402, 'Wait'), { headers: { 'retry-after': '2' } }),
    'account_busy',
    2,
  ),
  row(
    '402, only `retry_after_seconds`',
    answered(402, error(402, 'Wait', { retry_after_seconds: 4 })),
    'account_busy',
    4,
  ),
  row(
    '402, only `Retry-After` among the headers it repeats',
    answered(402, error(402, 'Wait', { headers: { 'Retry-After': '5' } })),
    'account_busy',
    5,
  ),
  row(
    '402, more credits required',
    answered(
      402,
      error(
        402,
        'This request requires more credits, or fewer max_tokens. You requested up to 3000 tokens, but can only afford 12',
      ),
    ),
    'account_balance',
  ),
  row(
    '402, `limit_source` `openrouter_credits`',
    answered(402, error(402, 'Insufficient credits', { limit_source: 'openrouter_credits' })),
    'account_balance',
  ),
  row(
    '403, key limit exceeded',
    answered(403, error(403, 'Key limit exceeded (total limit). Manage it using the settings')),
    'account_key_limit',
  ),
  row(
    '402, `limit_source` `openrouter_key_limit`',
    answered(402, error(402, 'Limit', { limit_source: 'openrouter_key_limit' })),
    'account_key_limit',
  ),
  row('401, no such key', answered(401, error(401, 'User not found.')), 'account_key'),
  row(
    '404, data policy',
    answered(
      404,
      error(
        404,
        'No endpoints found matching your data policy (Free model publication). Configure: https://openrouter.ai/settings/privacy',
      ),
    ),
    'account_policy',
  ),
  row('404, `availability` `privacy_restricted`', available('privacy_restricted', 404), 'account_policy'),
  row(
    "429, the model's shared pool",
    answered(
      429,
      upstream(429, {
        limit_source: 'upstream_provider_shared_pool',
        retry_after_seconds: 11,
        retry_after_seconds_raw: 10.918,
      }),
    ),
    'model_rate_limit',
    11,
  ),
  row(
    "429, a provider's, with its own words of a quota per day",
    answered(
      429,
      upstream(429, {
        raw: '{"error":{"status":"RESOURCE_EXHAUSTED","message":"quota free-models-per_day"}}',
      }),
    ),
    'model_rate_limit',
  ),
  row(
    "429, a provider's, beside headers of a limit",
    answered(429, upstream(429), { headers: { 'x-ratelimit-limit': '50' } }),
    'model_rate_limit',
  ),
  row(
    "429, cut short after a provider's words",
    answered(429, JSON.stringify(upstream(429)).slice(0, 60), { ending: 'cut' }),
    'model_rate_limit',
  ),
  row(
    '429, `availability` `capacity_exhausted`',
    answered(
      429,
      error(429, 'Busy', undefined, { availability: { code: 'capacity_exhausted', retry_after: 7 } }),
    ),
    'model_rate_limit',
    7,
  ),
  row(
    "200, a provider's 429 inside a choice",
    answered(200, {
      choices: [
        {
          message: { content: 'par' },
          finish_reason: 'error',
          error: {
            code: 429,
            message: 'Provider returned error',
            metadata: { provider_name: 'Example Cloud' },
          },
        },
      ],
    }),
    'model_rate_limit',
  ),
  row(
    '429, nothing that tells whose',
    answered(429, error(429, 'Too many requests'), {
      headers: { 'retry-after': 'Sun, 01 Mar 2026 00:10:20 GMT' },
    }),
    'ambiguous',
    20,
  ),
  row('429, HTML', answered(429, HTML), 'ambiguous'),
  row('502, provider unavailable', answered(502, upstream(502)), 'provider_down'),
  row(
    '503, `availability` `temporarily_unavailable`',
    available('temporarily_unavailable', 503),
    'provider_down',
  ),
  row('529, overloaded', answered(529, error(529, 'Overloaded')), 'provider_down'),
  row("401, a provider's own", answered(401, upstream(401)), 'provider_down'),
  row("402, a provider's own", answered(402, upstream(402)), 'provider_down'),
  row(
    '200, an error of no code inside',
    answered(200, { error: { message: 'Internal error' } }),
    'provider_down',
  ),
  row(
    '200, only `finish_reason` `error`',
    answered(200, { choices: [{ message, finish_reason: 'error' }] }),
    'provider_down',
  ),
  row(
    '200, `error_type` `authentication` inside',
    answered(200, error('unauthorized', 'No', { error_type: 'authentication' })),
    'provider_down',
  ),
  row("200, a 401 inside, of nobody's key", answered(200, brokenOff(401, 'Unauthorized')), 'provider_down'),
  row('200, a 402 inside', answered(200, error(402, 'Insufficient balance')), 'provider_down'),
  row('200, a key limit inside', answered(200, error(403, 'Key limit exceeded')), 'provider_down'),
  row('200, a data policy inside', answered(200, error(404, 'Breaks a data policy')), 'provider_down'),
  row('200, a 400 inside', answered(200, error(400, 'bad request')), 'provider_down'),
  row('200, a 404 inside', answered(200, error(404, 'not found')), 'provider_down'),
  row("200, a provider's 400 inside", answered(200, upstream(400)), 'provider_down'),
  row(
    '200, a 401 in a later event',
    answered(
      200,
      `data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: ${JSON.stringify(error(401, 'No'))}\n\n`,
    ),
    'provider_down',
  ),
  row('200, a 504 inside', answered(200, error(504, 'Timed out')), 'timeout'),
  row('200, a 429 inside that tells not whose', answered(200, error(429, 'Too many')), 'ambiguous'),
  row(
    '200, an error in a later event',
    answered(
      200,
      `data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: ${JSON.stringify(error(502, 'Upstream broke', { provider_name: 'Example Cloud' }))}\n\n`,
    ),
    'provider_down',
  ),
  row(
    '404, no endpoints for the model',
    answered(404, error(404, 'No endpoints found for vendor/model:free.')),
    'model_gone',
  ),
  ...['free_variant_ended', 'no_endpoints', 'model_deprecated', 'model_unavailable_upstream'].map((code) =>
    row(`404, \`availability\` \`${code}\``, available(code, 404), 'model_gone'),
  ),
  row('403, a closed region', answered(403, error(403, 'Forbidden in your region')), 'model_gone'),
  row('403, `availability` `region_restricted`', available('region_restricted', 403), 'model_gone'),
  row('400, `availability` `model_not_found`', available('model_not_found', 400), 'model_gone'),
  row(
    '404, no support of tools',
    answered(404, error(404, 'No endpoints found that support tool use.')),
    'model_unsupported',
  ),
  row(
    '404, no support of `tool_choice`',
    answered(404, error(404, "No endpoints found that support the provided 'tool_choice' value.")),
    'model_unsupported',
  ),
  row(
    '404, `availability` `constraint_filtered`',
    available('constraint_filtered', 404),
    'model_unsupported',
  ),
  row('400, `availability` `wrong_endpoint`', available('wrong_endpoint', 400), 'model_unsupported'),
  row(
    '400, the request is not taken',
    answered(400, error(400, 'temperature is not supported')),
    'model_unsupported',
  ),
  row(
    '400, `error_type` `context_length_exceeded`',
    answered(400, error(400, 'Too long', { error_type: 'context_length_exceeded' })),
    'model_unsupported',
  ),
  row(
    '403, moderation with its reasons',
    answered(
      403,
      error(403, 'Input flagged', {
        reasons: ['violence'],
        flagged_input: 'x',
        provider_name: 'Example Cloud',
        model_slug: 'vendor/model',
      }),
    ),
    'refused',
  ),
  row(
    '403, a guardrail with its patterns',
    answered(403, error(403, 'Blocked', { patterns: ['secret'] })),
    'refused',
  ),
  row(
    '200, `error_type` `refusal` inside',
    answered(200, error('refused', 'No', { error_type: 'refusal' })),
    'refused',
  ),
  row('403, HTML', answered(403, HTML), 'ambiguous'),
  row('403, in words nobody knows', answered(403, error(403, 'Forbidden')), 'ambiguous'),
  row('no whole answer in time', answered(null, '', { ending: 'timeout' }), 'timeout'),
  row('504', answered(504, error(504, 'Timed out', { error_type: 'timeout' })), 'timeout'),
  row('524, HTML', answered(524, HTML), 'timeout'),
  row('502, HTML', answered(502, HTML), 'ambiguous'),
  row(
    '301, a redirect, which is not followed',
    answered(301, '', { headers: { location: 'https://elsewhere.example' } }),
    'ambiguous',
  ),
  row('no connection', answered(null, '', { ending: 'unreachable' }), 'ambiguous'),
  row(
    '200, cut short',
    answered(200, '{"choices":[{"message":{"content":"he', { ending: 'cut' }),
    'invalid_answer',
  ),
  row('200, too large', answered(200, '{"choices":[{"me', { ending: 'too-large' }), 'invalid_answer'),
  row('200, HTML', answered(200, HTML), 'invalid_answer'),
  row('200, empty', answered(200, ''), 'invalid_answer'),
  row('200, an empty message', answered(200, emptied('stop')), 'invalid_answer'),
  row('200, an empty message that a filter emptied', answered(200, emptied('content_filter')), 'refused'),
  row('200, no choices', answered(200, { id: 'gen-1', choices: [] }), 'invalid_answer'),
]
