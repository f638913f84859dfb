import { z } from 'zod'
import { BODY_MAX_BYTES } from '../../domain/agent/bounds.ts'
import { chatRequestSchema } from '../../domain/agent/chat-request.ts'
import type { AgentRefusal } from '../../domain/agent/schema.ts'
import {
  configSchema,
  sessionRequestSchema,
  sessionSchema,
  statusSchema,
  streamEventSchema,
} from '../../domain/agent/schema.ts'
import { restrictedAccess } from '../route.ts'
import type { Contract } from '../route.ts'

/** Path of the page that documents this interface. */
export const AGENT_DOCS = '/docs/api/agent-chat'

export const SESSION_BODY_MAX_BYTES = 4_096

const REFUSALS = {
  disabled: { status: 503, when: 'the kill switch is set', expected: true },
  misconfigured: {
    status: 503,
    when: 'the signing secret, the model, its key or its price is not configured',
    expected: true,
  },
  forbidden_origin: { status: 403, when: '`Origin` is missing or not allowed' },
  invalid_session: {
    status: 401,
    when: '`X-Agent-Session` is missing or not a valid token of this caller; create a new session',
    memberSchemas: {
      reason: { type: 'string', enum: ['missing', 'malformed', 'bad_signature', 'expired', 'ip_mismatch'] },
    },
  },
  payload_too_large: { status: 413, when: `the body has more than ${BODY_MAX_BYTES} bytes` },
  invalid_json: { status: 400, when: 'the body is not JSON, or it or an entry of `messages` is invalid' },
  no_user_message: {
    status: 400,
    when: '`messages` is missing or empty, or its last entry is not a text of a user',
  },
  rate_limited: {
    status: 429,
    when: 'a limit of the address, the session or the day is reached; the turn was not counted',
    headers: {
      'Retry-After': 'seconds to wait before the next request',
    },
    memberSchemas: {
      scope: { type: 'string', enum: ['ip', 'session', 'global-budget'] },
      retryAfterSeconds: { type: 'integer', minimum: 0 },
    },
  },
  human_verification_failed: {
    status: 403,
    when: '`verificationToken` is missing, was rejected or could not be checked, or the address tried too often',
  },
  wrong_method: {
    status: 405,
    error: 'not_found',
    when: 'the method is neither the documented one nor OPTIONS; the response has `Allow`',
  },
  quota_unavailable: {
    status: 503,
    error: 'internal_error',
    when: 'the quotas cannot be read; no model was used',
  },
  internal_error: { status: 500, when: 'an unexpected error' },
} satisfies Contract<AgentRefusal>['refusals']

const { human_verification_failed: _human, ...CHAT_REFUSALS } = REFUSALS
const {
  invalid_session: _session,
  payload_too_large: _size,
  no_user_message: _message,
  rate_limited: _rate,
  ...SESSION_REFUSALS
} = REFUSALS
const { wrong_method, internal_error } = REFUSALS
const READ_REFUSALS = { wrong_method, internal_error }

/** Members shared by the contracts. */
const COMMON = {
  tag: 'Agent chat',
  query: z.object({}),
  methodNotAllowed: 'wrong_method',
  bareErrors: true,
} as const

const access = (method: 'GET' | 'POST') => restrictedAccess(method, 'content-type, x-agent-session')

/** `GET /api/agent/config` (docs/agent-chat.md). */
export const configContract: Contract<keyof typeof READ_REFUSALS> = {
  ...COMMON,
  ...access('GET'),
  path: '/api/agent/config',
  operationId: 'getAgentConfig',
  summary: 'Settings a client needs before it starts a chat',
  description:
    'Shows whether the chat is on, whether a session needs human verification, and which quotas apply.',
  success: configSchema,
  successDescription: 'The configuration',
  refusals: READ_REFUSALS,
}

/** `GET /api/agent/status` (docs/agent-chat.md). */
export const statusContract: Contract<keyof typeof READ_REFUSALS> = {
  ...COMMON,
  ...access('GET'),
  path: '/api/agent/status',
  operationId: 'getAgentStatus',
  summary: 'State of the chat and of its daily budget',
  description:
    'Always 200. `soft`: answers without tools; `exhausted`: no answers for the rest of the UTC day; `unknown`: the quotas cannot be read.',
  success: statusSchema,
  successDescription: 'The status',
  refusals: READ_REFUSALS,
}

/** `POST /api/agent/session` (docs/agent-chat.md). */
export const sessionContract: Contract<keyof typeof SESSION_REFUSALS> = {
  ...COMMON,
  ...access('POST'),
  method: 'POST',
  path: '/api/agent/session',
  operationId: 'createAgentSession',
  summary: 'Create a session: a short-lived signed token',
  description: 'Stores nothing about the caller: the token contains its own expiry.',
  request: {
    headers: [{ name: 'Origin', required: true, description: 'An allowed origin; browsers send it.' }],
    body: {
      required: false,
      description: `At most ${SESSION_BODY_MAX_BYTES} bytes; optional unless verification is required.`,
      schema: sessionRequestSchema,
    },
  },
  success: sessionSchema,
  successDescription: 'The session',
  refusals: {
    ...SESSION_REFUSALS,
    invalid_json: {
      status: 400,
      when: `the body is not a JSON object, or has more than ${SESSION_BODY_MAX_BYTES} bytes`,
    },
  },
}

/** `POST /api/agent/chat` (docs/agent-chat.md). */
export const chatContract: Contract<keyof typeof CHAT_REFUSALS> = {
  ...COMMON,
  ...access('POST'),
  method: 'POST',
  path: '/api/agent/chat',
  operationId: 'chatWithAgent',
  summary: 'Send the conversation and receive the answer as a stream of events',
  description: [
    'Each record is `event: <name>` and `data: <json>`: `meta` first, then `tool` and `delta`, then exactly one `done` or',
    '`error`. Comment lines (`: ping`) keep the connection open. The server stores no conversation: send all of it each time.',
  ].join(' '),
  request: {
    headers: [
      { name: 'X-Agent-Session', required: true, description: '`sessionToken` of a session.' },
      { name: 'Origin', required: true, description: 'An allowed origin; browsers send it.' },
    ],
    body: { required: true, description: `At most ${BODY_MAX_BYTES} bytes.`, schema: chatRequestSchema },
  },
  contentType: 'text/event-stream',
  success: streamEventSchema,
  successDescription: 'The answer as a stream of events; the schema describes one event',
  successHeaders: {
    'Cache-Control': '`no-store, no-transform`',
    'X-Accel-Buffering': '`no`',
  },
  refusals: CHAT_REFUSALS,
}

/** Every contract of the interface, as its document lists them. */
export const AGENT_CONTRACTS = [configContract, sessionContract, chatContract, statusContract] as const
