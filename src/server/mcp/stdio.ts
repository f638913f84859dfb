import { Transform } from 'node:stream'
import type { Readable, Writable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { Refusal } from '../../domain/refusal.ts'
import { createToolServer } from './tool-server.ts'
import type { ToolServerPorts } from './tool-server.ts'

/** Longest line, in bytes; a longer one is refused. */
const WAITING_MAX_BYTES = 1024 * 1024

export interface StdioOptions {
  input: Readable
  output: Writable
  /** Ends the connection at once. */
  signal: AbortSignal
  /** Called with a one-line description of a connection problem, without any input. */
  onProblem: (problem: string) => void
}

/**
 * Serves the tools on two streams, one JSON-RPC message per line. Resolves when the input has ended and every started
 * call is answered, when the output is closed, or when the signal is aborted.
 *
 * @throws Refusal `input_unreadable` for a line that is too long
 */
export async function serveStdio(
  ports: ToolServerPorts,
  { input, output, signal, onProblem }: StdioOptions,
): Promise<void> {
  const { server, settled } = createToolServer(ports)
  const lines = terminatedLines()
  const transport = new StdioServerTransport(lines, output, { maxBufferSize: WAITING_MAX_BYTES })
  const closed = new Promise<'input' | 'at once' | 'too long'>((resolve) => {
    for (const event of ['end', 'close']) lines.once(event, () => resolve('input'))
    for (const event of ['error', 'close']) output.once(event, () => resolve('at once'))
    signal.addEventListener('abort', () => resolve('at once'), { once: true })
    if (signal.aborted) resolve('at once')
    // The library closes a connection by itself only after a line that is too long, and reports that as an ordinary error
    // first.
    let isTooLong = false
    Object.assign(server, {
      onclose() {
        isTooLong = true
        resolve('too long')
      },
      onerror() {
        queueMicrotask(() => {
          if (!isTooLong) onProblem('a line on standard input was not a valid message')
        })
      },
    })
  })
  input.on('error', ({ message }) => onProblem(`standard input cannot be read: ${message}`))
  input.once('close', () => lines.end())
  input.pipe(lines)
  await server.connect(transport)
  const reason = await closed
  // A piped input keeps the process alive.
  input.unpipe(lines)
  if (reason === 'too long') {
    const detail = `a line on standard input has more than ${WAITING_MAX_BYTES} bytes`
    throw new Refusal('input_unreadable', detail)
  }
  if (reason === 'input') {
    // Calls that were read start in this turn of the event loop, and their results are written in a later one.
    await nextTurn()
    await settled()
    await nextTurn()
  }
  await server.close()
}

/** A transform that adds a missing final line feed, because the library ignores an unterminated line. */
function terminatedLines(): Transform {
  let endsWithNewline = true
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      endsWithNewline = chunk.at(-1) === 0x0a
      done(null, chunk)
    },
    flush(done) {
      done(null, endsWithNewline ? null : '\n')
    },
  })
}
