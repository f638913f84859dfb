import { join } from 'node:path'
import type { Replay } from '../../../domain/agent/conversation.ts'
import { EXIT } from '../../exit-codes.ts'
import { inOneLine } from '../../terminal.ts'
import { Keyboard } from './keyboard.ts'
import { readMessage } from './line-prompt.ts'
import { openQuestionHistory } from './question-history.ts'
import { showTurn } from './show-turn.ts'
import type { ChatContext } from './show-turn.ts'
import { runSlashCommand, searchHistory } from './slash-actions.ts'
import { parseTypedLine } from './slash-commands.ts'
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
  talking: Omit<ChatContext, 'keyboard' | 'say'>,
  { isDemo, remember }: { isDemo: boolean; remember: boolean },
): Promise<number> {
  const { terminal, stdin, stderr, config, signal } = talking.context
  const keyboard = new Keyboard(stdin, stderr)
  const say = (text: string): void =>
    void stderr.write(`${noteRows(text, noteColumns(stderr), terminal.colored).join('\r\n')}\r\n`)
  const chat: ChatContext = { ...talking, keyboard, say }
  if (!terminal.quiet) say(greeting(chat, isDemo))
  const questions = openQuestionHistory(remember ? join(config.stateHome, QUESTIONS_FILE) : null, say)
  keyboard.open()
  try {
    let replay: Replay | null = null
    let wasInterrupted = false
    let initial = ''
    const search = (typed: string): Promise<string | null> => searchHistory(chat, questions.list(), typed)
    for (;;) {
      const entered = await readMessage({
        keyboard,
        screen: stderr,
        colored: terminal.colored,
        history: questions.list(),
        initial,
        search,
        signal,
      })
      initial = ''
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
      else if (typed.kind === 'question') replay = await showTurn(chat, typed.text, false, replay)
      else if (typed.name === 'quit') return EXIT.done
      else if (typed.name === 'history') initial = (await search(typed.argument)) ?? ''
      else if (typed.name === 'retry') replay = await retry(chat, replay)
      else {
        // A new conversation reports again what it leaves out.
        if (typed.name === 'new' || typed.name === 'item') replay = null
        await runSlashCommand(chat, typed)
      }
    }
  } finally {
    keyboard.close()
  }
}

async function retry(chat: ChatContext, last: Replay | null): Promise<Replay | null> {
  const question = chat.talk.lastQuestion
  if (question !== null) return showTurn(chat, question, true, last)
  chat.say('no question to ask again yet')
  return last
}

function greeting({ api, config, talk }: ChatContext, isDemo: boolean): string {
  const model = config.model === '' ? '' : `, model ${inOneLine(config.model)}`
  const item = talk.preferences.itemKey === null ? '' : `, about ${talk.preferences.itemKey}`
  const label = isDemo ? 'DEMO: ' : ''
  return `${label}dash chat at ${api.base}${model}${item}\n/help lists the commands; Ctrl-C stops an answer, Ctrl-D quits`
}
