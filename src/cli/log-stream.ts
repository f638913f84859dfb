import { write } from 'node:fs'

/** Log lines waiting to be written; beyond it new ones are dropped. */
const WAITING_MAX_BYTES = 1024 * 1024

/** How long a reader that is not ready is waited for before its turn comes again. */
const RETRY_MS = 50

/** Where log lines go. */
export interface LogStream {
  write(line: string): void
  /** Resolves when the waiting lines are written, or after `withinMs`. */
  flush(withinMs: number): Promise<void>
}

/**
 * Writes log lines to a descriptor without ever waiting for it or failing with it: a log that cannot be written (a full
 * disk, a reader that went away or stands still) costs its lines, never the server.
 */
export function logStream(descriptor: number): LogStream {
  let waiting = ''
  let writing = false
  let whenIdle: () => void = () => undefined

  const next = (): void => {
    if (writing) return
    if (waiting === '') {
      whenIdle()
      return
    }
    const chunk = Buffer.from(waiting)
    waiting = ''
    writing = true
    send(chunk)
  }
  const send = (chunk: Buffer): void => {
    write(descriptor, chunk, (error, written) => {
      if (error?.code === 'EAGAIN') {
        setTimeout(send, RETRY_MS, chunk).unref()
      } else if (!error && written < chunk.byteLength) {
        send(chunk.subarray(written))
      } else {
        writing = false
        next()
      }
    })
  }

  return {
    write(line) {
      if (waiting.length < WAITING_MAX_BYTES) waiting += line
      next()
    },
    flush: (withinMs) =>
      new Promise((resolve) => {
        whenIdle = resolve
        setTimeout(resolve, withinMs).unref()
        next()
      }),
  }
}
