import { z } from 'zod'
import { once } from '../../domain/once.ts'
import { AGENT_CONTRACTS, AGENT_DOCS } from '../agent/contracts.ts'
import { FEED_DOCS } from '../feed/feeds.ts'
import { SUBSCRIPTION_CONTRACTS, liveContract, liveCsvContract } from '../feed/live-routes.ts'
import {
  SEARCH_DOCS,
  searchContract,
  searchCsvContract,
  similarContract,
  trendContract,
} from '../feed/search-routes.ts'
import { MCP_DOCS, mcpContract } from '../mcp/route.ts'
import { modelChangesContract } from '../models/changes-feed.ts'
import { FREE_MODELS_CONTRACTS, FREE_MODELS_DOCS } from '../models/routes.ts'
import type { Contract } from '../route.ts'
import {
  HISTORY_DOCS,
  historyContract,
  historyCsvContract,
  headContract,
  indexContract,
  ledgerContract,
  legacyLedgerContract,
  objectContract,
} from '../year/routes.ts'
import { chartContract, itemChartContract, ranksContract } from '../year/rank-routes.ts'
import { YEAR_CHANGES_CONTRACTS } from '../year/year-changes.ts'
import { V1_CONTRACTS, V1_DOCS } from '../v1/contracts.ts'
import {
  LOG_DOCS,
  checkpointContract,
  policyContract,
  proofContract,
  tileContract,
} from '../year/log-routes.ts'

/** One published interface: its page is at `path`, its OpenAPI document at `path/openapi.json`. */
export interface PublishedInterface {
  path: string
  /** Page of the guide that explains it, with the section if there is one. */
  guide: string
  title: string
  summary: string
  document: () => Record<string, unknown>
}

/** Version of every interface, independent of the product's release. */
const VERSION = '1.0.0'

/** The public interfaces, in display order. */
export const INTERFACES: readonly (Omit<PublishedInterface, 'document'> & {
  contracts: readonly Contract<string>[]
})[] = [
  {
    path: HISTORY_DOCS,
    guide: '/docs/api#history',
    title: 'Top Year feed history',
    summary: 'Serves archived Top Year publications byte for byte.',
    contracts: [
      historyContract,
      historyCsvContract,
      ledgerContract,
      legacyLedgerContract,
      headContract,
      indexContract,
      objectContract,
      ...YEAR_CHANGES_CONTRACTS,
      ranksContract,
      chartContract,
      itemChartContract,
    ],
  },
  {
    path: LOG_DOCS,
    guide: '/docs/signed-log',
    title: 'Top Year transparency log',
    summary: 'Serves the ledger in the formats of C2SP transparency logs, and proof files of publications.',
    contracts: [checkpointContract, tileContract, policyContract, proofContract],
  },
  {
    path: FEED_DOCS,
    guide: '/docs/api#live-feed',
    title: 'Live feed',
    summary: 'Serves the trends of now and of the last day, week and month, also as RSS, Atom and JSON Feed.',
    contracts: [liveContract, liveCsvContract, ...SUBSCRIPTION_CONTRACTS],
  },
  {
    path: SEARCH_DOCS,
    guide: '/docs/api#search',
    title: 'Search',
    summary: 'Finds stored items, similar items, and trends of items and terms.',
    contracts: [searchContract, searchCsvContract, similarContract, trendContract],
  },
  {
    path: FREE_MODELS_DOCS,
    guide: '/docs/free-models',
    title: 'Free model recommendation',
    summary:
      'Recommends the free text model of a model-routing service to use now, with the shortlist behind it.',
    contracts: [...FREE_MODELS_CONTRACTS, modelChangesContract],
  },
  {
    path: AGENT_DOCS,
    guide: '/docs/agent-chat',
    title: 'Agent chat',
    summary: 'Answers questions about the stored feed as a stream of events, with read-only access.',
    contracts: AGENT_CONTRACTS,
  },
  {
    path: V1_DOCS,
    guide: '/docs/v1',
    title: 'OpenAI-compatible chat completions',
    summary: "Passes chat completions on to the best free model, with the caller's own key.",
    contracts: V1_CONTRACTS,
  },
  {
    path: MCP_DOCS,
    guide: '/docs/mcp',
    title: 'Model Context Protocol',
    summary: 'Offers the read-only tools of the chat agent to other programs.',
    contracts: [mcpContract],
  },
]

