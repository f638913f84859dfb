import { BODY_MAX_BYTES, MESSAGES_READ, MESSAGE_MAX_LENGTH } from '../../../domain/agent/bounds.ts'
import type { Replay } from '../../../domain/agent/conversation.ts'
import type { ServedConfig } from '../../../domain/agent/schema.ts'
import type { PublicHost } from '../../../domain/ports.ts'
import type { CommandContext } from '../../context.ts'
import type { Keyboard } from './keyboard.ts'
import type { Talk } from './talk.ts'
import { openScreen } from './turn-screen.ts'
import {
  canHelpAgain,
  refusalMessage,
  failureMessage,
  isChatRefusal,
  labelsOf,
  quotaMessage,
} from './messages.ts'

/** Where a talk happens, and what it is held with. */
export interface ChatContext {
  context: CommandContext
  keyboard: Keyboard
  talk: Talk
  api: PublicHost['chat']
  config: ServedConfig
  /** A line beside the answers. */
  say: (text: string) => void
}

/**
 * Asks and shows the answer while it comes. Ctrl-C ends the request; what came of the answer stays in the talk.
 *
 * @param again true to replace the answer to the last question
 * @param last what the request before left out
 * @returns what this request leaves out
 * @throws the signal's reason once the program is to end, and whatever is no refusal
 */
export async function showTurn(
  chat: ChatContext,
  question: string,
  again: boolean,
  last: Replay | null,
): Promise<Replay> {
  const { context, talk, api, say } = chat
  const replay = talk.replay(question, again)
  for (const note of replayNotes(replay, last)) say(note)
  const ending = interruptible(chat)
  const screen = openScreen(context, true, ending.signal)
  const after: string[] = []
  try {
    for await (const each of talk.ask(question, ending.signal, again)) {
      if (each.kind === 'text') await screen.text(each.text)
      else if (each.kind === 'renewed') after.push('the session had ended; another was begun')
      else if (each.served.event === 'tool') screen.tool(each.served.data.name, each.served.data.status)
      else if (each.served.event === 'done') after.push(...labelsOf(each.served.data))
      else if (each.served.event === 'error') after.push(failureMessage(each.served.data, { isTalk: true }))
    }
  } catch (error) {
    if (ending.signal.aborted) after.push('stopped; what came stays in the talk, /retry asks again')
    else if (isChatRefusal(error)) {
      const { text } = refusalMessage(error, api.base, Date.now(), { isTalk: true, quota: talk.quota })
      after.push(canHelpAgain(error, talk.quota) ? `${text}; /retry asks again` : text)
    } else throw error
  } finally {
    await screen.end()
    ending.release()
  }
  context.signal.throwIfAborted()
  for (const line of after) say(line)
  if (talk.quota && !context.terminal.quiet) say(`${quotaMessage(talk.quota)} left`)
  return replay
}

/** A signal that Ctrl-C aborts, and the end of the program, until it is released. */
export function interruptible({ context, keyboard }: ChatContext): { signal: AbortSignal; release(): void } {
  const stopping = new AbortController()
  keyboard.interruptWith(() => stopping.abort(new DOMException('stopped at the keyboard', 'AbortError')))
  // Whoever releases it holds it until then: Node 20 drops a signal that is known to its sources alone.
  const signal = AbortSignal.any([context.signal, stopping.signal])
  return { signal, release: () => keyboard.interruptWith(null) }
}

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
