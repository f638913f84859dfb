import { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

const CTRL_C = '\x03'
const CTRL_Z = '\x1a'
const BRACKETED_PASTE_ON = '\x1b[?2004h'
const BRACKETED_PASTE_OFF = '\x1b[?2004l'

/** A process that is to be stopped is not there any more after less than this. */
const STOPPED_AFTER_MS = 100

/** What is typed while nobody asks for it is kept up to this length. */
const TYPED_AHEAD_MAX = 100_000

/** Splits keys where one ends a line, interrupts or stops. */
const BETWEEN_KEYS = new RegExp(`(?<=[\r\n${CTRL_C}${CTRL_Z}])|(?=[${CTRL_C}${CTRL_Z}])`)

/** Who gets what is typed. */
export interface KeyReader {
  keys(text: string): void
  paste(text: string): void
  /** The terminal is there again after the program was stopped. */
  continued?(): void
  /** There is nobody at the terminal any more. */
  ended?(): void
}

/** A stream of keys for whoever reads those of a terminal, fed by hand. */
export class KeyStream extends Readable {
  override _read(): void {
    // Whatever there is has been fed.
  }

  /** Passes keys on before this returns. */
  feed(text: string): void {
    this.emit('data', text)
  }
}

/**
 * The keyboard of a talk. It stays in raw mode from the first prompt to the end, so that nothing that is typed appears in
 * the middle of an answer: while nobody reads, keys wait, and Ctrl-C goes to whoever is interrupted by it.
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
    // A terminal that went away says so of whatever is still done to it, to the very end.
    this.#stdin.on('error', () => undefined)
    process.on('SIGCONT', this.#continued)
    // However this process ends, short of being killed, the terminal is left as it was.
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

  /** Gives everything that is typed to `reader`, beginning with what was typed before, until it is released. */
  give(reader: KeyReader): void {
    this.#reader = reader
    if (this.isEnded) reader.ended?.()
    this.#pass()
  }

  release(): void {
    this.#reader = null
  }

  /** While nobody reads: what Ctrl-C does, which also forgets what was typed ahead; null: it waits as a key. */
  interruptWith(interrupt: (() => void) | null): void {
    this.#onInterrupt = interrupt
  }

  readonly #take = (chunk: Buffer | string): void => {
    for (const typed of this.#typed.push(this.#decoder.write(Buffer.from(chunk)))) {
      if (typed.kind === 'paste') this.#waiting.push(typed)
      // One key each where something may be meant by it at once.
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

  /** Ctrl-Z: the whole job is stopped, as the terminal itself would do it. */
  #stop(): void {
    this.#endStopping()
    this.#restore()
    // Where no shell could continue it, a terminal's only program among them, the system does not stop a job.
    this.#stopping = setTimeout(() => this.#raw(), STOPPED_AFTER_MS)
    process.kill(0, 'SIGTSTP')
  }

  #endStopping(): void {
    if (this.#stopping !== null) clearTimeout(this.#stopping)
    this.#stopping = null
  }

  readonly #continued = (): void => {
    this.#endStopping()
    // The mode is remembered as it was set, but a shell has set another meanwhile.
    this.#stdin.setRawMode(false)
    this.#raw()
    this.#reader?.continued?.()
  }

  readonly #ended = (): void => {
    this.isEnded = true
    this.#reader?.ended?.()
  }
}

/** What came from a keyboard: keys, or text that was pasted. */
export type Typed = { kind: 'keys'; text: string } | { kind: 'paste'; text: string }

const PASTE_BEGINS = '\x1b[200~'
const PASTE_ENDS = '\x1b[201~'

/** A paste longer than this is taken as ended: its end may never come. */
const PASTE_MAX_LENGTH = 1_000_000

/**
 * Tells what was pasted from what was typed (bracketed paste), however the input is cut. Where a terminal does not mark
 * a paste, a line end with more behind it in the same piece of input is one: nobody types that fast.
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

  return {
    push(chunk) {
      let text = held + chunk
      held = ''
      const found: Typed[] = []
      while (text !== '') {
        const mark = pasted === null ? PASTE_BEGINS : PASTE_ENDS
        const at = text.indexOf(mark)
        const end = at === -1 ? text.length - heldBack(text, mark) : at
        const before = text.slice(0, end)
        if (pasted === null) found.push(...keys(before))
        else pasted += before
        if (pasted !== null && (at !== -1 || pasted.length > PASTE_MAX_LENGTH)) {
          found.push({ kind: 'paste', text: pasted })
          pasted = null
        } else if (at !== -1) pasted = ''
        if (at === -1) {
          held = text.slice(end)
          break
        }
        text = text.slice(at + mark.length)
      }
      return found
    },
  }
}

/** How much of the end of a text could be the beginning of a mark; outside of a paste a lone escape is a key. */
function heldBack(text: string, mark: string): number {
  const least = mark === PASTE_ENDS ? 1 : 2
  for (let length = Math.min(mark.length - 1, text.length); length >= least; length -= 1) {
    if (text.endsWith(mark.slice(0, length))) return length
  }
  return 0
}
