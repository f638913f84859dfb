import { Readable } from 'node:stream'
import type { H3Event } from 'h3'
import type { AgentEvent, LastEvent } from '../../domain/agent/schema.ts'
import { STREAM_BUFFER_MAX_BYTES, respondStream } from '../respond.ts'

/** Longest text of one event, in UTF-16 code units; it bounds the buffer when a model sends a large delta. */
const DELTA_MAX_LENGTH = 4_096

/** The part of the response's socket that the stream uses. */
interface ResponseSocket {
  readonly writableLength: number
  once(event: 'close', listener: () => void): unknown
}

/** The response of a turn: a stream of its events, or one document. */
export interface AnswerOutput {
  /** False after the client disconnected or the terminal event was sent. */
  readonly isOpen: boolean
  /** Sends an event; resolves when the output can take more or the client is gone. */
  send(event: AgentEvent): Promise<void>
  /** Sends the terminal event, which ends the response. */
  end(event: LastEvent): void
  /** @param headers of every response to this caller */
  respond(event: H3Event, headers: Readonly<Record<string, string>>): Response | Promise<Response>
}

/** Opens the output of an admitted turn. @param turn id of the turn */
export type OpenOutput = (options: AnswerStreamOptions, turn: string) => AnswerOutput

/** Serialises an event of a stream; empty if the form has no record for it. */
export type FrameEvent = (event: AgentEvent) => string

export interface AnswerStreamOptions {
  /** Interval of comment lines, in milliseconds; one also follows the first event. */
  pingMs: number
  socket: ResponseSocket | undefined
  /** Called once if the client disconnects before the terminal event. */
  onDisconnect: () => void
}

/**
 * An answer as a stream of server-sent events, with pings between them. The buffer is bounded; `connections.ts` cuts the
 * connection of a client that stops reading.
 */
export class AnswerStream implements AnswerOutput {
  readonly body: Readable
  readonly #options: AnswerStreamOptions
  readonly #frame: FrameEvent
  readonly #pings: NodeJS.Timeout
  #isOpen = true
  #isStarted = false
  #onDrain: (() => void) | null = null

  constructor(options: AnswerStreamOptions, frame: FrameEvent = frameOf) {
    const { pingMs, socket } = options
    this.#options = options
    this.#frame = frame
    this.body = new Readable({ highWaterMark: STREAM_BUFFER_MAX_BYTES, read: () => this.#drain() })
    this.#pings = setInterval(() => this.#ping(), pingMs)
    socket?.once('close', () => this.#close())
    this.body.once('close', () => {
      if (this.isOpen || !socket) this.#close()
    })
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  async send(event: AgentEvent): Promise<void> {
    if (event.event !== 'delta') return this.#write(this.#frame(event))
    for (const text of chunksOf(event.data.text))
      await this.#write(this.#frame({ event: 'delta', data: { text } }))
  }

  /** Nothing follows the terminal event, not even a ping. */
  end(event: LastEvent): void {
    if (!this.isOpen) return
    void this.#write(this.#frame(event))
    this.#isOpen = false
    clearInterval(this.#pings)
    this.body.push(null)
  }

  respond(event: H3Event, headers: Readonly<Record<string, string>>): Response {
    return respondStream(event, headers, this.body)
  }

  async #write(frame: string): Promise<void> {
    if (!this.isOpen || frame === '') return
    // A ping follows the first event so that a proxy flushes the stream at once.
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
    this.#drain()
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#options.onDisconnect()
  }
}

const PING = ': ping\n\n'

/** Characters that JSON does not escape and some clients treat as line ends. */
const UNICODE_LINE_ENDS = /[\u0085\u2028\u2029]/g

/** Serialises an event: its name, and data as JSON without line breaks. */
function frameOf({ event, data }: AgentEvent): string {
  return `event: ${event}\n${dataFrame(data)}`
}

/** Serialises a record of a stream that has only data, as JSON without line breaks. */
export function dataFrame(data: unknown): string {
  const json = JSON.stringify(data).replace(
    UNICODE_LINE_ENDS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return `data: ${json}\n\n`
}

/** Splits a text into parts of bounded length without splitting a character. */
function* chunksOf(text: string): Generator<string> {
  for (let from = 0; from < text.length;) {
    const to = from + DELTA_MAX_LENGTH
    const end = /[\uDC00-\uDFFF]/.test(text.charAt(to)) ? to + 1 : to
    yield text.slice(from, end)
    from = end
  }
}

/** Outcome of a turn; `gone` means that the client disconnected or was cut off. */
export type TurnOutcome = { kind: 'done' } | { kind: 'error'; error: string; code: string } | { kind: 'gone' }
