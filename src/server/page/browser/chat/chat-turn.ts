import { MESSAGES_READ, MESSAGE_MAX_LENGTH } from '../../../../domain/agent/bounds.ts'
import { TOOL_ACTIONS } from '../../../../domain/agent/model-call.ts'
import type { Replay } from '../../../../domain/agent/conversation.ts'
import type { AgentEvent } from '../../../../domain/agent/schema.ts'
import { CUT_OFF, failureMessage } from './chat-messages.ts'
import type { TurnView } from './chat-view.ts'

/** Earlier turns of a request. */
const TURNS_READ = Math.floor((MESSAGES_READ - 1) / 2)

/** Describes the parts of the conversation that are not sent; empty if all are. */
export function omissionsOf({ leftOut, questionCut, earlierCut }: Replay) {
  const shortened = earlierCut + Number(questionCut)
  const parts = []
  if (leftOut > 0) {
    parts.push(
      `${leftOut} older ${leftOut === 1 ? 'turn was' : 'turns were'} not sent: the chat reads at most the last ${TURNS_READ} turns and 32 KiB.`,
    )
  }
  if (shortened > 0) {
    parts.push(
      `Only the first ${MESSAGE_MAX_LENGTH.toLocaleString('en')} characters of ${shortened} ${shortened === 1 ? 'message' : 'messages'} were sent.`,
    )
  }
  return parts.join(' ')
}

/** The part of a turn that shows its answer. */
interface ShownTurn {
  answer: string
  view: Pick<TurnView, 'tool' | 'show' | 'label'>
}

/**
 * Shows a turn as its events arrive.
 *
 * @returns the error message; empty if the turn succeeded
 * @throws {Error} errors of reading the events
 */
export async function showTurn(
  turn: ShownTurn,
  events: AsyncIterable<AgentEvent>,
  callbacks: {
    showStatus(text: string): void
    onFirstText(): void
    onAdmitted(remaining: { session: number; day: number }): Promise<void>
  },
): Promise<string> {
  for await (const message of events) {
    switch (message.event) {
      case 'meta':
        await callbacks.onAdmitted(message.data.remaining)
        break
      case 'tool':
        turn.view.tool(message.data.name, message.data.status === 'done', performance.now())
        callbacks.showStatus(
          message.data.status === 'done' ? 'Thinking …' : `${TOOL_ACTIONS[message.data.name]} …`,
        )
        break
      case 'delta':
        if (turn.answer === '') {
          callbacks.showStatus('Answering …')
          callbacks.onFirstText()
        }
        turn.answer += message.data.text
        turn.view.show(turn.answer)
        break
      case 'done':
        if (message.data.degraded) turn.view.label('degraded: no tools used, the budget is nearly used up')
        if (message.data.cached) turn.view.label('cached answer')
        return ''
      case 'error':
        return failureMessage(message.data)
    }
  }
  return CUT_OFF
}
