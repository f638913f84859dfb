import { join } from 'node:path'
import type { Replay } from '../../../domain/agent/conversation.ts'
import { EXIT } from '../../exit-codes.ts'
import type { CommandContext } from '../../context.ts'
import { Keyboard } from './keyboard.ts'
import { readMessage, openQuestions } from './line-prompt.ts'
import { inOneLine } from '../../terminal.ts'
import { noteColumns, noteRows } from './wrap.ts'
import { showTurn } from './show-turn.ts'
import type { Place } from './show-turn.ts'
import { runSlashCommand, parseSaid } from './slash-actions.ts'
import type { Said } from './slash-actions.ts'
import type { Conversing } from './talk.ts'

/** Below the folder of what a user's programs remember. */
const QUESTIONS_FILE = join('dash', 'chat-history')

/**
 * A talk on the terminal: prompts on standard error, answers on standard output.
 *
 * @returns 0 when left with Ctrl-D or /quit, 130 when left with Ctrl-C
 * @throws the signal's reason
 */
export async function converse(context: CommandContext, conversing: Conversing): Promise<number> {
  const { terminal, stdin, stderr, config } = context
  const { talk, api } = conversing
  const keyboard = new Keyboard(stdin, stderr)
  const say = (text: string): void =>
    void stderr.write(`${noteRows(text, noteColumns(stderr), terminal.colored).join('\r\n')}\r\n`)
  const place: Place = { context, keyboard, talk, base: api.base, say }
  const questions = openQuestions(conversing.remember ? join(config.stateHome, QUESTIONS_FILE) : null)
  if (!terminal.quiet) say(greeting(conversing))
  if (questions.problem !== null) say(questions.problem)
  keyboard.open()
  try {
    let replay: Replay | null = null
    const ask = async (question: string, again: boolean): Promise<void> => {
      replay = await showTurn(place, question, again, replay)
    }
    let wasInterrupted = false
    for (;;) {
      const entered = await readMessage({
        keyboard,
        screen: stderr,
        colored: terminal.colored,
        history: questions.list(),
        signal: context.signal,
      })
      if (entered.kind === 'end') return EXIT.done
      if (entered.kind === 'interrupt') {
        if (wasInterrupted && entered.wasEmpty) return EXIT.interrupted
        wasInterrupted = true
        say('Ctrl-C again leaves, and so does Ctrl-D')
        continue
      }
      wasInterrupted = false
      if (entered.text.trim() === '') continue
      const hadProblem = questions.problem
      questions.add(entered.text)
      if (questions.problem !== hadProblem && questions.problem !== null) say(questions.problem)
      const said: Said = parseSaid(entered.text)
      if (said.kind === 'unknown') say(`there is no /${said.name}; /help lists the commands`)
      else if (said.kind === 'question') await ask(said.text, false)
      else if (said.name === 'quit') return EXIT.done
      else if (said.name === 'retry') await retry(place, ask)
      else {
        // What is left out is told anew of a conversation of its own.
        if (said.name === 'new' || said.name === 'item') replay = null
        await runSlashCommand(place, conversing, said)
      }
    }
  } finally {
    keyboard.close()
  }
}

async function retry(
  { talk, say }: Place,
  ask: (question: string, again: boolean) => Promise<void>,
): Promise<void> {
  const question = talk.lastQuestion
  if (question === null) say('there is no question to ask again')
  else await ask(question, true)
}

function greeting({ api, config, isDemo, talk }: Conversing): string {
  const model = config.model === '' ? '' : `, model ${inOneLine(config.model)}`
  const item = talk.wishes.itemKey === null ? '' : `, about ${talk.wishes.itemKey}`
  const label = isDemo ? 'DEMO: ' : ''
  return `${label}dash chat at ${api.base}${model}${item}\n/help lists the commands; Ctrl-C stops an answer, Ctrl-D leaves`
}
