import { once, getEventListeners } from 'node:events'
import { connect } from 'node:net'
import { getDefaultHighWaterMark } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Socket } from 'node:net'
import { H3 } from 'h3'
import { describe, expect, onTestFinished, test, vi, beforeEach } from 'vitest'
import { openEventStream, orStopped, stopAfter } from '../../../src/server/agent/event-stream.ts'
import type { EventStream } from '../../../src/server/agent/event-stream.ts'
import { respondStream } from '../../../src/server/respond.ts'
import { chat, eventsOf, question, startAgent, textOf } from '../../support/agent.ts'
import { listenLocally } from '../../support/api-client.ts'

const PING_MS = 60_000

interface Served {
  stream: EventStream
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
    const stream = openEventStream({ pingMs: PING_MS, response, onGone: leave })
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
      await stream.send('delta', { text: 'x'.repeat(20_000) })
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
      await Promise.race([stream.send('delta', { text: 'x'.repeat(4_000) }), nextTurn()])
      await nextTurn()
    }
    stream.end('done', { usage: { in: 0, out: 0, cached: 0 } })
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
      void stream.send('delta', { text: 'x'.repeat(4_000) })
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
    stream.end('done', { usage: { in: 0, out: 0, cached: 0 } })
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
    await stream.send('delta', { text })
    stream.end('done', { usage: { in: 1, out: 2, cached: 0 } })
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
  const stream = openEventStream({
    pingMs: 60_000,
    response: undefined,
    onGone: () => undefined,
  })
  await stream.send('delta', { text: 'one' })
  stream.end('error', { error: 'timeout', code: 'total' })
  stream.end('done', { usage: { in: 0, out: 0, cached: 0 } })
  await stream.send('delta', { text: 'two' })
  let text = ''
  for await (const chunk of stream.body) text += String(chunk)
  expect(eventsOf(text)).toEqual([
    { event: 'delta', data: { text: 'one' } },
    { event: 'error', data: { error: 'timeout', code: 'total' } },
  ])
})

const TIME_MS = 1_000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
})

describe('a stop', () => {
  test('ends with its time, and says that it was the time', () => {
    const stop = stopAfter(TIME_MS)
    vi.advanceTimersByTime(TIME_MS - 1)
    expect([stop.signal.aborted, stop.timedOut]).toEqual([false, false])
    vi.advanceTimersByTime(1)
    expect([stop.signal.aborted, stop.timedOut]).toEqual([true, true])
  })

  test('ends before its time when the server stops, and is out of time then', () => {
    const stop = stopAfter(TIME_MS)
    stop.expire()
    expect([stop.signal.aborted, stop.timedOut, stop.cutShort]).toEqual([true, true, true])
  })

  test('ends with the signal behind it, or by hand, and then it was not the time', () => {
    const behind = new AbortController()
    const [followed, byHand] = [stopAfter(TIME_MS, behind.signal), stopAfter(TIME_MS)]
    behind.abort()
    byHand.abort()
    vi.advanceTimersByTime(TIME_MS)
    for (const stop of [followed, byHand, stopAfter(TIME_MS, behind.signal)]) {
      expect([stop.signal.aborted, stop.timedOut]).toEqual([true, false])
    }
  })

  test('that is cancelled follows neither its time nor the signal behind it, and leaves nothing there', () => {
    const behind = new AbortController()
    const stop = stopAfter(TIME_MS, behind.signal)
    expect(getEventListeners(behind.signal, 'abort')).toHaveLength(1)
    stop.cancel()
    expect(getEventListeners(behind.signal, 'abort')).toHaveLength(0)
    expect(vi.getTimerCount()).toBe(0)
    vi.advanceTimersByTime(TIME_MS)
    behind.abort()
    expect([stop.signal.aborted, stop.timedOut]).toEqual([false, false])
    stop.abort()
    expect([stop.signal.aborted, stop.timedOut]).toEqual([true, false])
  })
})

test('who waits for a promise or a stop gets the first of them, and leaves nothing at the signal', async () => {
  const stop = stopAfter(TIME_MS)
  expect(await orStopped(Promise.resolve('come'), stop.signal)).toBe('come')
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0)
  const waiting = orStopped(new Promise(() => undefined), stop.signal)
  vi.advanceTimersByTime(TIME_MS)
  await expect(waiting).rejects.toBe(stop.signal.reason)
  await expect(orStopped(new Promise(() => undefined), stop.signal)).rejects.toBe(stop.signal.reason)
})
