import { z } from 'zod'
import { countField, instantField } from '../wire-format.ts'
import { TOOL_NAMES } from './model-call.ts'

/**
 * Wire schemas of the agent chat (docs/agent-chat.md), keys in the order in which they are sent. The schema of a chat
 * request is in `chat-request.ts`.
 */

const quotasSchema = z
  .object({
    messagesPerSession: countField,
    messagesPerDay: countField.describe('per address (stored as a salted hash) and UTC day'),
  })
  .meta({ id: 'AgentQuotas' })

export const configSchema = z
  .object({
    enabled: z.boolean().describe('true if a turn can run now'),
    requireVerification: z.boolean().describe('true if a session needs `verificationToken`'),
    verificationSiteKey: z
      .string()
      .nullable()
      .optional()
      .describe('public key of the challenge; present only if verification is required'),
    itemChat: z.boolean().describe('true if chats about one item are available'),
    briefEnabled: z.literal(false).describe('reserved'),
    model: z.string().describe('model of the agent; empty if there is none'),
    quotas: quotasSchema,
  })
  .meta({ id: 'AgentConfig' })

export const sessionRequestSchema = z
  .object({ verificationToken: z.string().optional().describe('token from the challenge') })
  .meta({ id: 'AgentSessionRequest' })

export const sessionSchema = z
  .object({
    sessionToken: z.string().describe('opaque; sent in `X-Agent-Session`, never a cookie'),
    expiresAt: instantField,
    tier: z.literal('free'),
    quotas: quotasSchema,
  })
  .meta({ id: 'AgentSession' })

export const statusSchema = z
  .object({
    ok: z.boolean(),
    service: z.literal('agent-worker'),
    budget: z.enum(['ok', 'soft', 'exhausted', 'unknown']),
    itemChat: z.boolean(),
  })
  .meta({ id: 'AgentStatus' })

/** Payload of each event of an answer; no other events exist. */
export const EVENT_SCHEMAS = {
  meta: z.object({ remaining: z.object({ session: countField, day: countField }), tier: z.literal('free') }),
  tool: z.object({ name: z.enum(TOOL_NAMES), status: z.enum(['start', 'done']) }),
  delta: z.object({ text: z.string() }),
  done: z.object({
    usage: z.object({ in: countField, out: countField, cached: countField }),
    degraded: z.boolean().optional(),
    cached: z.boolean().optional(),
  }),
  error: z.object({ error: z.enum(['timeout', 'upstream_error']), code: z.string() }),
} as const

type EventName = keyof typeof EVENT_SCHEMAS

const recordOf = (event: EventName) => z.object({ event: z.literal(event), data: EVENT_SCHEMAS[event] })

/** One event of an answer as an object, for the OpenAPI document; the server sends it as a record of the stream. */
export const streamEventSchema = z
  .discriminatedUnion('event', [
    recordOf('meta'),
    recordOf('tool'),
    recordOf('delta'),
    recordOf('done'),
    recordOf('error'),
  ])
  .meta({ id: 'AgentStreamEvent' })

export type AgentConfig = z.infer<typeof configSchema>
export type AgentSession = z.infer<typeof sessionSchema>
export type AgentStatus = z.infer<typeof statusSchema>

/** One event of an answer. */
export type AgentEvent = {
  [Name in EventName]: { event: Name; data: z.infer<(typeof EVENT_SCHEMAS)[Name]> }
}[EventName]

/** The event that ends an answer. */
export type LastEvent = Extract<AgentEvent, { event: 'done' | 'error' }>

export function isLastEvent(event: AgentEvent): event is LastEvent {
  return event.event === 'done' || event.event === 'error'
}

/** The part of `GET /api/agent/config` that a client needs. */
export type ServedConfig = Pick<
  AgentConfig,
  'enabled' | 'requireVerification' | 'itemChat' | 'model' | 'quotas'
>

/** An event as a client reads it; `raw` is the payload as sent, including unknown members. */
export type ServedEvent = AgentEvent & { raw: unknown }

/**
 * Client-side reasons for a missing answer, besides the codes of the API: `server_unreachable` (no connection or a
 * timeout), `server_foreign` (the response is not from a dash server), `answer_cut` (the stream ended before its last
 * event).
 */
export type ChatApiRefusal = 'server_unreachable' | 'server_foreign' | 'answer_cut'

/** Public error codes of `/api/agent/*` (docs/agent-chat.md): the complete list. */
export const AGENT_ERRORS = [
  'disabled',
  'misconfigured',
  'forbidden_origin',
  'human_verification_failed',
  'invalid_session',
  'invalid_json',
  'payload_too_large',
  'no_user_message',
  'not_found',
  'internal_error',
  'rate_limited',
] as const

/**
 * Reasons of a refusal: a public code, or one of two reasons that share a public code under another status.
 * `wrong_method` is sent as `not_found`, `quota_unavailable` as `internal_error`.
 */
export type AgentRefusal =
  Exclude<(typeof AGENT_ERRORS)[number], 'not_found'> | 'wrong_method' | 'quota_unavailable'
