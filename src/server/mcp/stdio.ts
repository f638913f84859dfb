import { Transform } from 'node:stream'
import type { Readable, Writable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { Refusal } from '../../domain/refusal.ts'
import { createToolServer } from './tool-server.ts'
import type { ToolServerPorts } from './tool-server.ts'

/** Most that may wait to be read as messages; a longer line is no message. */
const WAITING_MAX_BYTES = 1024 * 1024

export interface StdioOptions {
  input: Readable
  output: Writable
  /** Ends the connection at once. */
  signal: AbortSignal
  /** Told, in a line, of what was wrong on the connection; never of what stood there. */
  onProblem: (problem: string) => void
}

/**
 * Offers the tools on two streams, one JSON-RPC message a line, and writes nothing else to them. Resolves once the input
 * has ended and every call that was begun is answered, once nobody reads the output any more, or once the signal is
 * aborted.
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
    // The library ends a connection by itself for one reason only, of which it tells as of any other problem before.
    let isTooLong = false
    Object.assign(server, {
      onclose() {
        isTooLong = true
        resolve('too long')
      },
      onerror() {
        queueMicrotask(() => {
          if (!isTooLong) onProblem('a line on standard input was no message that could be answered')
        })
      },
    })
  })
  input.on('error', ({ message }) => onProblem(`standard input cannot be read: ${message}`))
  input.once('close', () => lines.end())
  input.pipe(lines)
  await server.connect(transport)
  const reason = await closed
  // What is still read keeps the process alive.
  input.unpipe(lines)
  if (reason === 'too long') {
    const detail = `a line on standard input has more than ${WAITING_MAX_BYTES} bytes`
    throw new Refusal('input_unreadable', detail)
  }
  if (reason === 'input') {
    // What was read is begun in this turn of the event loop, and what has its result is written in another.
    await nextTurn()
    await settled()
    await nextTurn()
  }
  await server.close()
}

/** What is written to it, ended by a line feed: the library leaves a last line without one unread. */
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
