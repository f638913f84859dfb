import type { Classification } from '../models/evaluation.ts'
import type { Instant } from '../time.ts'

/** A response of the routing service that is not a completion, or the reason there is none. */
export type UpstreamFailure = Pick<
  Classification,
  'class' | 'status' | 'retryAt' | 'resetAt' | 'limit' | 'remaining'
>

/** Thrown when a stream ends that was already passed on in part. */
export class BrokenStream extends Error {
  override readonly name = 'BrokenStream'
  readonly code: 'idle' | 'truncated' | 'invalid_stream'

  constructor(code: BrokenStream['code'], cause?: unknown) {
    super(code, { cause })
    this.code = code
  }
}

/** An error of `/v1`. */
export interface V1Error {
  status: number
  code: string
  message: string
}

/** The error for the caller. The service's own text never passes: it may repeat the key. */
export function errorOf({ class: kind, status }: UpstreamFailure): V1Error {
  const known = ERRORS[kind] ?? (kind === 'ambiguous' && status !== null ? UNEXPLAINED[status] : undefined)
  if (known) return known
  const response = status === null ? 'no connection' : `status ${status}`
  return { ...UPSTREAM, message: `the routing service failed (${response}); try again later` }
}

const UPSTREAM = { status: 502, code: 'upstream_error' } as const

const limitError = (code: string, message: string): V1Error => ({
  status: 429,
  code,
  message,
})

/** Every error after a failure of the routing service. */
export function upstreamErrors(): readonly V1Error[] {
  return [
    ...Object.values(ERRORS),
    FORBIDDEN,
    { ...UPSTREAM, message: 'the routing service cannot be reached, or fails' },
  ]
}

const REJECTED_KEY: V1Error = {
  status: 401,
  code: 'invalid_api_key',
  message: 'the routing service rejects your key; check it at the service',
}

const FORBIDDEN: V1Error = {
  status: 403,
  code: 'forbidden',
  message: 'the routing service forbids the request without a reason; check your key and your account there',
}

/** Errors of responses by their status, if nothing else in them explains it. */
const UNEXPLAINED: Partial<Record<number, V1Error>> = { 401: REJECTED_KEY, 403: FORBIDDEN }

const ERRORS: Partial<Record<UpstreamFailure['class'], V1Error>> = {
  account_daily: limitError('account_daily_limit', 'your account has used its free requests of this day'),
  account_minute: limitError('account_minute_limit', 'your account has used its requests of this minute'),
  account_busy: limitError('account_busy', 'your account has too many open requests; try again shortly'),
  account_key: REJECTED_KEY,
  account_key_limit: {
    status: 402,
    code: 'key_limit',
    message: 'the limit of your key is used up; raise it where the key was created',
  },
  account_balance: {
    status: 402,
    code: 'insufficient_balance',
    message: 'the balance of your account blocks requests; add credits at the routing service',
  },
  account_policy: {
    status: 403,
    code: 'account_data_policy',
    message: 'the data policy of your account forbids free models; allow them at the routing service',
  },
  model_rate_limit: limitError(
    'model_rate_limited',
    'the model or its provider is rate-limited; try again later, or use another model',
  ),
  model_gone: {
    status: 404,
    code: 'model_unavailable',
    message: 'the routing service has no endpoint for the model; use auto, or another model of /v1/models',
  },
  model_unsupported: {
    status: 400,
    code: 'unsupported_request',
    message: 'the routing service declines the request; check its parameters, or use another model',
  },
  refused: {
    status: 403,
    code: 'content_filter',
    message: 'a filter declines the request',
  },
  timeout: {
    status: 504,
    code: 'timeout',
    message: 'the model did not respond in time; try again, or use another model',
  },
  invalid_answer: {
    ...UPSTREAM,
    code: 'invalid_upstream_response',
    message: 'the routing service sent something that is not a completion; try again later',
  },
}

/** Response headers with the limit and its reset (milliseconds since 1970), as the routing service reports them. */
export function limitHeaders(
  { class: kind, limit, remaining, resetAt, retryAt }: UpstreamFailure,
  now: Instant,
): Record<string, string> {
  const headers: Record<string, string> = {}
  if (resetAt !== null) headers['x-ratelimit-reset'] = String(resetAt)
  if (limit !== null) headers['x-ratelimit-limit'] = String(limit)
  if (remaining !== null) headers['x-ratelimit-remaining'] = String(remaining)
  if (retryAt !== null && kind !== 'account_key')
    headers['retry-after'] = String(Math.max(1, Math.ceil((retryAt - now) / 1000)))
  return headers
}
