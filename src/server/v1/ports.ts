import type { H3Event } from 'h3'
import type { IpRange } from '../../domain/address.ts'
import type { Clock, PassThrough } from '../../domain/ports.ts'

/** What the OpenAI-compatible interface needs from outside. */
export interface V1Ports {
  passThrough: PassThrough
  trustedProxies: readonly IpRange[]
  /** Time limit of a whole response, in milliseconds. */
  turnMs: number
  clock: Clock
  /** Random secret of this process. */
  secret: Uint8Array
  /**
   * Answers a chat completion for the model `dash`; absent while the chat is not set up. It checks the key itself.
   *
   * @param body the parsed JSON of the request
   */
  answerAsDash?: (event: H3Event, body: unknown) => Promise<Response>
}
