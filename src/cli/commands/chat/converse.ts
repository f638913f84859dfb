import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import fastStringWidth from 'fast-string-width'
import { wrapAnsi } from 'fast-wrap-ansi'
import { messageOf } from '../../../domain/refusal.ts'
import { parseJson } from '../../../domain/text.ts'
import { EXIT } from '../../exit-codes.ts'
import { inOneLine, printable, styled } from '../../terminal.ts'
import { Prompt } from './prompt.ts'
import { showTurn } from './show-turn.ts'
import type { ChatContext } from './show-turn.ts'
import { completionsOf, parseSlashCommand, runSlashCommand } from './slash-commands.ts'

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
      const command = parseSlashCommand(entered.text)
      if (command === null) await showTurn(chat, entered.text)
      else if (command.name === 'quit') return EXIT.done
      else await runSlashCommand(chat, command)
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

/** Questions of earlier runs, to which those of this run are added. */
export interface QuestionHistory {
  /** Oldest first. */
  earlier: readonly string[]
  /** Stores a question, unless it begins with a space, as in shells. */
  add(question: string): void
}

/** Most questions that are kept between runs. */
export const QUESTIONS_KEPT = 1_000

const OWNER_ONLY = 0o600

/**
 * Opens the question history in a file that only its owner may read. Several terminals may add to it at once.
 *
 * @param path file of the history; null: questions are not stored
 * @param onProblem called once if the file cannot be used: questions are then not stored
 */
export function openQuestionHistory(
  path: string | null,
  onProblem: (problem: string) => void,
): QuestionHistory {
  let isUsable = path !== null
  let earlier: string[] = []
  const attempt = (work: (file: string) => void): void => {
    if (path === null || !isUsable) return
    try {
      work(path)
    } catch (error) {
      isUsable = false
      onProblem(`questions are not saved: ${path} cannot be used (${messageOf(error)})`)
    }
  }
  attempt((file) => (earlier = readHistoryFile(file)))
  return {
    earlier,
    add(question) {
      if (question.startsWith(' ') || question.trim() === '') return
      attempt((file) => {
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
        appendFileSync(file, lineOf(question), { mode: OWNER_ONLY })
      })
    },
  }
}

/** Reads the questions of a file, and rewrites it when it has grown to twice the kept number. */
function readHistoryFile(path: string): string[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  chmodSync(path, OWNER_ONLY)
  const stored = lines
    .map(parseJson)
    .filter((line): line is string => typeof line === 'string' && line !== '')
  // Each question stands at its last use.
  const questions = [...new Set(stored.toReversed())].slice(0, QUESTIONS_KEPT).toReversed()
  if (lines.length > 2 * QUESTIONS_KEPT) {
    const temporary = `${path}.${process.pid}`
    writeFileSync(temporary, questions.map(lineOf).join(''), { mode: OWNER_ONLY })
    renameSync(temporary, path)
  }
  return questions
}

function lineOf(question: string): string {
  return `${JSON.stringify(question)}\n`
}
