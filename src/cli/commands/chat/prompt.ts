import { createInterface } from 'node:readline'
import type { Interface } from 'node:readline'
import { Writable } from 'node:stream'
import { cleanText } from '../../../domain/answers/answer-text.ts'
import { styled } from '../../terminal.ts'

export type Entered =
  | { kind: 'message'; text: string; wasHidden: boolean }
  /** Ctrl-C; the typed text is dropped. */
  | { kind: 'interrupt'; wasEmpty: boolean }
  | { kind: 'end' }

export interface PromptOptions {
  stdin: NodeJS.ReadStream
  screen: NodeJS.WriteStream
  colored: boolean
  /** Earlier messages, oldest first. */
  history: readonly string[]
  /** Returns the completions of the beginning of a line. */
  complete: (line: string) => string[]
  signal: AbortSignal
}

/** Lines that follow each other faster than a person types are pasted. */
const BURST_MS = 25

const CLEAR_ROW = '\r\x1b[K'

/**
 * The one line editor of a conversation. It keeps the terminal in raw mode, so that text typed during an answer does
 * not appear within it: between two reads, text is hidden and waits. A paste of several lines, or a line with a `\` at
 * its end, continues the message on the next line.
 */
export class Prompt {
  readonly #options: PromptOptions
  readonly #output: EditorOutput
  readonly #editor: Interface
  /** Messages, each on one line, the newest first; and the array in which the editor looks for them. */
  #messages: string[]
  #history: string[]
  /** Lines of the message so far, and how many of them belong to the current burst. */
  #lines: string[] = []
  #burst = 0
  #burstEnd: NodeJS.Timeout | undefined
  #isHidden = false
  #isClosed = false
  #entered: Entered[] = []
  #stopping: AbortController | null = null
  #wake = (): void => undefined

