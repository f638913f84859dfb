import { Readable } from 'node:stream'
import type { AgentEvent, LastEvent } from '../../domain/agent/schema.ts'
import { notesOf } from '../respond.ts'

/** Bytes that may wait for the reader before whoever sends waits too. */
const WAITING_MAX_BYTES = 16 * 1024

/** Longest text of one event, in UTF-16 code units: what waits stays bounded however much a model says at once. */
const TEXT_MAX_LENGTH = 4_096

/** What is asked of the answer's own socket. */
interface Reader {
  readonly writableLength: number
  once(event: 'close', listener: () => void): unknown
}

export interface AnswerStreamOptions {
  /** The longest silence: a comment line is sent as often as this, and after the first event. */
  pingMs: number
  /** The answer's own socket, where there is one. */
  response: Reader | undefined
  /** Called once when the reader is gone before the terminal event. */
  onGone: () => void
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
  #cut = false
  #isBegun = false
  #whenRoom: (() => void) | null = null

  constructor(options: AnswerStreamOptions) {
    const { pingMs, response } = options
    this.#options = options
    this.body = new Readable({ highWaterMark: WAITING_MAX_BYTES, read: () => this.#makeRoom() })
    this.#pings = setInterval(() => this.#ping(), pingMs)
    response?.once('close', () => this.#close())
    this.body.once('close', () => {
      if (this.open || !response) this.#close()
    })
    // A reader that leaves in the middle is no error of ours.
    this.body.on('error', () => undefined)
  }

  /** False once the reader is gone or the terminal event was sent. */
  get open(): boolean {
    return this.#state === 'open'
  }

  /** True when the server cut the connection of a reader, one that took nothing for too long for example. */
  get cut(): boolean {
    return this.#cut
  }

  /** Sends an event at once; resolves when there is room for more, or nobody left to send it to. */
  async send(event: AgentEvent): Promise<void> {
    if (event.event !== 'delta') return this.#write(frameOf(event))
    for (const text of pieces(event.data.text)) await this.#write(frameOf({ event: 'delta', data: { text } }))
  }

  /**
   * Sends the terminal event; nothing follows it, no ping either.
   *
   * @param held the stream ends once this is over
   */
  end(event: LastEvent, held?: Promise<void>): void {
    if (!this.open) return
    void this.#write(frameOf(event))
    this.#state = 'ended'
    clearInterval(this.#pings)
    const finish = (): void => void this.body.push(null)
    if (held) void held.then(finish, finish)
    else finish()
  }

  async #write(frame: string): Promise<void> {
    if (!this.open) return
    // The first event is followed by a ping: a proxy learns at once what kind of answer this is.
    const hasRoom = this.body.push(this.#isBegun ? frame : frame + PING)
    this.#isBegun = true
    if (!hasRoom) await new Promise<void>((resolve) => (this.#whenRoom = resolve))
  }

  #ping(): void {
    const { body } = this
    if (body.readableLength + (this.#options.response?.writableLength ?? 0) === 0) body.push(PING)
  }

  #makeRoom(): void {
    this.#whenRoom?.()
    this.#whenRoom = null
  }

  #close(): void {
    clearInterval(this.#pings)
    if (this.#state === 'closed') return
    const { open } = this
    const { response, onGone } = this.#options
    this.#cut = open && notesOf(response).cut === true
    this.#state = 'closed'
    this.#makeRoom()
    if (open) onGone()
  }
}

const PING = ': ping\n\n'

/** What JSON leaves as it is and some clients end a line at. */
const OTHER_LINE_ENDS = /[\u0085\u2028\u2029]/g

/** The one way an event is written: a name of ours, and JSON, in which no line can break. */
function frameOf({ event, data }: AgentEvent): string {
  const json = JSON.stringify(data).replace(
    OTHER_LINE_ENDS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return `event: ${event}\ndata: ${json}\n\n`
}

/** A text in parts of bounded length, none of which begins in the middle of a character. */
function* pieces(text: string): Generator<string> {
  for (let from = 0; from < text.length;) {
    const to = from + TEXT_MAX_LENGTH
    const end = /[\uDC00-\uDFFF]/.test(text.charAt(to)) ? to + 1 : to
    yield text.slice(from, end)
    from = end
  }
}

/** How a turn ended; `gone` is a reader that left or was cut off. */
export type Ending = { kind: 'done' } | { kind: 'error'; error: string; code: string } | { kind: 'gone' }
