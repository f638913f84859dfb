import { Readable } from 'node:stream'
import type { FailureCode, Usage } from '../../domain/agent/model-call.ts'
import type { AgentEvents } from '../../domain/agent/schema.ts'
import { wasCut } from '../respond.ts'

/** Bytes that may wait for the reader before whoever sends waits too. */
const WAITING_MAX_BYTES = 16 * 1024

/** Longest text of one event, in UTF-16 code units: what waits stays bounded however much a model says at once. */
const TEXT_MAX_LENGTH = 4_096

/** What is asked of the answer's own socket. */
interface Reader {
  readonly writableLength: number
  once(event: 'close', listener: () => void): unknown
}

export interface EventStreamOptions {
  /** The longest silence: a comment line is sent as often as this, and after the first event. */
  pingMs: number
  /** The answer's own socket, where there is one. */
  response: Reader | undefined
  /** Called once when the reader is gone before the terminal event. */
  onGone: () => void
}

/** An answer as a stream of server-sent events. */
export interface EventStream {
  body: Readable
  /** False once the reader is gone or the terminal event was sent. */
  readonly open: boolean
  /** True when the server cut the connection of a reader, one that took nothing for too long for example. */
  readonly cut: boolean
  /** Sends an event at once; resolves when there is room for more, or nobody left to send it to. */
  send<Name extends keyof AgentEvents>(name: Name, payload: AgentEvents[Name]): Promise<void>
  /**
   * Sends the terminal event; nothing follows it, no ping either.
   *
   * @param held the stream ends once this is over; without it, at once
   */
  end<Name extends 'done' | 'error'>(name: Name, payload: AgentEvents[Name], held?: Promise<void>): void
}

/**
 * Opens an answer. Pings run from now on, between events only. Bytes that wait here are bounded; the connection of a reader
 * that takes none of them is cut where all connections are (connections.ts).
 */
export function openEventStream({ pingMs, response, onGone }: EventStreamOptions): EventStream {
  let state: 'open' | 'ended' | 'closed' = 'open'
  let cut = false
  let whenRoom: (() => void) | null = null
  const makeRoom = (): void => {
    whenRoom?.()
    whenRoom = null
  }
  const body = new Readable({ highWaterMark: WAITING_MAX_BYTES, read: makeRoom })
  const pings = setInterval(() => {
    if (body.readableLength + (response?.writableLength ?? 0) === 0) write(': ping\n\n')
  }, pingMs)
  const close = (): void => {
    clearInterval(pings)
    if (state === 'closed') return
    const wasOpen = state === 'open'
    cut = wasOpen && response !== undefined && wasCut(response)
    state = 'closed'
    makeRoom()
    if (wasOpen) onGone()
  }
  response?.once('close', close)
  body.once('close', () => {
    if (state === 'open' || !response) close()
  })
  // A reader that leaves in the middle is no error of ours.
  body.on('error', () => undefined)

  const write = (text: string): boolean => {
    if (state !== 'open') return true
    return body.push(text)
  }
  let begun = false
  const send = async (frame: string): Promise<void> => {
    // The first event is followed by a ping: a proxy learns at once what kind of answer this is.
    const hasRoom = write(begun ? frame : `${frame}: ping\n\n`)
    begun = true
    if (hasRoom || state !== 'open') return
    await new Promise<void>((resolve) => (whenRoom = resolve))
  }
  return {
    body,
    get open() {
      return state === 'open'
    },
    get cut() {
      return cut
    },
    async send(name, payload) {
      if (!('text' in payload)) return send(frameOf(name, payload))
      for (const text of pieces(payload.text)) await send(frameOf(name, { text }))
    },
    end(name, payload, held) {
      if (state !== 'open') return
      write(frameOf(name, payload))
      state = 'ended'
      clearInterval(pings)
      const finish = (): void => void body.push(null)
      if (held) void held.then(finish, finish)
      else finish()
    },
  }
}

/** What JSON leaves as it is and some clients end a line at. */
const OTHER_LINE_ENDS = /[\u0085\u2028\u2029]/g

/** The one way an event is written: a name of ours, and JSON, in which no line can break. */
function frameOf(name: keyof AgentEvents, payload: object): string {
  const json = JSON.stringify(payload).replace(OTHER_LINE_ENDS, escaped)
  return `event: ${name}\ndata: ${json}\n\n`
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** A text in parts of bounded length, none of which begins in the middle of a character. */
function pieces(text: string): string[] {
  const parts = []
  for (let from = 0; from < text.length;) {
    const to = from + TEXT_MAX_LENGTH
    const end = isLowSurrogate(text.charCodeAt(to)) ? to + 1 : to
    parts.push(text.slice(from, end))
    from = end
  }
  return parts
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}

/** A signal with a time of its own, and an end to it. */
export interface Stop {
  signal: AbortSignal
  /** True when it was the time that ended it, or {@link Stop.expire}. */
  readonly timedOut: boolean
  /** True when {@link Stop.expire} ended it. */
  readonly cutShort: boolean
  /** Stops now. */
  abort(): void
  /** Stops now, as if the time were over: the server ends. */
  expire(): void
  /** Neither the time nor the signal behind it matters any more. */
  cancel(): void
}

/**
 * A signal that is aborted after a time, with the one behind it, or by hand. The runtime's own such signals may be
 * collected before they fire.
 *
 * @param behind aborts this one too
 */
export function stopAfter(afterMs: number, behind?: AbortSignal): Stop {
  const controller = new AbortController()
  let timedOut = false
  let cutShort = false
  const abort = (): void => controller.abort()
  const end = (): void => {
    timedOut ||= !controller.signal.aborted
    abort()
  }
  const timer = setTimeout(end, afterMs)
  behind?.addEventListener('abort', abort, { once: true })
  if (behind?.aborted) abort()
  return {
    signal: controller.signal,
    get timedOut() {
      return timedOut
    },
    get cutShort() {
      return cutShort
    },
    abort,
    expire() {
      cutShort = !controller.signal.aborted
      end()
    },
    cancel() {
      clearTimeout(timer)
      behind?.removeEventListener('abort', abort)
    },
  }
}

/** What a promise comes to, or the signal's reason as soon as it is aborted, whatever the promise does then. */
export async function orStopped<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let give: () => void = () => undefined
  const stopped = new Promise<never>((_resolve, reject) => {
    give = () => reject(signal.reason as Error)
    signal.addEventListener('abort', give, { once: true })
  })
  if (signal.aborted) give()
  try {
    return await Promise.race([promise, stopped])
  } finally {
    signal.removeEventListener('abort', give)
  }
}

/** How a turn ended; `gone` is a reader that left or was cut off. */
export type Ending =
  | { kind: 'done'; usage: Usage; cached?: true; degraded?: true }
  | ({ kind: 'error' } & FailureCode)
  | { kind: 'gone' }
