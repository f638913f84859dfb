import type { H3Event } from 'h3'
import { BODY_MAX_BYTES } from '../../domain/agent/bounds.ts'
import { MCP_OPEN } from '../../domain/agent/mcp.ts'
import type { McpRefusal } from '../../domain/agent/mcp.ts'
import { openPlaces } from '../../domain/fair-queue.ts'
import type { Clock } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { callersOf } from '../agent/caller.ts'
import type { AgentSettings } from '../agent/service.ts'
import { readBody } from '../request-body.ts'
import { NO_STORE, respond, respondText } from '../respond.ts'
import { route } from '../route.ts'
import type { Route } from '../route.ts'
import { mcpContract } from './contract.ts'
import { requestRate } from './request-rate.ts'
import type { ToolServerPorts } from './tool-server.ts'

export interface McpPorts
  extends Omit<ToolServerPorts, 'address'>, Pick<AgentSettings, 'origins' | 'trustedProxies'> {
  /** Requests of one address a minute. */
  requestsPerMinute: number
  clock: Clock
}

/** `POST /mcp`: the agent's tools for MCP clients (docs/mcp.md). */
export function mcpRoute(ports: McpPorts): Route {
  const callers = callersOf(ports)
  const rate = requestRate(ports.requestsPerMinute, ports.clock)
  const places = openPlaces(MCP_OPEN)
  const handle = async (event: H3Event): Promise<Response> => {
    // Clients that are no pages send none; a page always does, and cannot choose it.
    if (event.req.headers.has('origin')) callers.origin(event)
    const address = callers.address(event)
    const waitSeconds = rate.take(address)
    if (waitSeconds !== null) throw refusal('rate_limited', waitSeconds)
    const message = await readMessage(event)
    const admission = places.enter(address)
    if (admission !== 'admitted') throw refusal(admission === 'all_full' ? 'busy' : 'rate_limited', 1)
    try {
      const { answerMessage } = await import('./answer-message.ts')
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
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    throw refusal('invalid_json')
  }
  if (Array.isArray(message)) throw refusal('batch_not_supported')
  return message
}

function refusal(code: McpRefusal, retryAfterSeconds?: number): Refusal<McpRefusal> {
  const members = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
  return new Refusal<McpRefusal>(code, undefined, { members })
}
