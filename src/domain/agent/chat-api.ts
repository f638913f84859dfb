import type { AgentConfig, AgentEvents, AgentSession, AgentStatus } from './schema.ts'

/** The chat interface of a server (docs/agent-chat.md), as a client asks it. */

/** What a client needs of `GET /api/agent/config`. */
export type ServedConfig = Pick<
  AgentConfig,
  'enabled' | 'requireVerification' | 'itemChat' | 'model' | 'quotas'
>

/** One event of an answer; `raw` is its payload as the server sent it, with whatever else stands in it. */
export type ServedEvent = {
  [Name in keyof AgentEvents]: { event: Name; data: AgentEvents[Name]; raw: unknown }
}[keyof AgentEvents]

/**
 * Why a server gave no answer. A code of the interface is thrown as it is (`refusals.ts`), with the members the server
 * sent; the others are the client's own: `server_unreachable` (no connection, or silence), `server_foreign` (whatever
 * answers is no such server), `answer_cut` (the stream ended before its terminal event).
 */
export type ChatApiRefusal = 'server_unreachable' | 'server_foreign' | 'answer_cut'

/** Every call throws a Refusal whose code is public or one of {@link ChatApiRefusal}, and the signal's reason once it is aborted. */
export interface ChatApi {
  /** Base address, without a slash at its end. */
  readonly base: string
  config(signal: AbortSignal): Promise<ServedConfig>
  status(signal: AbortSignal): Promise<Pick<AgentStatus, 'ok' | 'budget'>>
  session(signal: AbortSignal): Promise<Pick<AgentSession, 'sessionToken' | 'quotas'>>
  /**
   * One turn. The last event is the terminal one; leaving the loop or aborting closes the connection.
   *
   * @param body the request as JSON text
   */
  ask(token: string, body: string, signal: AbortSignal): AsyncGenerator<ServedEvent, void>
}
