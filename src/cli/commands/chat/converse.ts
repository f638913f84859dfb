import { join } from 'node:path'
import fastStringWidth from 'fast-string-width'
import { wrapAnsi } from 'fast-wrap-ansi'
import { EXIT } from '../../exit-codes.ts'
import { inOneLine, printable, styled } from '../../terminal.ts'
import { Prompt } from './prompt.ts'
import { openQuestionHistory } from './question-history.ts'
import { showTurn } from './show-turn.ts'
import type { ChatContext } from './show-turn.ts'
import { completionsOf, parseTypedLine, runSlashCommand } from './slash-commands.ts'

/** Path of the question history below the user's state folder. */
const QUESTIONS_FILE = join('dash', 'chat-history')

/**
 * Runs a conversation on the terminal: prompts on standard error, answers on standard output.
 *
 * @returns 0 if left with Ctrl-D or /quit, 130 if left with Ctrl-C
 * @throws the signal's reason
 */
export async function converse(
  talking: Pick<ChatContext, 'context' | 'talk' | 'engineUrl' | 'api' | 'config'>,
  { isDemo, remember }: { isDemo: boolean; remember: boolean },
): Promise<number> {
  const { terminal, stdin, stderr: screen, config, signal } = talking.context
  const { colored } = terminal
  const say = (text: string): void => {
    const rows = noteRows(text, screen.columns - 1)
    screen.write(rows.map((row) => `${styled(row, ['dim'], colored)}\n`).join(''))
  }
  if (!terminal.quiet) say(greeting(talking, isDemo))
  const questions = openQuestionHistory(remember ? join(config.stateHome, QUESTIONS_FILE) : null, say)
  const history = questions.earlier
  const prompt = new Prompt({ stdin, screen, colored, history, complete: completionsOf, signal })
  const chat: ChatContext = { ...talking, prompt, say, last: null }
  try {
    let wasInterrupted = false
    for (;;) {
      const entered = await prompt.read()
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
      const typed = parseTypedLine(entered.text)
      if (typed.kind === 'unknown') say(`unknown command /${typed.name}; /help lists the commands`)
      else if (typed.kind === 'question') await showTurn(chat, typed.text)
      else if (typed.name === 'quit') return EXIT.done
      else await runSlashCommand(chat, typed)
    }
  } finally {
    prompt.close()
  }
}

const COLUMNS_MIN = 8

/** Wraps the lines of a note that are too wide; the others keep their spaces. */
export function noteRows(text: string, columns: number): string[] {
  // A terminal may not know its width.
  const width = Math.max(COLUMNS_MIN, columns)
  return printable(text)
    .split('\n')
    .flatMap((line) =>
      fastStringWidth(line) <= width ? [line] : wrapAnsi(line, width, { hard: true }).split('\n'),
    )
}

function greeting({ api, config, talk }: Parameters<typeof converse>[0], isDemo: boolean): string {
  const model = config.model === '' ? '' : `, model ${inOneLine(config.model)}`
  const item = talk.preferences.itemKey === null ? '' : `, about ${talk.preferences.itemKey}`
  const label = isDemo ? 'DEMO: ' : ''
  return `${label}dash chat at ${api.base}${model}${item}\n/help lists the commands; Ctrl-C stops an answer, Ctrl-D quits`
}
