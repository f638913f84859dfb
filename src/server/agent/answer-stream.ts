import { Readable } from 'node:stream'
import type { AgentEvent, LastEvent } from '../../domain/agent/schema.ts'
import { notesOf } from '../respond.ts'

/** Bytes that may wait for the reader before whoever sends waits too. */
const BUFFER_MAX_BYTES = 16 * 1024

/** Longest text of one event, in UTF-16 code units: what waits stays bounded however much a model says at once. */
const DELTA_MAX_LENGTH = 4_096

/** What is asked of the answer's own socket. */
interface ResponseSocket {
  readonly writableLength: number
  once(event: 'close', listener: () => void): unknown
}

export interface AnswerStreamOptions {
  /** The longest silence: a comment line is sent as often as this, and after the first event. */
  pingMs: number
  /** The answer's own socket, where there is one. */
  socket: ResponseSocket | undefined
  /** Called once when the reader is gone before the terminal event. */
  onDisconnect: () => void
}

/**
 * An answer as a stream of server-sent events. Pings run from its beginning on, between events only. Bytes that wait here
 * are bounded; the connection of a reader that takes none of them is cut where all connections are (connections.ts).
 */
export class AnswerStream {
  readonly body: Readable
  readonly #options: AnswerStreamOptions
  readonly #pings: NodeJS.Timeout
  #state: 'open' | 'ended' | 'closed' = 'open'
  #wasCut = false
  #isStarted = false
  #onDrain: (() => void) | null = null

  constructor(options: AnswerStreamOptions) {
    const { pingMs, socket } = options
    this.#options = options
    this.body = new Readable({ highWaterMark: BUFFER_MAX_BYTES, read: () => this.#drain() })
    this.#pings = setInterval(() => this.#ping(), pingMs)
    socket?.once('close', () => this.#close())
    this.body.once('close', () => {
      if (this.isOpen || !socket) this.#close()
    })
    // A reader that leaves in the middle is no error of ours.
    this.body.on('error', () => undefined)
  }

  /** False once the reader is gone or the terminal event was sent. */
  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** True when the server cut the connection of a reader, one that took nothing for too long for example. */
  get wasCut(): boolean {
    return this.#wasCut
  }

  /** Sends an event at once; resolves when there is room for more, or nobody left to send it to. */
  async send(event: AgentEvent): Promise<void> {
    if (event.event !== 'delta') return this.#write(frameOf(event))
    for (const text of chunksOf(event.data.text))
      await this.#write(frameOf({ event: 'delta', data: { text } }))
  }

  /**
   * Sends the terminal event; nothing follows it, no ping either.
   *
   * @param heldUntil the stream ends once this is over
   */
  end(event: LastEvent, heldUntil?: Promise<void>): void {
    if (!this.isOpen) return
    void this.#write(frameOf(event))
    this.#state = 'ended'
    clearInterval(this.#pings)
    const finish = (): void => void this.body.push(null)
    if (heldUntil) void heldUntil.then(finish, finish)
    else finish()
  }

  async #write(frame: string): Promise<void> {
    if (!this.isOpen) return
    // The first event is followed by a ping: a proxy learns at once what kind of answer this is.
    const canTakeMore = this.body.push(this.#isStarted ? frame : frame + PING)
    this.#isStarted = true
    if (!canTakeMore) await new Promise<void>((resolve) => (this.#onDrain = resolve))
  }

  #ping(): void {
    const { body } = this
    if (body.readableLength + (this.#options.socket?.writableLength ?? 0) === 0) body.push(PING)
  }

  #drain(): void {
    this.#onDrain?.()
    this.#onDrain = null
  }

  #close(): void {
    clearInterval(this.#pings)
    if (this.#state === 'closed') return
    const { isOpen } = this
    const { socket, onDisconnect } = this.#options
    this.#wasCut = isOpen && notesOf(socket).cut === true
    this.#state = 'closed'
    this.#drain()
    if (isOpen) onDisconnect()
  }
}

const PING = ': ping\n\n'

/** What JSON leaves as it is and some clients end a line at. */
const UNICODE_LINE_ENDS = /[\u0085\u2028\u2029]/g

/** The one way an event is written: a name of ours, and JSON, in which no line can break. */
function frameOf({ event, data }: AgentEvent): string {
  const json = JSON.stringify(data).replace(
    UNICODE_LINE_ENDS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return `event: ${event}\ndata: ${json}\n\n`
}

/** A text in parts of bounded length, none of which begins in the middle of a character. */
function* chunksOf(text: string): Generator<string> {
  for (let from = 0; from < text.length;) {
    const to = from + DELTA_MAX_LENGTH
    const end = /[\uDC00-\uDFFF]/.test(text.charAt(to)) ? to + 1 : to
    yield text.slice(from, end)
    from = end
  }
}

/** How a turn ended; `gone` is a reader that left or was cut off. */
export type TurnOutcome = { kind: 'done' } | { kind: 'error'; error: string; code: string } | { kind: 'gone' }
