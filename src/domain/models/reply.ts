/** What a model answered to one question. */
export interface ModelReply {
  /** Content; '' when there is none. */
  text: string
  /** Arguments verbatim as sent: JSON text, which may be broken. */
  toolCalls: readonly { name: string; arguments: string }[]
  finishReason: string | null
}
