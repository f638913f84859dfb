import { z } from 'zod'
import type { H3Event } from 'h3'
import { rankedModelSchema } from '../../domain/models/schema.ts'
import { upstreamErrors } from '../../domain/v1/failures.ts'
import type { V1Error } from '../../domain/v1/failures.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Contract, ShownError } from '../route.ts'
import { codeOf, retryAfter } from '../route.ts'
import type { KeyRefusal } from '../agent/admit-turn.ts'
import { chatContract } from '../agent/contracts.ts'

/** Every refusal of `/v1` by this server itself; failures of the routing service are in `domain/v1/failures.ts`. */
const V1_REFUSALS = {
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
  not_found: {
    status: 404,
    message:
      'there is no such address: set the client to chat completions, and its base URL to the address that ends in /v1; see /docs/api/v1',
  },
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
    message: 'too many keys of this address or its network were rejected; try again in a minute',
  },
  busy: {
    status: 429,
    message:
      'the server has as many open or waiting requests, or as many bytes of bodies that arrive, as it allows of this address or in all',
  },
  no_ranking: {
    status: 503,
    message:
      'no ranking of free models is stored; the operator of this server makes one with `dash evaluate-models`',
  },
  internal_error: { status: 500, message: 'an unexpected error' },
} as const satisfies Record<string, Pick<V1Error, 'status' | 'message'>>

type V1Code = keyof typeof V1_REFUSALS

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
  retryAfterSeconds?: number
  /** Further members of the error; `message` replaces that of the code. */
  members?: Readonly<Record<string, unknown>>
  headers?: Readonly<Record<string, string>>
}

/** A request to `/v1` that is declined, by this server or after the routing service failed. */
export class V1Refusal extends Error {
  override readonly name = 'V1Refusal'
  readonly error: V1Error
  readonly headers: Readonly<Record<string, string>>
  readonly #members: Readonly<Record<string, unknown>>

  constructor(reason: V1Code | V1Error, { retryAfterSeconds, members = {}, headers }: RefusalDetails = {}) {
    const error = typeof reason === 'string' ? { code: reason, ...V1_REFUSALS[reason] } : reason
    super(error.code)
    this.error = error
    this.headers = {
      ...headers,
      ...(retryAfterSeconds && retryAfter({ retryAfterSeconds })),
      ...(retryAfterSeconds && retryAfterSeconds > RETRY_MAX_SECONDS && NO_RETRY),
    }
    this.#members = members
  }

  /** The body in the shape of the OpenAI API. */
  body(): object {
    const { status, message, code } = this.error
    return { error: { message, type: typeOf(status), code, ...this.#members } }
  }
}

const BEARER = { 'www-authenticate': 'Bearer' }

/** The caller's key, from `Authorization` alone. @throws V1Refusal `missing_api_key` */
export function keyIn(event: H3Event): string {
  const header = event.req.headers.get('authorization') ?? ''
  const key = /^Bearer +([\x21-\x7e]{1,512}) *$/i.exec(header)?.[1]
  if (key === undefined) throw new V1Refusal('missing_api_key', { headers: BEARER })
  return key
}

/** The error of a route of `/v1`, in the shape of the OpenAI API. */
function shownV1Error(thrown: unknown): ShownError {
  const refusal = thrown instanceof V1Refusal ? thrown : refusalFor(thrown)
  const { error, headers } = refusal
  const { status, code } = error
  return { status, code, headers, body: refusal.body(), expected: code !== 'internal_error' }
}

/** The refusal for an error of parts that this interface shares with others: the route itself, its queue, and the chat. */
function refusalFor(error: unknown): V1Refusal {
  if (!(error instanceof Refusal)) return new V1Refusal('internal_error')
  const { retryAfterSeconds, scope } = error.members
  const wait = typeof retryAfterSeconds === 'number' ? { retryAfterSeconds } : {}
  if (isOwnCode(error.code)) return new V1Refusal(error.code, wait)
  if (error.code === ('invalid_api_key' satisfies KeyRefusal))
    return new V1Refusal({ status: 401, code: error.code, message: UNKNOWN_KEY }, { headers: BEARER })
  const code = codeOf(chatContract, error)
  const { status, when, error: publicCode = code } = chatContract.refusals[code]
  const limit =
    scope === 'global-budget' ? 'the chat reached a limit of the day or of its open answers' : KEY_LIMIT
  const message =
    retryAfterSeconds === undefined ? when : `${limit}; send the request again in ${retryAfterSeconds} s`
  return new V1Refusal({ status, code: publicCode, message }, wait)
}

/** Every other refusal of this server is thrown as a V1Refusal. */
function isOwnCode(code: string): code is 'busy' | 'method_not_allowed' {
  return code === 'busy' || code === 'method_not_allowed'
}

const UNKNOWN_KEY = 'the key is unknown or revoked; send a key of dash chat-key new as Authorization: Bearer'

const KEY_LIMIT = 'the key or the address of the caller reached its limit'

/** Path of the page that documents this interface. */
export const V1_DOCS = '/docs/api/v1'

type Refusals = Contract<string>['refusals']

const NO_RETRY_HEADER = { 'X-Should-Retry': '`false`: a repetition would cost the account further requests' }

function refusalsOf(codes: readonly V1Code[]): Refusals {
  return Object.fromEntries(
    codes.map((code) => {
      const { status, message } = V1_REFUSALS[code]
      const headers = [429, 503].includes(status) ? { 'Retry-After': 'seconds to wait' } : {}
      return [code, { status, when: message, headers }]
    }),
  )
}

const COMMON = {
  tag: 'OpenAI-compatible',
  query: z.object({}),
  revalidated: false,
  fault: 'internal_error',
  openAiErrors: shownV1Error,
  methodNotAllowed: 'method_not_allowed',
  headers: {},
  refusalHeaders: { 'cache-control': 'no-store' },
  preflight: null,
} as const

const modelSchema = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.int().describe('time of the ranking, in seconds since 1970'),
  owned_by: z.string(),
  context_length: z.int().optional().describe('tokens'),
  dash: rankedModelSchema
    .pick({ rank: true, score: true, toolUse: true, checkedAt: true })
    .optional()
    .describe('measurements; ranked ids only'),
})

