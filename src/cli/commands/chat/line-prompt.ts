import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { cleaned } from '../../../domain/agent/answer-text.ts'
import { KeyStream } from './keyboard.ts'
import type { Keyboard } from './keyboard.ts'
import { completionsOf } from './slash-actions.ts'
import { styled } from './wrap.ts'

/** What a person did at the prompt. */
export type Entered =
  | { kind: 'message'; text: string }
  /** Ctrl-C; what was typed is dropped. */
  | { kind: 'interrupt'; wasEmpty: boolean }
  | { kind: 'end' }

/** Stands for a line end within a line that is edited. */
const LINE_END = '␊'

export interface PromptOptions {
  keyboard: Keyboard
  screen: NodeJS.WriteStream
  colored: boolean
  /** Earlier messages, oldest first. */
  history: readonly string[]
  signal: AbortSignal
}

/** Reads one message: edited, recalled and completed by `node:readline`; `\` at the end of a line goes on in the next. */
export async function readMessage(options: PromptOptions): Promise<Entered> {
  const lines: string[] = []
  for (;;) {
    const entered = await readLine(options, lines.length === 0 ? '> ' : '… ')
    if (entered.kind === 'interrupt')
      return { kind: 'interrupt', wasEmpty: entered.wasEmpty && lines.length === 0 }
    if (entered.kind === 'end') return entered
    const isContinued = entered.text.endsWith('\\')
    lines.push(isContinued ? entered.text.slice(0, -1) : entered.text)
    if (!isContinued) return { kind: 'message', text: lines.join('\n') }
  }
}

function readLine(
  { keyboard, screen, colored, history, signal }: PromptOptions,
  prompt: string,
): Promise<Entered> {
  return new Promise((resolve, reject) => {
    const input = new KeyStream()
    const editor = createInterface({
      input,
      output: screen,
      terminal: true,
      prompt: styled(prompt, ['bold'], colored),
      history: history.map(toLine).toReversed(),
      historySize: history.length + 1,
      escapeCodeTimeout: 50,
      completer: (line: string): [string[], string] => [completionsOf(line), line],
    })
    let isSettled = false
    const settle = (how: () => void): void => {
      // Closing the editor tells of its end once more.
      if (isSettled) return
      isSettled = true
      keyboard.release()
      keyboard.onContinued = () => undefined
      keyboard.onEnd = () => undefined
      signal.removeEventListener('abort', abandon)
      editor.close()
      how()
    }
    const leave = (): void => {
      if (isSettled) return
      screen.write('\r\n')
      settle(() => resolve({ kind: 'end' }))
    }
    const abandon = (): void => {
      screen.write('\r\n')
      settle(() => reject(signal.reason as Error))
    }
    editor.on('line', (line) => settle(() => resolve({ kind: 'message', text: fromLine(line) })))
    editor.on('SIGINT', () => {
      const wasEmpty = editor.line === ''
      screen.write('^C\r\n')
      settle(() => resolve({ kind: 'interrupt', wasEmpty }))
    })
    editor.on('close', leave)
    keyboard.onContinued = () => editor.prompt(true)
    keyboard.onEnd = leave
    if (signal.aborted) return abandon()
    if (keyboard.isEnded) return leave()
    signal.addEventListener('abort', abandon, { once: true })
    editor.prompt()
    keyboard.give({
      keys: (text) => input.feed(text),
      paste: (text) => editor.write(toLine(text)),
    })
  })
}

/** A text on one line, without anything a terminal would obey. */
function toLine(text: string): string {
  return cleaned(text).replace(/\n+$/, '').replaceAll('\n', LINE_END).replaceAll('\t', ' ')
}

function fromLine(line: string): string {
  return line.replaceAll(LINE_END, '\n')
}

/** Questions asked in this run and in earlier ones. */
export interface Questions {
  /** Oldest first. */
  list(): readonly string[]
  /** Never throws: what cannot be written down is still in the list. */
  add(question: string): void
  /** Why nothing is remembered from now on; null while all is well. */
  readonly problem: string | null
}

const OWNER_ONLY = 0o600

/**
 * Questions kept in a file that only its owner may read; several terminals may add to it at once.
 *
 * @param path null to remember nothing between runs
 */
export function openQuestions(path: string | null): Questions {
  let problem: string | null = null
  let questions: string[] = []
  const attempt = (work: () => void): void => {
    if (path === null || problem !== null) return
    try {
      work()
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      problem = `questions are not remembered: ${path} cannot be used (${why})`
    }
  }
  attempt(() => {
    if (path !== null) questions = readKept(path)
  })
  return {
    list: () => questions,
    add(question) {
      questions = [...questions.filter((each) => each !== question), question].slice(-QUESTIONS_KEPT)
      attempt(() => {
        if (path !== null && mayRemember(question)) append(path, rememberedLine(question))
      })
    },
    get problem() {
      return problem
    },
  }
}

/** What a file holds; a file that has grown to twice what is kept is written anew. */
function readKept(path: string): string[] {
  const text = readIfThere(path)
  if (text === null) return []
  chmodSync(path, OWNER_ONLY)
  const questions = rememberedQuestions(text)
  if (text.split('\n').length > 2 * QUESTIONS_KEPT) {
    const beside = `${path}.${process.pid}`
    writeFileSync(beside, questions.map(rememberedLine).join(''), { mode: OWNER_ONLY })
    renameSync(beside, path)
  }
  return questions
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

function append(path: string, line: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const file = openSync(path, 'a', OWNER_ONLY)
  try {
    writeSync(file, line)
  } finally {
    closeSync(file)
  }
}

/** How many questions are remembered between runs. */
export const QUESTIONS_KEPT = 1_000

/** Keys and tokens as their makers mark them, and a password that is named one. */
const SECRETS = [
  /\bsk-[\w-]{16,}/,
  /\b(?:gh[opusr]|github_pat|glpat|xox[abprs]|hf|r8|npm|pypi)[_-][\w-]{16,}/,
  /\bA[KS]IA[A-Z0-9]{16}\b/,
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/,
  /\bv1\.[\w-]{20,}\.[\w-]{20,}/,
  /-----BEGIN [A-Z ]*PRIVATE KEY/,
  /\b(?:password|passwd|secret|token|api[_-]?key|bearer)\b\s*[:= ]\s*\S{8,}/i,
  /:\/\/[^\s/:@]+:[^\s/@]+@/,
]

/**
 * Whether a question may be written down: not one that begins with a space, as shells have it, and none that holds what
 * looks like a secret.
 */
export function mayRemember(question: string): boolean {
  return (
    question.trim() !== '' && !question.startsWith(' ') && !SECRETS.some((secret) => secret.test(question))
  )
}

/** The line of a file that holds a question, with its line end. */
export function rememberedLine(question: string): string {
  return `${JSON.stringify(question)}\n`
}

/** Questions of a file, oldest first, each where it was asked last; lines that hold none are left out. */
export function rememberedQuestions(text: string): string[] {
  const questions = new Set<string>()
  for (const line of text.split('\n')) {
    const question = parseLine(line)
    if (question === null) continue
    questions.delete(question)
    questions.add(question)
  }
  return [...questions].slice(-QUESTIONS_KEPT)
}

function parseLine(line: string): string | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'string' && value !== '' ? value : null
  } catch {
    return null
  }
}
