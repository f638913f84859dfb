import { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

const CTRL_C = '\x03'
const CTRL_Z = '\x1a'
/** Key of the history search. */
export const CTRL_R = '\x12'
const BRACKETED_PASTE_ON = '\x1b[?2004h'
const BRACKETED_PASTE_OFF = '\x1b[?2004l'

/** Time within which SIGTSTP has stopped the process, if it stops it at all. */
const STOPPED_AFTER_MS = 100

/** Most characters that are kept while there is no reader. */
const TYPED_AHEAD_MAX = 100_000

const AT_ONCE = `${CTRL_C}${CTRL_R}${CTRL_Z}`

/** Splits input behind line ends, and around keys that act at once. */
const BETWEEN_KEYS = new RegExp(`(?<=[\r\n${AT_ONCE}])|(?=[${AT_ONCE}])`)

/** Receiver of keyboard input. */
export interface KeyReader {
  keys(text: string): void
  paste(text: string): void
  /** Called when the stopped program continues. */
  continued?(): void
  /** Called when the input has ended. */
  ended?(): void
}

/** Readable stream of keys, filled by {@link KeyStream.feed}. */
export class KeyStream extends Readable {
  override _read(): void {
    // Data arrives through feed().
  }

  /** Emits keys before it returns. */
  feed(text: string): void {
    this.emit('data', text)
  }
}

/**
 * Keyboard of a conversation. It stays in raw mode from the first prompt to the end, so that typed text does not
 * appear within an answer. Without a reader, keys wait, and Ctrl-C calls the interrupt handler.
 */
export class Keyboard {
  readonly #stdin: NodeJS.ReadStream
  readonly #screen: NodeJS.WriteStream
  readonly #decoder = new StringDecoder('utf8')
  readonly #typed = typedInput()
  #waiting: Typed[] = []
  #reader: KeyReader | null = null
  #onInterrupt: (() => void) | null = null
  #stopping: NodeJS.Timeout | null = null
  isEnded = false

  constructor(stdin: NodeJS.ReadStream, screen: NodeJS.WriteStream) {
    this.#stdin = stdin
    this.#screen = screen
  }

  open(): void {
    this.#stdin.on('data', this.#take)
    this.#stdin.once('end', this.#ended)
    this.#stdin.once('error', this.#ended)
    // A closed terminal reports an error for every operation until the process ends.
    this.#stdin.on('error', () => undefined)
    process.on('SIGCONT', this.#continued)
    // Restores the terminal however the process ends, except by SIGKILL.
    process.once('exit', this.#restore)
    this.#raw()
    this.#stdin.resume()
  }

  close(): void {
    this.#stdin.off('data', this.#take)
    this.#stdin.off('end', this.#ended)
    this.#stdin.off('error', this.#ended)
    process.off('SIGCONT', this.#continued)
    process.off('exit', this.#restore)
    this.#endStopping()
    this.#restore()
    this.#stdin.pause()
  }

  /** Passes all input to `reader`, beginning with waiting keys, until {@link Keyboard.release}. */
  give(reader: KeyReader): void {
    this.#reader = reader
    if (this.isEnded) reader.ended?.()
    this.#pass()
  }

  release(): void {
    this.#reader = null
  }

  /**
   * Sets the handler of Ctrl-C while there is no reader; waiting keys are then dropped. null: Ctrl-C waits as a
   * key.
   */
  interruptWith(interrupt: (() => void) | null): void {
    this.#onInterrupt = interrupt
  }

  readonly #take = (chunk: Buffer | string): void => {
    for (const typed of this.#typed.push(this.#decoder.write(Buffer.from(chunk)))) {
      if (typed.kind === 'paste') this.#waiting.push(typed)
      // Keys that act at once are handled one by one.
      else for (const text of typed.text.split(BETWEEN_KEYS)) this.#key(text)
    }
    this.#pass()
  }

  #key(text: string): void {
    if (text === CTRL_Z) return this.#stop()
    if (text === CTRL_C && this.#reader === null && this.#onInterrupt) {
      this.#waiting = []
      return this.#onInterrupt()
    }
    const length = this.#waiting.reduce((sum, each) => sum + each.text.length, 0)
    if (length < TYPED_AHEAD_MAX) this.#waiting.push({ kind: 'keys', text })
  }

  #pass(): void {
    while (this.#reader !== null) {
      const typed = this.#waiting.shift()
      if (!typed) return
      if (typed.kind === 'paste') this.#reader.paste(typed.text)
      else this.#reader.keys(typed.text)
    }
  }

  #raw(): void {
    if (!this.#stdin.isTTY) return
    this.#stdin.setRawMode(true)
    this.#screen.write(BRACKETED_PASTE_ON)
  }

  readonly #restore = (): void => {
    if (!this.#stdin.isTTY) return
    this.#screen.write(BRACKETED_PASTE_OFF)
    this.#stdin.setRawMode(false)
  }

  /** Ctrl-Z: stops the whole job, as the terminal would do outside of raw mode. */
  #stop(): void {
    this.#endStopping()
    this.#restore()
    // The system does not stop a job that no shell could continue, such as a terminal's only program.
    this.#stopping = setTimeout(() => this.#raw(), STOPPED_AFTER_MS)
    process.kill(0, 'SIGTSTP')
  }

  #endStopping(): void {
    if (this.#stopping !== null) clearTimeout(this.#stopping)
    this.#stopping = null
  }

  readonly #continued = (): void => {
    this.#endStopping()
    // Node remembers raw mode as set, but a shell has changed it meanwhile.
    this.#stdin.setRawMode(false)
    this.#raw()
    this.#reader?.continued?.()
  }

  readonly #ended = (): void => {
    this.isEnded = true
    this.#reader?.ended?.()
  }
}

