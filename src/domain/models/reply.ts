/** What a model answered to one question. */
export interface ModelReply {
  /** The content; '' when there is none. */
  text: string
  /** The calls in the order they came; `arguments` verbatim as sent, JSON text that may be broken. */
  toolCalls: readonly { name: string; arguments: string }[]
  finishReason: string | null
}
