import type { ModelReply } from '../reply.ts'
import { readAnswer } from './answer.ts'
import type { LiteKind } from './suite.ts'

/**
 * True for a reply that its limit of tokens ended before it came to what was asked for: it proves nothing, neither that
 * the model can nor that it cannot.
 */
export function isCutShort(kind: LiteKind, { text, toolCalls, finishReason }: ModelReply): boolean {
  if (finishReason !== 'length') return false
  if (kind === 'tool') return toolCalls.length === 0
  const { command, time } = readAnswer(text)
  return command === null && time === null
}