export type ListedModel = z.infer<typeof modelSchema>

/** `GET /v1/models` (docs/v1.md). */
export const modelsContract: Contract<string> = {
  ...COMMON,
  path: '/v1/models',
  operationId: 'listModels',
  summary: 'List the models',
  description:
    '`dash` if the chat is set up, `auto`, `auto-tools`, `auto-json`, `auto-long`, then every ranked id, best first. Exists only if `DASH_V1` is set.',
  success: z.object({ object: z.literal('list'), data: z.array(modelSchema) }),
  successDescription: 'The models',
  successHeaders: { 'Cache-Control': '`no-store`' },
  refusals: refusalsOf(['rate_limited', 'too_many_rejected_keys', 'method_not_allowed', 'internal_error']),
}

/** `GET /v1/models/<id>` (docs/v1.md). */
export const modelContract: Contract<string> = {
  ...COMMON,
  path: '/v1/models/{model}',
  pathRest: { name: 'model', description: 'an id of `/v1/models`; its slash may be encoded' },
  operationId: 'retrieveModel',
  summary: 'Get a model',
  description: 'The entry of one model in `/v1/models`. Exists only if `DASH_V1` is set.',
  success: modelSchema,
  successDescription: 'The model',
  successHeaders: { 'Cache-Control': '`no-store`' },
  refusals: refusalsOf([
    'model_not_found',
    'rate_limited',
    'too_many_rejected_keys',
    'method_not_allowed',
    'internal_error',
  ]),
}

/** Refusals of the model `dash`, besides those that have a code of their own here. */
const { disabled, misconfigured, invalid_json, no_user_message, quota_unavailable } = chatContract.refusals

const completionCodes = Object.keys(V1_REFUSALS).filter((code) => code !== 'not_found') as V1Code[]

/** `POST /v1/chat/completions` (docs/v1.md). */
export const completionsContract: Contract<string> = {
  ...COMMON,
  method: 'POST',
  path: '/v1/chat/completions',
  operationId: 'createChatCompletion',
  summary: 'Create a chat completion',
  description:
    "Passes the request on to a free model of the routing service, with the caller's own key and a maximum price of zero. Exists only if `DASH_V1` is set.",
  request: {
    key: true,
    headers: [],
    body: {
      required: true,
      description: 'A chat completion request of the OpenAI API, at most 4 MiB; other fields are removed',
      schema: z.looseObject({
        model: z.string().describe('a model of `/v1/models`'),
        messages: z.array(z.looseObject({ role: z.string() })).min(1),
        stream: z.boolean().optional(),
      }),
    },
  },
  success: z.looseObject({ choices: z.array(z.looseObject({})) }),
  successDescription: 'The completion, byte for byte as the routing service sends it',
  otherSuccess: { contentType: 'text/event-stream', schema: z.string() },
  successHeaders: {
    'Cache-Control': '`no-store`',
    'X-Dash-Model': 'the model that responds, where it is known',
    'X-Dash-Ranking-Version': 'version of the ranking',
    Deprecation: '14 days before the end of the model (RFC 9745); absent while no end is announced',
    Sunset: 'start of the day on which the model ends (RFC 8594); absent while no end is announced',
  },
  refusals: {
    disabled,
    misconfigured,
    invalid_json,
    no_user_message,
    quota_unavailable,
    ...refusalsOf(completionCodes),
    ...Object.fromEntries(
      upstreamErrors().map(({ code, status, message }) => [
        code,
        { status, when: message, headers: NO_RETRY_HEADER },
      ]),
    ),
  },
}

/** Every contract of the interface, as its document lists them. */
export const V1_CONTRACTS = [modelsContract, modelContract, completionsContract] as const
