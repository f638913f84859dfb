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
import { chat, eventsOf, question, startAgent, textOf } from '../../support/agent.ts'
import { listenLocally } from '../../support/api-client.ts'

const PING_MS = 60_000

const delta = (text: string): AgentEvent => ({ event: 'delta', data: { text } })
const DONE: LastEvent = { event: 'done', data: { usage: { in: 0, out: 0, cached: 0 } } }
const ERROR: LastEvent = { event: 'error', data: { error: 'timeout', code: 'total' } }

interface Served {
  stream: AnswerStream
  /** Bytes that wait in this process. */
  waiting(): number
  gone: Promise<void>
  /** The connection is. */
  closed: Promise<unknown>
}

/** A server with one stream, and a connection that has asked for it. */
async function served(unreadMs: number): Promise<{ client: Socket; served: Promise<Served> }> {
  let give: (value: Served) => void = () => undefined
  const opened = new Promise<Served>((resolve) => (give = resolve))
  const app = new H3({ silent: true })
  app.get('/', (event) => {
    const response = event.runtime?.node?.res
    let leave: () => void = () => undefined
    const gone = new Promise<void>((resolve) => (leave = resolve))
    const stream = new AnswerStream({ pingMs: PING_MS, response, onGone: leave })
    const waiting = (): number => stream.body.readableLength + (response?.writableLength ?? 0)
    const closed = new Promise((resolve) => response?.once('close', resolve))
    give({ stream, waiting, gone, closed })
    return respondStream(event, {}, stream.body)
  })
  const server = await listenLocally(app, { bounds: { unreadMs } })
  const client = connect(server.port, '127.0.0.1')
  client.on('error', () => undefined)
  client.write('GET / HTTP/1.0\r\nHost: x\r\n\r\n')
  return { client, served: opened }
}

describe('a reader', () => {
  test('that takes nothing is cut off after its time, with little waiting meanwhile', async () => {
    const { client, served: opened } = await served(150)
    const { stream, waiting, gone } = await opened
    client.pause()
    let sent = 0
    let most = 0
    while (stream.open) {
      await stream.send(delta('x'.repeat(20_000)))
      sent += 20_000
      most = Math.max(most, waiting())
    }
    await gone
    expect(stream.cut).toBe(true)
    expect(sent).toBeLessThan(64 * 1024 * 1024)
    // Here and in the runtime's own buffer, which grew from 16 to 64 KiB with Node 22.
    expect(most).toBeLessThan(48 * 1024 + getDefaultHighWaterMark(false))
    client.destroy()
  })

  test('that takes nothing of the end is cut off too', async () => {
    const { client, served: opened } = await served(150)
    const { stream, waiting, closed } = await opened
    client.pause()
    while (stream.open && waiting() === 0) {
      await Promise.race([stream.send(delta('x'.repeat(4_000))), nextTurn()])
      await nextTurn()
    }
    stream.end(DONE)
    expect(waiting()).toBeGreaterThan(0)
    await closed
    client.destroy()
  })

  test('gets no pings while bytes wait for it, and one when none do', async () => {
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

  test('that is slow gets everything', async () => {
    const { client, served: opened } = await served(60_000)
    const { stream } = await opened
    const chunks: Buffer[] = []
    client.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      client.pause()
      setImmediate(() => client.resume())
    })
    const text = 'Да 👩‍🚀 é "\\\n\r\u2028 '.repeat(100_000)
    await stream.send(delta(text))
    stream.end(DONE)
    await once(client, 'close')
    const answer = Buffer.concat(chunks).toString()
    const events = eventsOf(answer.slice(answer.indexOf('\r\n\r\n') + 4))
    expect(textOf(events)).toBe(text)
    expect(events.every((each) => each.event !== 'delta' || each.data.text.isWellFormed())).toBe(true)
    expect(events.at(-1)?.event).toBe('done')
  })
})

test('a turn whose reader takes nothing is settled, and its line says that the reader was cut', async () => {
  const text = 'x'.repeat(32 * 1024 * 1024)
  const server = await startAgent({
    bounds: { unreadMs: 150 },
    ports: {
      cache: { get: () => Promise.resolve({ text, storedAt: Date.now() }), put: () => Promise.resolve() },
    },
  })
  const unread = await chat(server, question('What is new?'))
  await server.settled()
  expect(server.turns()).toMatchObject([{ source: 'cache', terminal: 'gone', cut: true, costMicroUsd: 0 }])
  expect(await server.spending()).toEqual({ settled: 0, reserved: 0 })
  await expect(unread.text()).rejects.toThrow()
})

test('nothing follows the terminal event', async () => {
  const stream = new AnswerStream({ pingMs: 60_000, response: undefined, onGone: () => undefined })
  await stream.send(delta('one'))
  stream.end(ERROR)
  stream.end(DONE)
  await stream.send(delta('two'))
  let text = ''
  for await (const chunk of stream.body) text += String(chunk)
  expect(eventsOf(text)).toEqual([delta('one'), ERROR])
})

test('a promise is waited for until the signal is aborted, and nothing stays at the signal', async () => {
  const stop = new AbortController()
  expect(await abortable(Promise.resolve('come'), stop.signal)).toBe('come')
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0)
  const waiting = abortable(new Promise(() => undefined), stop.signal)
  stop.abort()
  await expect(waiting).rejects.toBe(stop.signal.reason)
  await expect(abortable(new Promise(() => undefined), stop.signal)).rejects.toBe(stop.signal.reason)
})
