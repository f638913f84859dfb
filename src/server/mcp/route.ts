import type { H3Event } from 'h3'
import { z } from 'zod'
import { BODY_MAX_BYTES } from '../../domain/agent/bounds.ts'
import { parseJson } from '../../domain/text.ts'
import { openSlots } from '../../domain/fair-queue.ts'
import type { SlotBounds } from '../../domain/fair-queue.ts'
import type { Clock } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { callersOf, requestRate } from '../callers.ts'
import type { KnownCallers } from '../callers.ts'
import { NO_STORE, respond, respondText } from '../respond.ts'
import { RETRYING, readBody, restrictedAccess, route } from '../route.ts'
import type { Contract, Route } from '../route.ts'
import type { ToolServerPorts } from './tool-server.ts'

/** Public codes of `/mcp`: the whole, closed list. */
export const MCP_REFUSALS = [
  'batch_not_supported',
  'busy',
  'forbidden_origin',
  'internal_error',
  'invalid_json',
  'method_not_allowed',
  'payload_too_large',
  'rate_limited',
] as const

export type McpRefusal = (typeof MCP_REFUSALS)[number]

/** Requests that one server answers at the same time: of one address, of one network, and in all. */
export const MCP_OPEN: SlotBounds = { perAddress: 4, perNetwork: 16, all: 64 }

export interface McpPorts extends Omit<ToolServerPorts, 'address'>, KnownCallers {
  /** Requests of one address a minute. */
  requestsPerMinute: number
  clock: Clock
}

/** `POST /mcp`: the agent's tools for MCP clients (docs/mcp.md). */
export function mcpRoute(ports: McpPorts): Route {
  const callers = callersOf(ports)
  const countRequest = requestRate(ports.requestsPerMinute, ports.clock)
  const places = openSlots(MCP_OPEN)
  const handle = async (event: H3Event): Promise<Response> => {
    // Clients that are no pages send none; a page always does, and cannot choose it.
    if (event.req.headers.has('origin')) callers.origin(event)
    const address = callers.address(event)
    const waitSeconds = countRequest(address)
    if (waitSeconds !== null) throw refusal('rate_limited', waitSeconds)
    const message = await readMessage(event)
    const admission = places.enter(address)
    if (admission !== 'admitted') throw refusal(admission === 'all_full' ? 'busy' : 'rate_limited', 1)
    try {
      const { answerMessage } = await import('./tool-server.ts')
      const { status, body } = await answerMessage(event.req, message, { ...ports, address })
      const headers = { ...callers.headersFor(event), ...NO_STORE }
      if (body === '') return respond(event, status, headers, null)
      return respondText(event, status, headers, 'application/json; charset=utf-8', body)
    } finally {
      places.leave(address)
    }
  }
  return route(mcpContract, handle, callers.headersFor)
}

async function readMessage(event: H3Event): Promise<unknown> {
  const text = await readBody(event, BODY_MAX_BYTES, {
    tooLarge: () => refusal('payload_too_large'),
    malformed: () => refusal('invalid_json'),
  })
  const message = parseJson(text)
  if (message === undefined) throw refusal('invalid_json')
  if (Array.isArray(message)) throw refusal('batch_not_supported')
  return message
}

function refusal(code: McpRefusal, retryAfterSeconds?: number): Refusal<McpRefusal> {
  const members = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
  return new Refusal<McpRefusal>(code, undefined, { members })
}

/** Where the interface is described, as a document and as a page. */
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
    'Streamable HTTP without sessions: every request is answered by itself, with JSON. Any MCP client speaks it; the tools ' +
    'and their schemas are told by the protocol itself, by `tools/list`.',
  query: z.object({}),
  request: {
    headers: [
      { name: 'Accept', required: true, description: '`application/json, text/event-stream`' },
      { name: 'Origin', required: false, description: 'of a page: the server’s own or an allowed one' },
      { name: 'MCP-Protocol-Version', required: false, description: 'the version that was agreed on' },
    ],
    body: { required: true, description: 'One JSON-RPC message', schema: message },
  },
  ...restrictedAccess('POST', HEADERS),
  success: message,
  successDescription: 'The JSON-RPC response; 202 and no body for a notification',
  refusals: {
    batch_not_supported: { status: 400, when: 'the body is an array: send its messages one by one' },
    busy: {
      status: 503,
      when: `this server is answering ${MCP_OPEN.all} requests already`,
      expected: true,
      ...RETRYING,
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
      ...RETRYING,
    },
  },
  methodNotAllowed: 'method_not_allowed',
}
