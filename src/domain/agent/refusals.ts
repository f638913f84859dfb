/** Public codes of `/api/agent/*` (docs/agent-chat.md): the whole, closed list. */
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
 * Why the chat declines: a public code, or one of two reasons that share a public code with another status.
 * `wrong_method` is a `not_found`, `quota_unavailable` an `internal_error`.
 */
export type AgentRefusal =
  Exclude<(typeof AGENT_ERRORS)[number], 'not_found'> | 'wrong_method' | 'quota_unavailable'
