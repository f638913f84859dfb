import { EventEmitter, getEventListeners } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { AnswerStream } from '../../../src/server/agent/answer-stream.ts'
import type { AgentEvent, LastEvent } from '../../../src/domain/agent/schema.ts'
import { abortable } from '../../../src/server/single-flight.ts'
import { chat, eventsOf, chatBody, startAgent } from '../../support/agent.ts'

const PING_MS = 60_000

const delta = (text: string): AgentEvent => ({ event: 'delta', data: { text } })
const DONE: LastEvent = { event: 'done', data: { usage: { in: 0, out: 0, cached: 0 } } }
const ERROR: LastEvent = { event: 'error', data: { error: 'timeout', code: 'total' } }

/** A stream with its socket, the bytes that its reader has taken, and how often its client has left. */
function open() {
  const seen = { text: '', left: 0 }
  const socket = Object.assign(new EventEmitter(), { writableLength: 0 })
  const stream = new AnswerStream({ pingMs: PING_MS, socket, onDisconnect: () => void (seen.left += 1) })
  const read = (): unknown => stream.body.on('data', (chunk) => (seen.text += String(chunk)))
  return { stream, socket, seen, read }
}

test('a sender waits for its reader with a bounded buffer, until the client leaves', async () => {
  const { stream, socket, seen } = open()
  let sent = 0
  const sending = (async () => {
    for (; stream.isOpen; sent += 20_000) await stream.send(delta('x'.repeat(20_000)))
  })()
  for (let turn = 0; turn < 100; turn += 1) await nextTurn()
  expect([sent, stream.isOpen, stream.body.readableLength < 48 * 1024]).toEqual([0, true, true])
  socket.emit('close')
  await sending
  expect([stream.isOpen, seen.left]).toEqual([false, 1])
})

test('a stream has a ping after its first event, and further ones while no bytes are pending, until its end', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const { stream, socket, seen, read } = open()
  await stream.send(delta('one'))
  vi.advanceTimersByTime(PING_MS * 10)
  read()
  await nextTurn()
  socket.writableLength = 1
  vi.advanceTimersByTime(PING_MS * 10)
  socket.writableLength = 0
  vi.advanceTimersByTime(PING_MS)
  await nextTurn()
  stream.end(DONE)
  vi.advanceTimersByTime(PING_MS)
  await nextTurn()
  expect(seen.text).toMatch(/^event: delta\n.*\n\n: ping\n\n: ping\n\nevent: done\n.*\n\n$/)
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

test('nothing follows the terminal event, and long text is sent in parts', async () => {
  const { stream, socket, seen, read } = open()
  read()
  await stream.send(delta(`${'x'.repeat(4_095)}👍\u2028`))
  stream.end(ERROR)
  stream.end(DONE)
  await stream.send(delta('two'))
  socket.emit('close')
  await nextTurn()
  expect(eventsOf(seen.text)).toEqual([delta(`${'x'.repeat(4_095)}👍`), delta('\u2028'), ERROR])
  expect([seen.text.includes('\u2028'), seen.left]).toEqual([false, 0])
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
