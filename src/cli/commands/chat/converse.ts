import { join } from 'node:path'
import { EXIT } from '../../exit-codes.ts'
import { inOneLine } from '../../terminal.ts'
import { Keyboard } from './keyboard.ts'
import { readMessage } from './line-prompt.ts'
import { openQuestionHistory } from './question-history.ts'
import { showTurn } from './show-turn.ts'
import type { ChatContext } from './show-turn.ts'
import { searchQuestions } from './slash-actions.ts'
import { parseTypedLine, runSlashCommand } from './slash-commands.ts'
import { noteColumns, noteRows } from './wrap.ts'

/** Path of the question history below the user's state folder. */
const QUESTIONS_FILE = join('dash', 'chat-history')

/**
 * Runs a conversation on the terminal: prompts on standard error, answers on standard output.
 *
 * @returns 0 if left with Ctrl-D or /quit, 130 if left with Ctrl-C
 * @throws the signal's reason
 */
export async function converse(
  talking: Pick<ChatContext, 'context' | 'talk' | 'api' | 'config'>,
  { isDemo, remember }: { isDemo: boolean; remember: boolean },
): Promise<number> {
  const { terminal, stdin, stderr, config, signal } = talking.context
  const keyboard = new Keyboard(stdin, stderr)
  const say = (text: string): void =>
    void stderr.write(`${noteRows(text, noteColumns(stderr), terminal.colored).join('\r\n')}\r\n`)
  if (!terminal.quiet) say(greeting(talking, isDemo))
  const questions = openQuestionHistory(remember ? join(config.stateHome, QUESTIONS_FILE) : null, say)
  const chat: ChatContext = { ...talking, keyboard, say, questions, last: null, draft: '' }
  keyboard.open()
  try {
    let wasInterrupted = false
    for (;;) {
      const entered = await readMessage({
        keyboard,
        screen: stderr,
        colored: terminal.colored,
        history: questions.list(),
        initial: chat.draft,
        search: (typed) => searchQuestions(chat, typed),
        signal,
      })
      chat.draft = ''
      if (entered.kind === 'end') return EXIT.done
      if (entered.kind === 'interrupt') {
        if (wasInterrupted && entered.wasEmpty) return EXIT.interrupted
        wasInterrupted = true
        say('press Ctrl-C again or Ctrl-D to quit')
        continue
      }
      wasInterrupted = false
      if (entered.text.trim() === '') continue
      const typed = parseTypedLine(entered.text)
      // A search would find itself.
      if (typed.kind !== 'command' || typed.name !== 'history') questions.add(entered.text)
      if (typed.kind === 'unknown') say(`unknown command /${typed.name}; /help lists the commands`)
      else if (typed.kind === 'question') await showTurn(chat, typed.text)
      else if (typed.name === 'quit') return EXIT.done
      else await runSlashCommand(chat, typed)
    }
  } finally {
    keyboard.close()
  }
}

function greeting({ api, config, talk }: Parameters<typeof converse>[0], isDemo: boolean): string {
  const model = config.model === '' ? '' : `, model ${inOneLine(config.model)}`
  const item = talk.preferences.itemKey === null ? '' : `, about ${talk.preferences.itemKey}`
  const label = isDemo ? 'DEMO: ' : ''
  return `${label}dash chat at ${api.base}${model}${item}\n/help lists the commands; Ctrl-C stops an answer, Ctrl-D quits`
}
