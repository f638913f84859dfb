import type { H3Event } from 'h3'
import { z } from 'zod'
import { BODY_MAX_BYTES } from '../../domain/agent/bounds.ts'
import type { Clock } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { addressLimit, openCallers } from '../callers.ts'
import type { CallerSettings } from '../callers.ts'
import { BUSY_REFUSAL } from '../computed-requests.ts'
import type { Compute } from '../computed-requests.ts'
import { NO_STORE, respond, respondText } from '../respond.ts'
import { readBody, RETRYABLE, retryLater, restrictedAccess, route } from '../route.ts'
import type { Contract, Route } from '../route.ts'
import type { ToolServerPorts } from './tool-server.ts'

/** Public codes of `/mcp`: a closed list. */
export const MCP_REFUSALS = [
  'busy',
  'forbidden_origin',
  'internal_error',
  'method_not_allowed',
  'payload_too_large',
  'rate_limited',
] as const

export type McpRefusal = (typeof MCP_REFUSALS)[number]

export interface McpPorts extends ToolServerPorts, CallerSettings {
  /** Requests per address and minute. */
  requestsPerMinute: number
  clock: Clock
}

/** `POST /mcp`: the agent's tools for MCP clients (docs/mcp.md). */
export function mcpRoute(ports: McpPorts, compute: Compute): Route {
  const callers = openCallers(ports)
  const requests = addressLimit(ports.requestsPerMinute, ports.clock)
  const handle = async (event: H3Event): Promise<Response> => {
    // Only pages send an Origin, and they cannot forge it. A check of `Host` would refuse unknown proxies and stop nothing more.
    if (event.req.headers.has('origin')) callers.requireOrigin(event)
    const address = callers.address(event)
    const waitSeconds = requests(address)
    if (waitSeconds !== null) throw retryLater<McpRefusal>('rate_limited', waitSeconds)
    const text = await readText(event)
    const { handleMessage } = await import('./tool-server.ts')
    const { status, body } = await compute(event, () => handleMessage(event.req, text, ports))
    const headers = { ...callers.headersFor(event), ...NO_STORE }
    if (body === '') return respond(event, status, headers, null)
    return respondText(event, status, headers, 'application/json; charset=utf-8', body)
  }
  return route(mcpContract, handle, callers.headersFor)
}

/** Reads the body; a text that is no JSON stands for bytes that are no text. */
async function readText(event: H3Event): Promise<string> {
  const malformed = new Error('the body is not UTF-8')
  try {
    return await readBody(event, BODY_MAX_BYTES, {
      tooLarge: () => new Refusal<McpRefusal>('payload_too_large'),
      malformed: () => malformed,
    })
  } catch (error) {
    if (error === malformed) return ''
    throw error
  }
}

/** Path of the page that documents this interface. */
export const MCP_DOCS = '/docs/api/mcp'

const message = z.looseObject({ jsonrpc: z.literal('2.0') })

const HEADERS = 'content-type, accept, mcp-protocol-version, mcp-session-id, last-event-id'

/** `POST /mcp` (docs/mcp.md). */
export const mcpContract: Contract<McpRefusal> = {
  method: 'POST',
  path: '/mcp',
  operationId: 'sendMcpMessage',
  tag: 'MCP',
  summary: 'Send one message of the Model Context Protocol',
  description:
    'Streamable HTTP without sessions: every request gets one JSON response. Any MCP client supports it; `tools/list` ' +
    'returns the tools and their schemas.',
  query: z.object({}),
  request: {
    headers: [
      {
        name: 'Origin',
        required: false,
        description: 'origin of a page: the one of the server or an allowed one',
      },
      { name: 'MCP-Protocol-Version', required: false, description: 'the negotiated protocol version' },
    ],
    body: { required: true, description: 'One JSON-RPC message', schema: message },
  },
  ...restrictedAccess('POST', HEADERS),
  success: message,
  successDescription: 'The JSON-RPC response',
  otherStatuses: {
    202: 'A notification or a response was received; no body',
    400: 'A JSON-RPC error: the body is no message, or the protocol version is unsupported',
    406: 'A JSON-RPC error: `Accept` does not include `application/json`',
    415: 'A JSON-RPC error: the content type is not `application/json`',
  },
  refusals: {
    busy: BUSY_REFUSAL,
    forbidden_origin: { status: 403, when: '`Origin` is present and not allowed' },
    internal_error: { status: 500, when: 'an unexpected error' },
    method_not_allowed: {
      status: 405,
      when: 'the method is neither POST nor OPTIONS, since there are no streams and no sessions; the response has `Allow`',
    },
    payload_too_large: { status: 413, when: `the body has more than ${BODY_MAX_BYTES} bytes` },
    rate_limited: {
      status: 429,
      when: 'the address has used its requests of this minute',
      ...RETRYABLE,
    },
  },
  methodNotAllowed: 'method_not_allowed',
}