  constructor(options: PromptOptions) {
    const { stdin, screen, history, complete, signal } = options
    this.#options = options
    this.#output = new EditorOutput(screen)
    this.#messages = history.toReversed().map(toLine)
    this.#history = [...this.#messages]
    this.#editor = createInterface({
      input: stdin,
      output: this.#output,
      terminal: true,
      history: this.#history,
      historySize: Infinity,
      escapeCodeTimeout: 50,
      completer: (line: string): [string[], string] => [complete(line), line],
    })
    // The editor adds each line of a message.
    this.#editor.on('history', (lines) => {
      this.#history = lines
      this.#restoreHistory()
    })
    this.#editor.on('line', (line) => this.#take(line))
    this.#editor.on('SIGINT', () => this.#interrupt())
    this.#editor.on('SIGTSTP', () => this.#suspend())
    this.#editor.on('close', () => this.#end())
    // A closed terminal reports an error for every operation until the process ends.
    this.#editor.on('error', () => undefined)
    stdin.on('error', () => undefined)
    process.on('SIGCONT', this.#restoreRawMode)
    signal.addEventListener('abort', this.#aborted)
  }

  /** Reads a message. @throws the signal's reason */
  async read(): Promise<Entered> {
    this.#stopping = null
    if (this.#entered.length === 0) {
      this.#output.muted = false
      this.#show()
    }
    while (this.#entered.length === 0) {
      this.#options.signal.throwIfAborted()
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    this.#output.muted = true
    const next = this.#entered.shift() ?? { kind: 'end' }
    if (next.kind === 'message' && next.wasHidden)
      this.#options.screen.write(`${CLEAR_ROW}${this.#text}${toLine(next.text)}\n`)
    return next
  }

  /**
   * Returns a signal that aborts with the program's, or on Ctrl-C before the next read. The caller must keep it until
   * then: Node 20 collects a signal that only its sources reference.
   */
  interruptible(): AbortSignal {
    this.#stopping = new AbortController()
    return AbortSignal.any([this.#options.signal, this.#stopping.signal])
  }

  close(): void {
    process.off('SIGCONT', this.#restoreRawMode)
    this.#options.signal.removeEventListener('abort', this.#aborted)
    this.#editor.close()
  }

  get #text(): string {
    return styled(this.#lines.length === 0 ? '> ' : '… ', ['bold'], this.#options.colored)
  }

  #show(): void {
    if (this.#isClosed) return
    this.#editor.setPrompt(this.#text)
    this.#editor.prompt(true)
  }

  #enter(next: Entered): void {
    this.#entered.push(next)
    this.#wake()
  }

  #take(line: string): void {
    this.#lines.push(fromLine(line))
    this.#isHidden ||= this.#output.muted
    this.#burst += 1
    clearTimeout(this.#burstEnd)
    this.#burstEnd = setTimeout(() => this.#endBurst(), BURST_MS)
  }

  #endBurst(): void {
    const isTyped = this.#burst === 1 && this.#editor.line === ''
    const last = this.#lines.at(-1) ?? ''
    this.#burst = 0
    if (!isTyped) return this.#show()
    if (last.endsWith('\\')) {
      this.#lines[this.#lines.length - 1] = last.slice(0, -1)
      return this.#show()
    }
    const text = this.#lines.join('\n').replace(/\n+$/, '')
    this.#enter({ kind: 'message', text, wasHidden: this.#isHidden })
    this.#lines = []
    this.#isHidden = false
    const line = toLine(text)
    this.#messages = [line, ...this.#messages.filter((each) => each !== line)]
    this.#restoreHistory()
  }

  #restoreHistory(): void {
    this.#history.splice(0, this.#history.length, ...this.#messages)
  }

  #interrupt(): void {
    const wasEmpty = this.#editor.line === '' && this.#lines.length === 0
    clearTimeout(this.#burstEnd)
    this.#lines = []
    this.#burst = 0
    this.#editor.write(null, { ctrl: true, name: 'e' })
    this.#editor.write(null, { ctrl: true, name: 'u' })
    if (this.#stopping === null) {
      if (!this.#output.muted) this.#options.screen.write('^C\n')
      return this.#enter({ kind: 'interrupt', wasEmpty })
    }
    this.#entered = []
    this.#stopping.abort(new DOMException('stopped at the keyboard', 'AbortError'))
  }

  /** Stops the whole job, as the terminal does outside of raw mode. The system stops none that no shell continues. */
  #suspend(): void {
    this.#options.stdin.setRawMode(false)
    process.kill(0, 'SIGTSTP')
    this.#restoreRawMode()
  }

  readonly #restoreRawMode = (): void => {
    // Node remembers raw mode as set, but a shell has changed it meanwhile.
    this.#options.stdin.setRawMode(false)
    this.#options.stdin.setRawMode(true)
    this.#show()
  }

  readonly #aborted = (): void => this.#wake()

  #end(): void {
    this.#isClosed = true
    clearTimeout(this.#burstEnd)
    if (!this.#output.muted) this.#options.screen.write('\n')
    this.#enter({ kind: 'end' })
  }
}

/** The screen, except while an answer is written to it. */
class EditorOutput extends Writable {
  muted = true
  readonly #screen: NodeJS.WriteStream

  constructor(screen: NodeJS.WriteStream) {
    super({ decodeStrings: false })
    this.#screen = screen
    screen.on('resize', () => this.emit('resize'))
  }

  /** Unlimited while text is hidden: the editor counts its rows, to write over them. */
  get columns(): number {
    return this.muted ? Infinity : this.#screen.columns
  }

  override _write(text: string, _encoding: BufferEncoding, done: () => void): void {
    if (!this.muted) this.#screen.write(text)
    done()
  }
}

/** Placeholder for a line end in a line of the history. */
const LINE_END = '␊'

/** Returns a text on one line, without control characters. */
function toLine(text: string): string {
  return cleanText(text).replaceAll('\n', LINE_END).replaceAll('\t', ' ')
}

function fromLine(line: string): string {
  return line.replaceAll(LINE_END, '\n')
}
