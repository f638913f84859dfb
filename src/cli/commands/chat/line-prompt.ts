import { createInterface } from 'node:readline'
import { cleaned } from '../../../domain/agent/answer-text.ts'
import { KeyStream } from './keyboard.ts'
import type { Keyboard } from './keyboard.ts'
import { completionsOf } from './slash-commands.ts'
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
    const settle = (finish: () => void): void => {
      // Closing the editor tells of its end once more.
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
    keyboard.give({
      keys: (text) => input.feed(text),
      paste: (text) => editor.write(toLine(text)),
      continued: () => editor.prompt(true),
      ended: leave,
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
