import type { ServedEvent } from '../../../domain/ports.ts'
import type { Replay } from '../../../domain/agent/conversation.ts'
import type { CommandContext } from '../../context.ts'
import type { Keyboard } from './keyboard.ts'
import { replayNotes } from './replay-notes.ts'
import type { Talk } from './talk.ts'
import { openTurnScreen, toolWords } from './turn-screen.ts'
import type { TurnScreen } from './turn-screen.ts'
import { canHelpAgain, declinedWords, failureWords, isChatRefusal, labelsOf, quotaWords } from './words.ts'

/** Where a talk happens. */
export interface Place {
  context: CommandContext
  keyboard: Keyboard
  talk: Talk
  base: string
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
  place: Place,
  question: string,
  again: boolean,
  last: Replay | null,
): Promise<Replay> {
  const { context, talk, base, say } = place
  const { signal, terminal } = context
  const replay = talk.replay(question, again)
  for (const note of replayNotes(replay, last)) say(note)
  const ending = interruptible(place)
  const screen = openScreen(context)
  const after: string[] = []
  try {
    for await (const each of talk.ask(question, ending.signal, again)) {
      if (each.kind === 'text') screen.text(each.text)
      else if (each.kind === 'renewed') after.push('the session had ended; another was begun')
      else after.push(...show(each.served, screen))
    }
  } catch (error) {
    if (ending.signal.aborted) after.push('stopped; what came stays in the talk, /retry asks again')
    else if (isChatRefusal(error)) {
      const { text } = declinedWords(error, base, Date.now(), { isTalk: true, quota: talk.quota })
      after.push(canHelpAgain(error, talk.quota) ? `${text}; /retry asks again` : text)
    } else throw error
  } finally {
    screen.close()
    ending.release()
  }
  signal.throwIfAborted()
  for (const line of after) say(line)
  if (talk.quota && !terminal.quiet) say(`${quotaWords(talk.quota)} left`)
  return replay
}

/** A signal that Ctrl-C aborts, and the end of the program, until it is released. */
export function interruptible({ context, keyboard }: Place): { signal: AbortSignal; release(): void } {
  const { signal } = context
  const stopping = new AbortController()
  const stop = (): void => stopping.abort(new DOMException('stopped at the keyboard', 'AbortError'))
  keyboard.interruptWith(stop)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  return {
    signal: stopping.signal,
    release() {
      keyboard.interruptWith(null)
      signal.removeEventListener('abort', stop)
    },
  }
}

/** Shows one event; returns what is to be said of it once the answer has ended. */
function show(served: ServedEvent, screen: TurnScreen): string[] {
  switch (served.event) {
    case 'tool':
      screen.tool(served.data.name, served.data.status)
      return []
    case 'done': {
      const { degraded = false, cached = false } = served.data
      return labelsOf({ degraded, cached })
    }
    case 'error':
      return [failureWords(served.data, { isTalk: true })]
    case 'meta':
    case 'delta':
      return []
  }
}

/** A screen that is painted where the answer goes to a terminal, else plain text there and the tools on standard error. */
export function openScreen({ stdout, terminal }: CommandContext): TurnScreen & { close(): void } {
  const now = (): number => performance.now()
  if (!stdout.isTTY) {
    const plain = plainScreen(stdout, terminal.note, now)
    return { ...plain, close: () => plain.end() }
  }
  const screen = openTurnScreen(stdout, terminal.colored, now)
  const resized = (): void => screen.resized()
  stdout.on('resize', resized)
  return {
    ...screen,
    close() {
      stdout.off('resize', resized)
      screen.end()
    },
  }
}

function plainScreen(
  stdout: NodeJS.WriteStream,
  note: (text: string) => void,
  now: () => number,
): TurnScreen {
  const begun = new Map<string, number>()
  let last = '\n'
  return {
    text(text) {
      stdout.write(text)
      last = text
    },
    tool(name, status) {
      const startedAt = begun.get(name)
      if (status === 'start') begun.set(name, now())
      else if (startedAt !== undefined) note(toolWords({ name, ms: now() - startedAt }))
    },
    resized: () => undefined,
    end() {
      if (!last.endsWith('\n')) stdout.write('\n')
    },
  }
}