/** Every interface with its OpenAPI document. */
export function publishedInterfaces(demo: boolean): PublishedInterface[] {
  return INTERFACES.map(({ contracts, ...described }) => {
    const { title, summary } = described
    const info = { title: demo ? `DEMO: ${title}` : title, version: VERSION, description: summary }
    return { ...described, document: () => openApiDocument(info, contracts) }
  })
}

const SCHEMA_PREFIX = '#/components/schemas/'

/**
 * Builds an OpenAPI 3.1 document from contracts: paths, parameters, every refusal with its status and code, and the
 * schemas that the handlers parse with.
 */
function openApiDocument(
  info: Record<'title' | 'version' | 'description', string>,
  contracts: readonly Contract<string>[],
): Record<string, unknown> {
  const paths = Object.fromEntries(contracts.map((contract) => [contract.path, pathItem(contract)]))
  return {
    openapi: '3.1.0',
    info: { ...info, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/' }],
    // Without it, validators take an operation that needs no credential for incomplete.
    security: [],
    paths,
    components: {
      schemas: referredSchemas(paths),
      ...(contracts.some(({ request }) => request?.key) && { securitySchemes: { key: BEARER } }),
    },
  }
}

const BEARER = { type: 'http', scheme: 'bearer' }

const IF_NONE_MATCH = {
  in: 'header',
  name: 'If-None-Match',
  required: false,
  description: 'Entity tags that the client has; the response is 304 if the current one is among them.',
  schema: { type: 'string' },
}

function requestBody({ required, description, schema }: NonNullable<Contract<string>['request']>['body']) {
  return { required, description, content: { 'application/json': { schema: inlineSchema(schema) } } }
}

function pathItem(contract: Contract<string>): Record<string, unknown> {
  const { request } = contract
  return {
    [contract.method === undefined ? 'get' : 'post']: {
      operationId: contract.operationId,
      tags: [contract.tag],
      summary: contract.summary,
      description: contract.description,
      parameters: [
        ...pathParameters(contract),
        ...queryParameters(contract.query).map((parameter) => ({ in: 'query', ...parameter })),
        ...(request?.headers ?? []).map((header) => ({
          in: 'header',
          ...header,
          schema: { type: 'string' },
        })),
        ...(contract.revalidated === false ? [] : [IF_NONE_MATCH]),
      ],
      ...(request?.key && { security: [{ key: [] }] }),
      ...(request && { requestBody: requestBody(request.body) }),
      responses: { ...successes(contract), ...refusals(contract) },
    },
    ...(contract.preflight && { options: preflightOf(contract, contract.preflight) }),
  }
}

function preflightOf(
  contract: Contract<string>,
  preflight: Readonly<Record<string, string>>,
): Record<string, unknown> {
  return {
    operationId: `${contract.operationId}Preflight`,
    tags: [contract.tag],
    summary: 'CORS preflight',
    parameters: pathParameters(contract),
    responses: {
      [contract.preflightStatus ?? 200]: {
        description: 'Allowed methods and headers',
        headers: headerObjects(namesOf(preflight)),
      },
    },
  }
}

function pathParameters({ pathRest }: Contract<string>): Record<string, unknown>[] {
  return pathRest === undefined
    ? []
    : [{ in: 'path', ...pathRest, required: true, schema: { type: 'string' } }]
}

function queryParameters(query: z.ZodObject): Record<string, unknown>[] {
  const { properties = {}, required = [] } = z.toJSONSchema(query, { io: 'input' })
  return Object.entries(properties as Record<string, Record<string, unknown>>).map(([name, described]) => {
    const { description, example, ...schema } = described
    const exampleMember = example === undefined ? {} : { example }
    return { name, required: required.includes(name), description, schema, ...exampleMember }
  })
}

function successes(contract: Contract<string>): Record<string, unknown> {
  const headers = headerObjects(contract.successHeaders)
  const other = contract.otherSuccess
  return {
    200: {
      description: contract.successDescription,
      headers,
      content: {
        [contract.contentType ?? 'application/json']: { schema: inlineSchema(contract.success) },
        ...(other && { [other.contentType]: { schema: inlineSchema(other.schema) } }),
      },
    },
    ...(contract.revalidated === false
      ? {}
      : { 304: { description: 'The client has the current representation' } }),
    ...Object.fromEntries(
      Object.entries(contract.otherStatuses ?? {}).map(([status, description]) => [status, { description }]),
    ),
  }
}

type RefusalOfStatus = Omit<Contract<string>['refusals'][string], 'status'> & { error: string }

const MESSAGE = {
  type: 'string',
  description: 'what was sent, if a parameter is the cause, and what is allowed',
}

const PARAMETER = {
  parameter: { type: 'string', description: 'the first invalid parameter' },
  value: { type: 'string', description: 'its value, cut to 100 characters; absent if it is missing' },
}

/** One response per status; its schema lists exactly the codes of that status. */
function refusals(contract: Contract<string>): Record<string, unknown> {
  const byStatus = new Map<number, RefusalOfStatus[]>()
  for (const [name, { status, error = name, ...rest }] of Object.entries(contract.refusals)) {
    byStatus.set(status, [...(byStatus.get(status) ?? []), { error, ...rest }])
  }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      {
        description: codes.map(({ error, when }) => `\`${error}\`: ${when}`).join('\n\n'),
        headers: {
          ...headerObjects(namesOf(contract.refusalHeaders)),
          ...headerObjects(Object.assign({}, ...codes.map(({ headers = {} }) => headers))),
        },
        content: { 'application/json': { schema: refusalSchema(contract, codes) } },
      },
    ]),
  )
}

