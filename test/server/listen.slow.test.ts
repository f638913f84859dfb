import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { H3 } from 'h3'
import { describe, expect, test } from 'vitest'
import { respondText } from '../../src/server/respond.ts'
import { openApp, listenLocally, silentLog } from '../support/api-client.ts'
import { openWorkspace } from '../support/workspace.ts'

/** Everything the server sends until it closes the connection. */
async function received(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  socket.on('error', () => undefined)
  await once(socket, 'close')
  return text
}

function slowApp(): { app: H3; release: () => void; started: Promise<void> } {
  const app = new H3()
  let release: () => void = () => undefined
  let start: () => void = () => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const started = new Promise<void>((resolve) => (start = resolve))
  app.get('/slow', async (event) => {
    start()
    await released
    return respondText(event, 200, {}, 'text/plain', 'finished')
  })
  app.get('/', (event) => respondText(event, 200, {}, 'text/plain', 'here'))
  return { app, release: () => release(), started }
}

test('a taken port is refused by number, and no other port is used', async () => {
  const { port } = await listenLocally(new H3())
  await expect(listenLocally(new H3(), { port })).rejects.toMatchObject({
    code: 'port_taken',
    message: expect.stringContaining(String(port)),
  })
})

test.each([
  ['a port that browsers block', { port: 6000 }],
  ['a port of a foreign address', { host: '192.0.2.1' }],
])('%s is refused, and not silently replaced by another', async (_what, place) => {
  await expect(listenLocally(new H3(), place)).rejects.toMatchObject({ code: 'address_unavailable' })
})

test('a name that listhen does not accept stands for its address alone', async () => {
  const host = `0x${'0'.repeat(60)}7f000001`
  const { port } = await listenLocally(new H3(), { host })
  expect((await fetch(`http://127.0.0.1:${port}`)).status).toBe(404)
  await expect(fetch(`http://127.0.0.2:${port}`)).rejects.toThrow()
})

describe('closing', () => {
  test('closing lets an open response finish and ends its keep-alive connection then, refuses new connections, and ends idle ones', async () => {
    const { app, release, started } = slowApp()
    const server = await listenLocally(app)
    const idle = connect(server.port, '127.0.0.1')
    await once(idle, 'connect')
    idle.resume()
    const idleClosed = once(idle, 'close')
    const socket = connect(server.port, '127.0.0.1')
    const response = received(socket)
    socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n')
    await started
    const closed = server.close(60_000)
    await idleClosed
    await expect(fetch(server.url)).rejects.toThrow()
    release()
    expect(await response).toContain('finished')
    await closed
  }, 4_000)

  test.each([
    ['within its time', 20_000],
    ['after its time, once open responses are ended', 1],
  ])('closing lets a slow client read a whole finished response %s', async (_when, graceMs) => {
    const body = 'x'.repeat(8 * 1024 * 1024)
    const app = new H3()
    app.get('/', (event) => respondText(event, 200, {}, 'text/plain', body))
    const server = await listenLocally(app)
    const socket = connect(server.port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    let bytes = 0
    await once(socket, 'readable')
    socket.pause()
    const closed = server.close(graceMs, () => Promise.resolve())
    await new Promise((resolve) => setImmediate(resolve))
    socket.on('data', (chunk: Buffer) => (bytes += chunk.byteLength))
    socket.resume()
    await once(socket, 'end')
    await closed
    expect(bytes).toBeGreaterThan(body.length)
  })

  test('closing cuts open connections after its time', async () => {
    const { app, started } = slowApp()
    const server = await listenLocally(app)
    const response = expect(fetch(`${server.url}/slow`)).rejects.toThrow()
    await started
    await server.close(20)
    await response
  })

  test('a draining server sends Connection: close to keep-alive clients', async () => {
    const { url } = await listenLocally(slowApp().app, { isDraining: () => true })
    expect((await fetch(url)).headers.get('connection')).toBe('close')
  })
})

/** An application that reads bodies. */
const readingApp = (): H3 =>
  new H3({ silent: true }).all('/', async (event) =>
    respondText(event, 200, {}, 'text/plain', await event.req.text()),
  )

test.each([
  ['headers', 'GET / HTTP/1.1\r\nHost: x\r\n', /^HTTP\/1.1 408 /],
  ['body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nab', /^(?!HTTP\/1.1 200)/],
])('a client that sends its %s too slowly is cut off', async (part, sent, expected) => {
  const requestTimeoutMs = part === 'headers' ? 60_000 : 50
  const server = await listenLocally(readingApp(), { headersTimeoutMs: 50, requestTimeoutMs })
  const socket = connect(server.port, '127.0.0.1')
  socket.write(sent)
  expect(await received(socket)).toMatch(expected)
})

describe('an unexpected body', () => {
  test.each([
    ['chunked', 'Transfer-Encoding: chunked\r\n\r\n' + '40000\r\n' + 'x'.repeat(0x40000) + '\r\n'.repeat(1)],
    ['announced', 'Content-Length: 10000000\r\n\r\n' + 'x'.repeat(300_000)],
  ])(
    'a request with an oversized unexpected body gets a response, and the server continues: %s',
    async (_name, body) => {
      const server = await listenLocally(openApp(await openWorkspace()))
      for (const path of ['/api/feed/history?sort=year', '/healthz', '/nowhere']) {
        const socket = connect(server.port, '127.0.0.1')
        const first = once(socket, 'data')
        socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${body}`)
        expect(String(await first)).toMatch(/^HTTP\/1.1 (404|405|413) /)
        socket.destroy()
      }
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    },
  )

  test('a body read beyond the limit is 413, and the server continues', async () => {
    const server = await listenLocally(readingApp())
    const socket = connect(server.port, '127.0.0.1')
    const first = once(socket, 'data')
    socket.write(
      `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n40000\r\n${'x'.repeat(0x40000)}\r\n`,
    )
    expect(String(await first)).toMatch(/^HTTP\/1.1 413 /)
    socket.destroy()
    expect((await fetch(server.url)).status).toBe(200)
  })

  test.each(['keep-alive', 'close'])(
    'a refused body is read to its end, because a reset would cost clients the response: %s',
    async (connection) => {
      const server = await listenLocally(openApp(await openWorkspace()))
      const socket = connect(server.port, '127.0.0.1')
      const [first, end] = [once(socket, 'data'), once(socket, 'end')]
      const head = `POST /healthz HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\nContent-Length: 400000\r\n\r\n`
      socket.write(head + 'x'.repeat(300_000))
      expect(String(await first)).toMatch(/^HTTP\/1.1 404 /)
      socket.end('x'.repeat(100_000))
      await end
    },
  )
})

test('every response carries a request id, the caller’s own if it is valid', async () => {
  const ids: unknown[] = []
  const log = { ...silentLog, info: (fields: Record<string, unknown>) => void ids.push(fields['requestId']) }
  const server = await listenLocally(openApp(await openWorkspace()), { log })
  const idOf = async (given: string): Promise<string | null> =>
    (await fetch(`${server.url}/healthz`, { headers: { 'x-request-id': given } })).headers.get('x-request-id')
  expect(await idOf('abc-1')).toBe('abc-1')
  expect(await idOf('no "such" id')).toMatch(/^[0-9a-f-]{36}$/)
  expect(ids[0]).toBe('abc-1')
})
