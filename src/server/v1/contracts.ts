import { z } from 'zod'
import { rankedModelSchema } from '../../domain/models/schema.ts'
import { upstreamErrors } from '../../domain/v1/failures.ts'
import type { Contract } from '../route.ts'
import { V1_REFUSALS, shownV1Error } from './errors.ts'
import type { V1Code } from './errors.ts'

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
    headers: [{ name: 'Authorization', required: true, description: '`Bearer` and the key of the caller' }],
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
