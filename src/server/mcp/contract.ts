import { z } from 'zod'
import { BODY_MAX_BYTES } from '../../domain/agent/bounds.ts'
import { MCP_OPEN } from '../../domain/agent/mcp.ts'
import type { McpRefusal } from '../../domain/agent/mcp.ts'
import { NO_STORE } from '../respond.ts'
import type { Contract } from '../route.ts'

/** Where the interface is described, as a document and as a page. */
export const MCP_DOCS = '/docs/api/mcp'

/** Version of the interface; the release of the product has its own. */
export const MCP_API_VERSION = '1.0.0'

const message = z.looseObject({ jsonrpc: z.literal('2.0') })

const retrying = {
  held: true,
  headers: { 'Retry-After': 'seconds until it is worth asking again' },
  memberSchemas: { retryAfterSeconds: { type: 'integer', minimum: 1 } },
} as const

/** `POST /mcp` (docs/mcp.md). */
export const mcpContract: Contract<McpRefusal> = {
  method: 'POST',
  path: '/mcp',
  operationId: 'sendMcpMessage',
  tag: 'MCP',
  summary: 'Send one message of the Model Context Protocol',
  description:
    'Streamable HTTP without sessions: every request is answered by itself, with JSON. Any MCP client speaks it; the tools ' +
    'and their schemas are told by the protocol itself, by `tools/list`.',
  query: [],
  request: {
    headers: [
      { name: 'Accept', required: true, description: '`application/json, text/event-stream`' },
      { name: 'Origin', required: false, description: 'of a page: the server’s own or an allowed one' },
      { name: 'MCP-Protocol-Version', required: false, description: 'the version that was agreed on' },
    ],
    body: { required: true, description: 'One JSON-RPC message', schema: message },
  },
  revalidated: false,
  success: message,
  successDescription: 'The JSON-RPC response; 202 and no body for a notification',
  successHeaders: { 'Cache-Control': '`no-store`' },
  refusals: {
    batch_not_supported: { status: 400, when: 'the body is an array: send its messages one by one' },
    busy: {
      status: 503,
      when: `this server is answering ${MCP_OPEN.all} requests already`,
      expected: true,
      ...retrying,
    },
    forbidden_origin: { status: 403, when: 'there is an `Origin`, and it is not allowed' },
    internal_error: { status: 500, when: 'anything unexpected' },
    invalid_json: { status: 400, when: 'the body is no JSON' },
    method_not_allowed: {
      status: 405,
      when: 'any method but POST and OPTIONS: there are no streams and no sessions; the answer has `Allow`',
    },
    payload_too_large: { status: 413, when: `the body has more than ${BODY_MAX_BYTES} bytes` },
    rate_limited: {
      status: 429,
      when:
        `the address has used up its requests of this minute, or has ${MCP_OPEN.perAddress} open, ` +
        `or its /48 has ${MCP_OPEN.perNetwork}`,
      ...retrying,
    },
  },
  storage: { storage_unavailable: 'internal_error', storage_damaged: 'internal_error' },
  fault: 'internal_error',
  methodNotAllowed: 'method_not_allowed',
  headers: {},
  refusalHeaders: NO_STORE,
  preflight: {
    'access-control-allow-methods': 'POST, OPTIONS',
    'access-control-allow-headers':
      'content-type, accept, mcp-protocol-version, mcp-session-id, last-event-id',
    'access-control-max-age': '600',
    ...NO_STORE,
  },
  preflightStatus: 204,
}
