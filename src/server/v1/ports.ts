import type { IpRange } from '../../domain/address.ts'
import type { Clock, PassThrough } from '../../domain/ports.ts'
import type { AnswerAsDash } from './dash-model.ts'

/** What the OpenAI-compatible interface needs from outside. */
export interface V1Ports {
  passThrough: PassThrough
  trustedProxies: readonly IpRange[]
  /** Time limit of a whole response, in milliseconds. */
  turnMs: number
  clock: Clock
  /** Random secret of this process. */
  secret: Uint8Array
  /** Answers chat completions for the model `dash`; absent while the chat is not set up. */
  answerAsDash?: AnswerAsDash
}