/** Keyboard input: keys, or pasted text. */
export type Typed = { kind: 'keys'; text: string } | { kind: 'paste'; text: string }

const ESCAPE = '\x1b'
const PASTE_BEGINS = `${ESCAPE}[200~`
const PASTE_ENDS = `${ESCAPE}[201~`
const PASTE_MARKS = new RegExp(`(${ESCAPE}\\[20[01]~)`)

/** Matches the begin of a mark at the end of a text. Outside of a paste, a lone escape is a key. */
const PARTIAL_BEGIN = new RegExp(`${ESCAPE}\\[(?:2(?:00?)?)?$`)
const PARTIAL_END = new RegExp(`${ESCAPE}(?:\\[(?:2(?:01?)?)?)?$`)

/** A longer paste counts as complete, because its end may never come. */
const PASTE_MAX_LENGTH = 1_000_000

/**
 * Separates pasted from typed text (bracketed paste), wherever the input is split. If a terminal does not mark
 * pastes, a chunk with text behind a line end is one: typing is never that fast.
 */
export function typedInput(): { push(chunk: string): Typed[] } {
  let held = ''
  let pasted: string | null = null

  const keys = (text: string): Typed[] => {
    if (text === '') return []
    const body = text.replace(/[\r\n]+$/, '')
    if (!/[\r\n]/.test(body)) return [{ kind: 'keys', text }]
    const ends: Typed[] = body.length < text.length ? [{ kind: 'keys', text: '\r' }] : []
    return [{ kind: 'paste', text: body }, ...ends]
  }
  const take = (part: string): Typed[] => {
    if (pasted === null) {
      if (part !== PASTE_BEGINS) return keys(part)
      pasted = ''
      return []
    }
    const isEnd = part === PASTE_ENDS
    const text: string = isEnd ? pasted : pasted + part
    pasted = isEnd || text.length > PASTE_MAX_LENGTH ? null : text
    return pasted === null ? [{ kind: 'paste', text }] : []
  }
  return {
    push(chunk) {
      const parts = (held + chunk).split(PASTE_MARKS)
      const last = parts.pop() ?? ''
      const found = parts.flatMap(take)
      held = (pasted === null ? PARTIAL_BEGIN : PARTIAL_END).exec(last)?.[0] ?? ''
      return [...found, ...take(last.slice(0, last.length - held.length))]
    },
  }
}
