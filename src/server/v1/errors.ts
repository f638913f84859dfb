import type { H3Event } from 'h3'
import { formatNeeds } from '../../domain/v1/completion-request.ts'
import type { CompletionNeeds } from '../../domain/v1/completion-request.ts'
import type { V1Error } from '../../domain/v1/failures.ts'
import { Refusal } from '../../domain/refusal.ts'
import { NO_STORE, notesOf, requestId, respondJson } from '../respond.ts'
import { retryAfter } from '../route.ts'
import type { Log, Route } from '../route.ts'

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

/** An error of this server; its type follows from its status. */
export function v1Error(status: number, code: string, message: string): V1Error {
  return { status, type: typeOf(status), code, message }
}

function refusalOf(code: V1Code): V1Error {
  const { status, message } = V1_REFUSALS[code]
  return v1Error(status, code, message)
}

function typeOf(status: number): V1Error['type'] {
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
    const error = typeof reason === 'string' ? refusalOf(reason) : reason
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
  body(): { error: Omit<V1Error, 'status'> & Record<string, unknown> } {
    const { message, type, code } = this.error
    const { needs, rejected } = this.#details
    return {
      error: {
        message,
        type,
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

/** Binds a handler to a path of `/v1`. Errors become responses only here; no response has CORS headers. */
export function v1Route(
  path: string,
  method: 'GET' | 'POST' | null,
  handler: (event: H3Event) => Promise<Response>,
): Route {
  return {
    path,
    async handle(event, log) {
      try {
        if (method !== null && !methodsOf(method).includes(event.req.method))
          throw new V1Refusal('method_not_allowed', {}, { allow: methodsOf(method).join(', ') })
        return await handler(event)
      } catch (error) {
        return refuse(event, error, log)
      }
    },
  }
}

function methodsOf(method: 'GET' | 'POST'): string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

function refusalFor(error: unknown): V1Refusal {
  if (error instanceof V1Refusal) return error
  if (error instanceof Refusal && error.code === 'busy')
    return new V1Refusal('busy', { retryAfterSeconds: Number(error.members['retryAfterSeconds']) })
  return new V1Refusal('internal_error')
}

function refuse(event: H3Event, error: unknown, log: Log): Response {
  const refusal = refusalFor(error)
  const { status, code } = refusal.error
  if (code === 'internal_error')
    log.error({ requestId: requestId(event.req.headers), code, err: error }, 'request refused')
  const response = respondJson(event, status, { ...NO_STORE, ...refusal.headers }, refusal.body())
  notesOf(event.runtime?.node?.res).code = code
  return response
}
