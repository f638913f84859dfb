import { join } from 'node:path'
import type { Replay } from '../../../domain/agent/conversation.ts'
import { EXIT } from '../../exit-codes.ts'
import { inOneLine } from '../../terminal.ts'
import { Keyboard } from './keyboard.ts'
import { readMessage } from './line-prompt.ts'
import { openQuestions } from './question-history.ts'
import { showTurn } from './show-turn.ts'
import type { Place } from './show-turn.ts'
import { runSlashCommand } from './slash-actions.ts'
import { parseSaid } from './slash-commands.ts'
import { noteColumns, noteRows } from './wrap.ts'

/** Below the folder of what a user's programs remember. */
const QUESTIONS_FILE = join('dash', 'chat-history')

/**
 * A talk on the terminal: prompts on standard error, answers on standard output.
 *
 * @returns 0 when left with Ctrl-D or /quit, 130 when left with Ctrl-C
 * @throws the signal's reason
 */
export async function converse(
  talking: Omit<Place, 'keyboard' | 'say'>,
  { isDemo, remember }: { isDemo: boolean; remember: boolean },
): Promise<number> {
  const { terminal, stdin, stderr, config, signal } = talking.context
  const keyboard = new Keyboard(stdin, stderr)
  const say = (text: string): void =>
    void stderr.write(`${noteRows(text, noteColumns(stderr), terminal.colored).join('\r\n')}\r\n`)
  const place: Place = { ...talking, keyboard, say }
  if (!terminal.quiet) say(greeting(place, isDemo))
  const questions = openQuestions(remember ? join(config.stateHome, QUESTIONS_FILE) : null, say)
  keyboard.open()
  try {
    let replay: Replay | null = null
    let wasInterrupted = false
    for (;;) {
      const entered = await readMessage({
        keyboard,
        screen: stderr,
        colored: terminal.colored,
        history: questions.list(),
        signal,
      })
      if (entered.kind === 'end') return EXIT.done
      if (entered.kind === 'interrupt') {
        if (wasInterrupted && entered.wasEmpty) return EXIT.interrupted
        wasInterrupted = true
        say('press Ctrl-C again or Ctrl-D to quit')
        continue
      }
      wasInterrupted = false
      if (entered.text.trim() === '') continue
      questions.add(entered.text)
      const said = parseSaid(entered.text)
      if (said.kind === 'unknown') say(`unknown command /${said.name}; /help lists the commands`)
      else if (said.kind === 'question') replay = await showTurn(place, said.text, false, replay)
      else if (said.name === 'quit') return EXIT.done
      else if (said.name === 'retry') replay = await retry(place, replay)
      else {
        // What a conversation of its own leaves out is said again.
        if (said.name === 'new' || said.name === 'item') replay = null
        await runSlashCommand(place, said)
      }
    }
  } finally {
    keyboard.close()
  }
}

async function retry(place: Place, last: Replay | null): Promise<Replay | null> {
  const question = place.talk.lastQuestion
  if (question !== null) return showTurn(place, question, true, last)
  place.say('no question to ask again yet')
  return last
}

function greeting({ api, config, talk }: Place, isDemo: boolean): string {
  const model = config.model === '' ? '' : `, model ${inOneLine(config.model)}`
  const item = talk.wishes.itemKey === null ? '' : `, about ${talk.wishes.itemKey}`
  const label = isDemo ? 'DEMO: ' : ''
  return `${label}dash chat at ${api.base}${model}${item}\n/help lists the commands; Ctrl-C stops an answer, Ctrl-D quits`
}
