import type { H3Event } from 'h3'
import { formatNeeds } from '../../domain/v1/completion-request.ts'
import type { CompletionNeeds } from '../../domain/v1/completion-request.ts'
import type { V1Error } from '../../domain/v1/failures.ts'
import { Refusal } from '../../domain/refusal.ts'
import { retryAfter } from '../route.ts'
import type { ShownError } from '../route.ts'

/** Every refusal of `/v1` by this server itself; failures of the routing service are in `domain/v1/failures.ts`. */
export const V1_REFUSALS = {
  missing_api_key: {
    status: 401,
    message:
      'send a key as `Authorization: Bearer KEY`: your own key of the routing service, or for the model `dash` a key of this server; keys in the URL are ignored',
  },
  wrong_kind_of_key: {
    status: 401,
    message:
      'a key of this server serves the model `dash` only; other models need your key of the routing service',
  },
  invalid_request: { status: 400, message: 'the request is invalid' },
  not_found: { status: 404, message: 'there is no such address; see /docs/api/v1' },
  model_not_found: {
    status: 404,
    message: 'there is no such model; /v1/models lists every model',
  },
  method_not_allowed: { status: 405, message: 'the method is not allowed; see the header Allow' },
  payload_too_large: { status: 413, message: 'the body is larger than 4 MiB' },
  no_free_model: { status: 422, message: 'no ranked free model meets the needs of the request' },
  rate_limited: { status: 429, message: 'this address has used its 60 requests of this minute' },
  too_many_streams: { status: 429, message: 'this address has 25 open requests, the maximum' },
  too_many_rejected_keys: {
    status: 429,
    message:
      'ten keys of this address were rejected, or are in use after a rejected one; try again in a minute',
  },
  busy: {
    status: 429,
    message:
      'the server has as many open or waiting requests, or as many bytes of bodies that arrive, as it allows of this address or in all',
  },
  no_ranking: {
    status: 503,
    message: 'no ranking of free models is stored; `dash evaluate-models` makes one',
  },
  internal_error: { status: 500, message: 'an unexpected error' },
} as const satisfies Record<string, Pick<V1Error, 'status' | 'message'>>

export type V1Code = keyof typeof V1_REFUSALS

function typeOf(status: number): string {
  if (status >= 500) return 'api_error'
  if (status === 429) return 'rate_limit_error'
  return status === 401 ? 'authentication_error' : 'invalid_request_error'
}

/** Clients of OpenAI's libraries repeat a failed request after any wait that `Retry-After` names, unless told not to. */
export const NO_RETRY = { 'x-should-retry': 'false' }

/** Longest wait, in seconds, after which a client should repeat a request by itself. */
const RETRY_MAX_SECONDS = 60

interface RefusalDetails {
  /** Replaces the message of the code. */
  message?: string
  retryAfterSeconds?: number
  needs?: CompletionNeeds
  rejected?: Readonly<Record<string, string>>
}

/** A request to `/v1` that is declined, by this server or after the routing service failed. */
export class V1Refusal extends Error {
  override readonly name = 'V1Refusal'
  readonly error: V1Error
  readonly headers: Readonly<Record<string, string>>
  readonly #details: RefusalDetails

  constructor(reason: V1Code | V1Error, details: RefusalDetails = {}, headers = {}) {
    const error = typeof reason === 'string' ? { code: reason, ...V1_REFUSALS[reason] } : reason
    super(error.code)
    const { retryAfterSeconds } = details
    this.error = { ...error, message: details.message ?? error.message }
    this.headers = {
      ...headers,
      ...(retryAfterSeconds && retryAfter({ retryAfterSeconds })),
      ...(retryAfterSeconds && retryAfterSeconds > RETRY_MAX_SECONDS && NO_RETRY),
    }
    this.#details = details
  }

  /** The body in the shape of the OpenAI API. */
  body(): object {
    const { status, message, code } = this.error
    const { needs, rejected } = this.#details
    return {
      error: {
        message,
        type: typeOf(status),
        code,
        ...(needs && { needs: formatNeeds(needs) }),
        ...(rejected && { rejected }),
      },
    }
  }
}

/** The caller's key, from `Authorization` alone. @throws V1Refusal `missing_api_key` */
export function keyIn(event: H3Event): string {
  const header = event.req.headers.get('authorization') ?? ''
  const key = /^Bearer +([\x21-\x7e]{1,512}) *$/i.exec(header)?.[1]
  if (key === undefined) throw new V1Refusal('missing_api_key', {}, { 'www-authenticate': 'Bearer' })
  return key
}

/** The error of a route of `/v1`, in the shape of the OpenAI API. */
export function shownV1Error(thrown: unknown): ShownError {
  const refusal = thrown instanceof V1Refusal ? thrown : refusalFor(thrown)
  const { error, headers } = refusal
  const { status, code } = error
  return { status, code, headers, body: refusal.body(), expected: code !== 'internal_error' }
}

/** The refusal for an error of parts that this interface shares with others. */
function refusalFor(error: unknown): V1Refusal {
  if (!(error instanceof Refusal) || !isV1Code(error.code)) return new V1Refusal('internal_error')
  const { retryAfterSeconds } = error.members
  return new V1Refusal(
    error.code,
    retryAfterSeconds === undefined ? {} : { retryAfterSeconds: Number(retryAfterSeconds) },
  )
}

function isV1Code(code: string): code is V1Code {
  return Object.hasOwn(V1_REFUSALS, code)
}
