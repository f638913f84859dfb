import { z } from 'zod'
import type { Contract } from './route.ts'

/** What an OpenAPI document says about itself. */
export interface DocumentInfo {
  title: string
  version: string
  description: string
}

const SCHEMA_PREFIX = '#/components/schemas/'

/**
 * Folds contracts into an OpenAPI 3.1 document: paths, parameters, every refusal with its status and code, and the
 * schemas the handlers parse with. Nothing of it is written by hand elsewhere.
 */
export function openApiDocument(
  info: DocumentInfo,
  contracts: readonly Contract<string>[],
): Record<string, unknown> {
  const paths = Object.fromEntries(contracts.map((contract) => [contract.path, pathItem(contract)]))
  return {
    openapi: '3.1.0',
    info: { ...info, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/' }],
    paths,
    components: { schemas: referredFrom(paths, componentSchemas()) },
  }
}

function pathItem(contract: Contract<string>): Record<string, unknown> {
  return {
    get: {
      operationId: contract.operationId,
      tags: [contract.tag],
      summary: contract.summary,
      description: contract.description,
      parameters: [
        ...contract.query.map((parameter) => ({ in: 'query', ...parameter })),
        {
          in: 'header',
          name: 'If-None-Match',
          required: false,
          description: 'Entity tags the client holds; 304 when the current one is among them.',
          schema: { type: 'string' },
        },
      ],
      responses: { ...successes(contract), ...refusals(contract) },
    },
    options: {
      operationId: `${contract.operationId}Preflight`,
      tags: [contract.tag],
      summary: 'CORS preflight',
      responses: {
        200: {
          description: 'Allowed methods and headers',
          headers: headerObjects(namesOf(contract.preflight)),
        },
      },
    },
  }
}

function successes(contract: Contract<string>): Record<string, unknown> {
  const headers = headerObjects(contract.successHeaders)
  return {
    200: {
      description: contract.successDescription,
      headers,
      content: { [contract.contentType ?? 'application/json']: { schema: inlineSchema(contract.success) } },
    },
    304: { description: 'The client holds the current representation' },
  }
}

/** One response a status; its schema lists exactly the codes that status is given with. */
function refusals(contract: Contract<string>): Record<string, unknown> {
  const byStatus = new Map<number, [code: string, when: string][]>()
  for (const [code, { status, when }] of Object.entries(contract.refusals)) {
    byStatus.set(status, [...(byStatus.get(status) ?? []), [code, when]])
  }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      {
        description: codes.map(([code, when]) => `\`${code}\`: ${when}`).join('\n\n'),
        headers: headerObjects(namesOf(contract.refusalHeaders)),
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['error'],
              properties: { error: { type: 'string', enum: codes.map(([code]) => code) } },
              additionalProperties: false,
            },
          },
        },
      },
    ]),
  )
}

function namesOf(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, `\`${value}\``]))
}

function headerObjects(headers: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  )
}

/** The schemas that carry an id, each once. */
function componentSchemas(): Record<string, unknown> {
  const { schemas } = z.toJSONSchema(z.globalRegistry, { uri: (id) => `${SCHEMA_PREFIX}${id}` })
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutDocumentKeys(schema)]))
}

/** Of all schemas those that a document refers to, directly or through others: each interface shows its own. */
function referredFrom(paths: unknown, all: Record<string, unknown>): Record<string, unknown> {
  const found = new Set<string>()
  const follow = (part: unknown): void => {
    for (const [, id = ''] of JSON.stringify(part).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)) {
      if (found.has(id)) continue
      found.add(id)
      follow(all[id])
    }
  }
  follow(paths)
  return Object.fromEntries(Object.entries(all).filter(([id]) => found.has(id)))
}

function inlineSchema(schema: z.ZodType): Record<string, unknown> {
  const id = z.globalRegistry.get(schema)?.id
  if (id !== undefined) return { $ref: `${SCHEMA_PREFIX}${id}` }
  return withoutDocumentKeys(z.toJSONSchema(schema))
}

/** Inside an OpenAPI document a schema has neither a dialect nor an address of its own. */
function withoutDocumentKeys(schema: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema).filter(([key]) => key !== '$schema' && key !== '$id' && key !== 'id'),
  )
}
