import { z } from 'zod'
import type { FreeModelsRefusal } from '../../domain/models/refusals.ts'
import {
  healthSchema,
  recommendationSchema,
  statusSchema,
  topModelsSchema,
} from '../../domain/models/schema.ts'
import { NEED_NAMES } from '../../domain/models/shortlist-query.ts'
import { publicAccess } from '../public-access.ts'
import type { Contract } from '../route.ts'

/** Where the interface is described, as a document and as a page. */
export const FREE_MODELS_DOCS = '/docs/api/free-llm'

/** Version of the interface; the release of the product has its own. */
export const FREE_MODELS_API_VERSION = '1.0.0'

export const SEED_HEADER = 'x-free-llm-seed'
export const CACHE_CONTROL = 'public, max-age=300, stale-while-revalidate=3600'

type PlainRefusal = Exclude<FreeModelsRefusal, 'invalid_limit' | 'invalid_filter'>

const STATUS = {
  method_not_allowed: { status: 405, when: 'any method but GET and OPTIONS; the answer has `Allow: GET`' },
  internal_error: {
    status: 500,
    when: 'anything unexpected; a store that fails is answered with the seed instead',
  },
} satisfies Record<PlainRefusal, { status: number; when: string }>

const SHORTLIST_STATUS = {
  invalid_limit: { status: 400, when: '`limit` is given twice or is no whole number of at least 1' },
  invalid_filter: {
    status: 400,
    when: '`needs`, `minContext` or `health` is given twice or has an unknown value',
  },
  ...STATUS,
} satisfies Record<FreeModelsRefusal, { status: number; when: string }>

/** What the contracts share. Stores do not refuse here: the seed stands in for them. */
const COMMON = {
  tag: 'Free models',
  query: [],
  successHeaders: {
    'Cache-Control': `\`${CACHE_CONTROL}\``,
    ETag: 'strong: the SHA-256 of the body in hexadecimal, quoted',
    'Content-Digest': 'SHA-256 of the content (RFC 9530)',
    'Repr-Digest': 'SHA-256 of the representation (RFC 9530)',
    'X-Free-LLM-Seed': '`true` while the built-in seed is served; absent otherwise',
    Link: 'the documentation and the OpenAPI description',
  },
  storage: { storage_unavailable: 'internal_error', storage_damaged: 'internal_error' },
  fault: 'internal_error',
  ...publicAccess(FREE_MODELS_DOCS, ['ETag', 'Link', 'X-Free-LLM-Seed']),
  refusals: STATUS,
} as const

/** `GET /api/free-llm/recommendation` (docs/free-models.md). */
export const recommendationContract: Contract<PlainRefusal> = {
  ...COMMON,
  path: '/api/free-llm/recommendation',
  operationId: 'getFreeModelRecommendation',
  summary: 'The free text model to use now',
  description: [
    'The current recommendation for general developer use, every other ranked model as its alternatives, best first,',
    'and a stable fallback router. While no stored recommendation can be read, the built-in seed is served.',
  ].join(' '),
  success: recommendationSchema,
  successDescription: 'The recommendation',
}

/** `GET /api/free-llm/top-models` (docs/free-models.md). */
export const topModelsContract: Contract<FreeModelsRefusal> = {
  ...COMMON,
  path: '/api/free-llm/top-models',
  operationId: 'getTopFreeModels',
  summary: 'The ordered shortlist behind the recommendation',
  description: [
    'Every ranked model, best first, for a daily poll. Filters leave models out and keep the ranks of those that stay;',
    '`limit` cuts what is left.',
  ].join(' '),
  query: [
    {
      name: 'limit',
      required: false,
      description: 'At most so many models; more than there are gives them all.',
      schema: { type: 'integer', minimum: 1 },
    },
    {
      name: 'needs',
      required: false,
      description: `What a model must support, separated by commas: ${NEED_NAMES.map((name) => `\`${name}\``).join(', ')}. \`tools\` also leaves out models that did not use a tool when asked to.`,
      schema: { type: 'string', pattern: `^(${NEED_NAMES.join('|')})(,(${NEED_NAMES.join('|')}))*$` },
    },
    {
      name: 'minContext',
      required: false,
      description: 'Least context length in tokens.',
      schema: { type: 'integer', minimum: 1 },
    },
    {
      name: 'health',
      required: false,
      description: 'Only models that answered as asked when they were probed.',
      schema: { type: 'string', enum: ['passed'] },
    },
  ],
  success: topModelsSchema,
  successDescription: 'The shortlist; empty when no model passes the filters',
  refusals: SHORTLIST_STATUS,
}

/** `GET /api/free-llm/health` (docs/free-models.md). */
export const freeModelsHealthContract: Contract<PlainRefusal> = {
  ...COMMON,
  path: '/api/free-llm/health',
  operationId: 'getFreeModelHealth',
  summary: 'How fresh the stored recommendation is',
  description: 'Always 200; `ok` tells whether a stored recommendation is there and fresh.',
  success: healthSchema,
  successDescription: 'Freshness',
}

/** `GET /api/status/free-llm` (docs/free-models.md). */
export const freeModelsStatusContract: Contract<PlainRefusal> = {
  ...COMMON,
  path: '/api/status/free-llm',
  operationId: 'getFreeModelStatus',
  summary: 'Health, and what is recommended',
  description: 'The health payload with the id of the primary and the version and confidence of the ranking.',
  success: statusSchema,
  successDescription: 'Status',
}

/** `GET /badge/free-model.svg` (docs/free-models.md). */
export const badgeContract: Contract<PlainRefusal> = {
  ...COMMON,
  path: '/badge/free-model.svg',
  operationId: 'getFreeModelBadge',
  summary: 'The recommended model as a picture',
  description:
    'One line for a README or a dashboard: the id of the primary, and that it is stale or the built-in seed when it is.',
  contentType: 'image/svg+xml',
  success: z.string(),
  successDescription: 'An SVG picture',
}

/** Every contract of the interface, as its document lists them. */
export const FREE_MODELS_CONTRACTS = [
  recommendationContract,
  topModelsContract,
  freeModelsHealthContract,
  freeModelsStatusContract,
  badgeContract,
] as const
