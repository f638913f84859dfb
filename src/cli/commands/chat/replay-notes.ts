import { BODY_MAX_BYTES, MESSAGE_MAX_LENGTH, MESSAGES_READ } from '../../../domain/agent/bounds.ts'
import type { Replay } from '../../../domain/agent/conversation.ts'

const number = (value: number): string => value.toLocaleString('en')

/** What a person is told of what a request leaves out that the one before did not. @param last null before the first */
export function replayNotes(replay: Replay, last: Replay | null): string[] {
  const { leftOut, questionCut, earlierCut } = replay
  return [
    ...(questionCut
      ? [`the question is cut: only its first ${number(MESSAGE_MAX_LENGTH)} characters are read`]
      : []),
    ...(leftOut > (last?.leftOut ?? 0)
      ? [
          `${leftOut === 1 ? 'the oldest turn is' : `the ${leftOut} oldest turns are`} left out from now on: no more than ` +
            `the last ${MESSAGES_READ} messages and ${number(BODY_MAX_BYTES)} bytes are read`,
        ]
      : []),
    ...(earlierCut > (last?.earlierCut ?? 0)
      ? [`of long texts before, only the first ${number(MESSAGE_MAX_LENGTH)} characters are read`]
      : []),
  ]
}
