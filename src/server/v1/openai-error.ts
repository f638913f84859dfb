import type { H3Event } from 'h3'
import { JSON_TYPE, NO_STORE, notesOf, respond } from '../respond.ts'

/** Errors of `/v1`, in the shape that OpenAI clients read (docs/agent-chat.md#keys-for-servers). */

export interface OpenAiError {
  message: string
  type: 'invalid_request_error' | 'authentication_error' | 'rate_limit_error' | 'server_error'
  code: string
}

/** Builds an error; its type follows from the HTTP status. */
export function openAiError(status: number, code: string, message: string): OpenAiError {
  return { message, type: typeOf(status), code }
}

function typeOf(status: number): OpenAiError['type'] {
  if (status >= 500) return 'server_error'
  if (status === 429) return 'rate_limit_error'
  return status === 401 ? 'authentication_error' : 'invalid_request_error'
}

/** Responds with an error; the log line of the request has its code. */
export function respondError(
  event: H3Event,
  status: number,
  code: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  notesOf(event.runtime?.node?.res).code = code
  const body = Buffer.from(JSON.stringify({ error: openAiError(status, code, message) }))
  return respond(event, status, { ...NO_STORE, ...headers, 'content-type': JSON_TYPE }, body)
}