function refusalSchema(contract: Contract<string>, codes: readonly RefusalOfStatus[]): object {
  return {
    type: 'object',
    required: ['error'],
    properties: {
      error: errorSchema(contract, codes),
      ...(contract.bareErrors || contract.openAiErrors ? {} : { message: MESSAGE, ...PARAMETER }),
      ...Object.assign({}, ...codes.map(({ memberSchemas = {} }) => memberSchemas)),
    },
    additionalProperties: false,
  }
}

function errorSchema({ openAiErrors }: Contract<string>, codes: readonly RefusalOfStatus[]): object {
  const code = { type: 'string', enum: [...new Set(codes.map(({ error }) => error))] }
  if (openAiErrors === undefined) return code
  const text = { type: 'string' }
  return {
    type: 'object',
    required: ['message', 'type', 'code'],
    properties: { message: text, type: text, code },
  }
}

function namesOf(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, `\`${value}\``]))
}

function headerObjects(headers: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  )
}

/** The schemas that have a name, for all documents. */
const namedSchemas = once(
  () => z.toJSONSchema(z.globalRegistry, { uri: (id) => `${SCHEMA_PREFIX}${id}` }).schemas,
)

/** The schemas that a part of the document references, directly or indirectly. */
function referredSchemas(part: unknown): Record<string, unknown> {
  const schemas = namedSchemas()
  const referred = new Map<string, unknown>()
  const collect = (from: unknown): void => {
    for (const [, id = ''] of JSON.stringify(from).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      const schema = schemas[id]
      if (!schema || referred.has(id)) continue
      referred.set(id, withoutDocumentKeys(schema))
      collect(schema)
    }
  }
  collect(part)
  return Object.fromEntries(referred)
}

function inlineSchema(schema: z.ZodType): Record<string, unknown> {
  const id = z.globalRegistry.get(schema)?.id
  if (id !== undefined) return { $ref: `${SCHEMA_PREFIX}${id}` }
  return withoutDocumentKeys(z.toJSONSchema(schema))
}

/** Removes the keys `$schema`, `$id` and `id`, which a schema inside an OpenAPI document must not have. */
function withoutDocumentKeys(schema: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema).filter(([key]) => key !== '$schema' && key !== '$id' && key !== 'id'),
  )
}
