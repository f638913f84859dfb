import { addAbortSignal } from 'node:stream'
import type { Readable, Writable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { networkReason, Refusal } from '../../domain/refusal.ts'
import { createToolServer, readMessage } from './tool-server.ts'
import type { ToolServerPorts } from './tool-server.ts'

/** Longest line, in bytes; a longer one is refused. */
const LINE_MAX_BYTES = 1024 * 1024

export interface StdioOptions {
  input: Readable
  output: Writable
  /** Ends the connection at once. */
  signal: AbortSignal
  /** Called with a one-line description of a connection problem, without any input. */
  onProblem: (problem: string) => void
}

/**
 * Serves the tools on two streams, one JSON-RPC message per line. A line that is no message gets an error as its answer.
 * Resolves when the input has ended and every started call is answered, when the output is closed, or when the signal is
 * aborted.
 *
 * @throws Refusal `input_unreadable` for a line that is too long
 */
export async function serveStdio(
  ports: ToolServerPorts,
  { input, output, signal, onProblem }: StdioOptions,
): Promise<void> {
  const closed = new AbortController()
  for (const event of ['error', 'close']) output.once(event, () => closed.abort())
  const ended = AbortSignal.any([signal, closed.signal])
  const { server, settled } = createToolServer(ports)
  const write = (message: object): void => void output.write(`${JSON.stringify(message)}\n`)
  const transport: Transport = {
    start: () => Promise.resolve(),
    send: (message) => Promise.resolve(write(message)),
    close: () => Promise.resolve(transport.onclose?.()),
  }
  await server.connect(transport)
  try {
    for await (const line of linesOf(addAbortSignal(ended, input))) {
      const read = readMessage(line)
      if ('message' in read) transport.onmessage?.(read.message)
      else {
        onProblem('a line on standard input was not a valid message')
        write({ jsonrpc: '2.0', ...read })
      }
    }
  } catch (error) {
    if (error instanceof Refusal) throw error
    if (!ended.aborted) onProblem(`standard input cannot be read: ${networkReason(error)}`)
  } finally {
    if (!ended.aborted) {
      // Calls that were read start in this turn of the event loop, and their results are written in a later one.
      await nextTurn()
      await settled()
      await nextTurn()
    }
    await server.close()
  }
}

/** Yields the lines that have a text, without their ends and a byte order mark at the start. */
async function* linesOf(input: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let waiting = Buffer.alloc(0)
  const decoder = new TextDecoder()
  for await (const chunk of input) {
    waiting = Buffer.concat([waiting, chunk])
    for (let end = waiting.indexOf(0x0a); end >= 0; end = waiting.indexOf(0x0a)) {
      const line = decoder.decode(waiting.subarray(0, end)).trim()
      waiting = waiting.subarray(end + 1)
      if (line !== '') yield line
    }
    if (waiting.byteLength > LINE_MAX_BYTES)
      throw new Refusal('input_unreadable', `a line on standard input has more than ${LINE_MAX_BYTES} bytes`)
  }
  const last = decoder.decode(waiting).trim()
  if (last !== '') yield last
}
