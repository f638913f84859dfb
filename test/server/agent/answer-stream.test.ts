import { getEventListeners, once } from 'node:events'
import { connect } from 'node:net'
import { getDefaultHighWaterMark } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Socket } from 'node:net'
import { H3 } from 'h3'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { AnswerStream } from '../../../src/server/agent/answer-stream.ts'
import type { AgentEvent, LastEvent } from '../../../src/domain/agent/schema.ts'
import { respondStream } from '../../../src/server/respond.ts'
import { abortable } from '../../../src/server/single-flight.ts'
import { chat, eventsOf, chatBody, startAgent } from '../../support/agent.ts'
import { listenLocally } from '../../support/api-client.ts'

const PING_MS = 60_000

const delta = (text: string): AgentEvent => ({ event: 'delta', data: { text } })
const DONE: LastEvent = { event: 'done', data: { usage: { in: 0, out: 0, cached: 0 } } }
const ERROR: LastEvent = { event: 'error', data: { error: 'timeout', code: 'total' } }

interface Served {
  stream: AnswerStream
  /** Bytes that wait in this process. */
  waiting(): number
  disconnected: Promise<void>
}

/** A server with one stream, and a connection that has requested it. */
async function served(unreadMs: number): Promise<{ client: Socket; served: Promise<Served> }> {
  let give: (value: Served) => void = () => undefined
  const opened = new Promise<Served>((resolve) => (give = resolve))
  const app = new H3({ silent: true })
  app.get('/', (event) => {
    const socket = event.runtime?.node?.res
    let leave: () => void = () => undefined
    const disconnected = new Promise<void>((resolve) => (leave = resolve))
    const stream = new AnswerStream({ pingMs: PING_MS, socket, onDisconnect: leave })
    const waiting = (): number => stream.body.readableLength + (socket?.writableLength ?? 0)
    give({ stream, waiting, disconnected })
    return respondStream(event, {}, stream.body)
  })
  const server = await listenLocally(app, { bounds: { unreadMs } })
  const client = connect(server.port, '127.0.0.1')
  client.on('error', () => undefined)
  client.write('GET / HTTP/1.0\r\nHost: x\r\n\r\n')
  return { client, served: opened }
}

describe('a reader', () => {
  test('a client that reads nothing is cut off after its time, with a bounded buffer', async () => {
    const { client, served: opened } = await served(150)
    const { stream, waiting, disconnected } = await opened
    client.pause()
    let sent = 0
    let most = 0
    while (stream.isOpen) {
      await stream.send(delta('x'.repeat(20_000)))
      sent += 20_000
      most = Math.max(most, waiting())
    }
    await disconnected
    expect(sent).toBeLessThan(64 * 1024 * 1024)
    // Here and in the runtime's own buffer, which grew from 16 to 64 KiB with Node 22.
    expect(most).toBeLessThan(48 * 1024 + getDefaultHighWaterMark(false))
    client.destroy()
  })

  test('a client gets no pings while bytes are pending, and one when none are', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { client, served: opened } = await served(PING_MS * 100)
    const { stream, waiting } = await opened
    client.pause()
    // More than the runtime itself holds: the system takes nothing any more.
    while (waiting() < 64 * 1024) {
      void stream.send(delta('x'.repeat(4_000)))
      await nextTurn()
    }
    const before = waiting()
    vi.advanceTimersByTime(PING_MS * 10)
    expect(waiting()).toBe(before)
    let answer = ''
    client.on('data', (chunk: Buffer) => (answer += chunk.toString()))
    client.resume()
    while (waiting() > 0) await nextTurn()
    vi.advanceTimersByTime(PING_MS)
    stream.end(DONE)
    await once(client, 'close')
    // The first is that behind the first event.
    expect(answer.match(/^: ping$/gm)).toHaveLength(2)
    expect(answer).toMatch(/\n\n: ping\n\nevent: done\n.*\n\n$/)
  })
})

test('a turn whose client reads nothing is settled, and the log line of the cut connection names its request', async () => {
  const text = 'x'.repeat(32 * 1024 * 1024)
  const server = await startAgent({
    bounds: { unreadMs: 150 },
    ports: {
      cache: { get: () => Promise.resolve({ text, storedAt: Date.now() }), put: () => Promise.resolve() },
    },
  })
  const unread = await chat(server, chatBody('What is new?'))
  await server.settled()
  const [turn] = server.turns()
  expect(turn).toMatchObject({ source: 'cache', terminal: 'gone', costMicroUsd: 0 })
  expect(server.lines).toContainEqual({
    level: 'warn',
    fields: { requestId: turn?.['requestId'], code: 'unread' },
    message: 'connection cut',
  })
  expect(await server.spending()).toEqual({ settled: 0, reserved: 0 })
  await expect(unread.text()).rejects.toThrow()
})

test('nothing follows the terminal event', async () => {
  const stream = new AnswerStream({ pingMs: 60_000, socket: undefined, onDisconnect: () => undefined })
  await stream.send(delta('one'))
  stream.end(ERROR)
  stream.end(DONE)
  await stream.send(delta('two'))
  let text = ''
  for await (const chunk of stream.body) text += String(chunk)
  expect(eventsOf(text)).toEqual([delta('one'), ERROR])
})

test('an abortable promise is awaited until the signal is aborted, and no listener stays', async () => {
  const stop = new AbortController()
  expect(await abortable(Promise.resolve('come'), stop.signal)).toBe('come')
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0)
  const waiting = abortable(new Promise(() => undefined), stop.signal)
  stop.abort()
  await expect(waiting).rejects.toBe(stop.signal.reason)
  await expect(abortable(new Promise(() => undefined), stop.signal)).rejects.toBe(stop.signal.reason)
})
