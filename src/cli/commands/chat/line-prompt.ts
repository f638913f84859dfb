import { createInterface } from 'node:readline'
import { cleanText } from '../../../domain/agent/answer-text.ts'
import { CTRL_R, KeyStream } from './keyboard.ts'
import type { Keyboard } from './keyboard.ts'
import { completionsOf } from './slash-commands.ts'
import { styled } from './wrap.ts'

/** Result of a prompt. */
export type Entered =
  | { kind: 'message'; text: string }
  /** Ctrl-C; the typed text is dropped. */
  | { kind: 'interrupt'; wasEmpty: boolean }
  | { kind: 'end' }

/** Result of one line. */
type EnteredLine = Entered | { kind: 'search'; typed: string }

/** Placeholder for a line end within an edited line. */
const LINE_END = '␊'

export interface PromptOptions {
  keyboard: Keyboard
  screen: NodeJS.WriteStream
  colored: boolean
  /** Earlier messages, oldest first. */
  history: readonly string[]
  /** Text that already stands in the line. */
  initial: string
  /** Called on Ctrl-R with the typed text; the returned text replaces it, null keeps it. */
  search: (typed: string) => Promise<string | null>
  signal: AbortSignal
}

/**
 * Reads one message with the editing, history and completion of `node:readline`. A `\` at the end of a line
 * continues the message on the next line.
 */
export async function readMessage(options: PromptOptions): Promise<Entered> {
  const lines: string[] = []
  let { initial } = options
  for (;;) {
    const entered = await readLine({ ...options, initial }, lines.length === 0 ? '> ' : '… ')
    initial = ''
    if (entered.kind === 'search') {
      initial = (await options.search(entered.typed)) ?? entered.typed
      continue
    }
    if (entered.kind === 'interrupt')
      return { kind: 'interrupt', wasEmpty: entered.wasEmpty && lines.length === 0 }
    if (entered.kind === 'end') return entered
    const isContinued = entered.text.endsWith('\\')
    lines.push(isContinued ? entered.text.slice(0, -1) : entered.text)
    if (!isContinued) return { kind: 'message', text: lines.join('\n') }
  }
}

function readLine(
  { keyboard, screen, colored, history, initial, signal }: PromptOptions,
  prompt: string,
): Promise<EnteredLine> {
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
    const settle = (finish: () => void): void => {
      // Closing the editor emits `close`, which settles again.
      if (isSettled) return
      isSettled = true
      keyboard.release()
      signal.removeEventListener('abort', abandon)
      editor.close()
      finish()
    }
    const leave = (): void => {
      if (!isSettled) screen.write('\r\n')
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
    if (signal.aborted) return abandon()
    signal.addEventListener('abort', abandon, { once: true })
    if (!keyboard.isEnded) editor.prompt()
    editor.write(toLine(initial))
    const search = (): void => {
      const typed = fromLine(editor.line)
      screen.write('\r\n')
      settle(() => resolve({ kind: 'search', typed }))
    }
    keyboard.give({
      keys: (text) => (text === CTRL_R ? search() : input.feed(text)),
      paste: (text) => editor.write(toLine(text)),
      continued: () => editor.prompt(true),
      ended: leave,
    })
  })
}

/** Returns a text on one line, without control characters. */
function toLine(text: string): string {
  return cleanText(text).replace(/\n+$/, '').replaceAll('\n', LINE_END).replaceAll('\t', ' ')
}

function fromLine(line: string): string {
  return line.replaceAll(LINE_END, '\n')
}
