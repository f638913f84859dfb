import { once } from 'node:events'
import { IncomingMessage, Server, ServerResponse } from 'node:http'
import { connect, Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { H3 } from 'h3'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { boundConnections, CONNECTION_BOUNDS } from '../../src/server/connections.ts'
import type { ConnectionBounds } from '../../src/server/connections.ts'
import type { ListenOptions } from '../../src/server/listen.ts'
import { respond, respondText } from '../../src/server/respond.ts'
import { requestMeter } from '../../src/server/metrics/instruments.ts'
import { openApp, listenLocally, silentLog } from '../support/api-client.ts'
import { LOOPBACK } from '../adapters/articles/pages.ts'
import { openWorkspace } from '../support/workspace.ts'

/** More than the system takes for a connection whose client reads nothing. */
const LARGE_BYTES = 32 * 1024 * 1024

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

interface Running {
  port: number
  /** Codes of the connections that were cut. */
  cuts: unknown[]
}

async function running(app: H3, options: Partial<ListenOptions> = {}): Promise<Running> {
  const cuts: unknown[] = []
  const log = { ...silentLog, warn: ({ code }: Record<string, unknown>) => void cuts.push(code) }
  const server = await listenLocally(app, { host: '0.0.0.0', log, ...options })
  return { port: server.port, cuts }
}

function serving(body = 'here'): H3 {
  return new H3({ silent: true }).all('/', (event) => respondText(event, 200, {}, 'text/plain', body))
}

/** A connection with a request on it. */
async function sendRequest(port: number, request = GET, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = await connected(port, localAddress)
  socket.write(request)
  return socket
}

async function connected(port: number, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** All that a connection receives until it is closed. */
async function received(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.resume()
  await once(socket, 'close')
  return text
}

async function firstBytes(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  return chunk.toString('latin1')
}

/** Resolves once the client has read so many bytes more. */
async function read(socket: Socket, bytes: number): Promise<void> {
  const until = socket.bytesRead + bytes
  const take = (): void => void (socket.bytesRead >= until && socket.pause())
  socket.on('data', take).resume()
  while (socket.bytesRead < until) {
    if (socket.destroyed) throw new Error(`the connection closed after ${socket.bytesRead} bytes`)
    await nextTurn()
  }
  socket.off('data', take)
}

function stopLooks(): { look: (times: number) => void } {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  return { look: (times) => vi.advanceTimersByTime(times * 1_000) }
}

/** Connections from chosen addresses, which no socket of this machine could have. */
function bounded(bounds: ConnectionBounds): {
  open: (address: string) => Socket
  ask: (socket: Socket, complete?: boolean) => void
  cuts: unknown[]
} {
  const cuts: unknown[] = []
  const log = { ...silentLog, warn: ({ code }: Record<string, unknown>) => void cuts.push(code) }
  const server = new Server()
  onTestFinished(() => void server.emit('close'))
  const connections = boundConnections(server, [], bounds, log)
  return {
    open(address) {
      const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: address })
      for (const listener of server.listeners('connection').slice(-1)) listener.call(server, socket)
      return socket
    },
    ask(socket, complete = true) {
      const request = Object.assign(new IncomingMessage(socket), { complete })
      connections.receive(request, new ServerResponse(request), () => undefined, false)
    },
    cuts,
  }
}

describe('a response', () => {
  test.each([
    ['on a connection that stays open', GET],
    ['on a connection that is to close', 'GET / HTTP/1.0\r\n\r\n'],
    ['to the last of several requests', `OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n${GET}`],
  ])('a response that is never read is cut after 30 s %s', async (_case, request) => {
    const { look } = stopLooks()
    const { port, cuts } = await running(serving('x'.repeat(LARGE_BYTES)))
    const socket = await sendRequest(port, request)
    await read(socket, 1)
    look(29)
    await nextTurn()
    expect(cuts).toEqual([])
    look(3)
    expect(cuts).toEqual(['unread'])
  })

  test('a response that cannot be sent is logged with the id of its request', async () => {
    const lines: object[] = []
    const log = { ...silentLog, error: (facts: object) => void lines.push(facts) }
    const app = new H3().get('/', (event) => respond(event, 200, { 'x-name': 'ж' }, null))
    await received(await sendRequest((await running(app, { log })).port))
    expect(lines).toMatchObject([{ requestId: expect.any(String), err: { code: 'ERR_INVALID_CHAR' } }])
  })

  test('a response that is read slowly arrives completely, however long that takes', async () => {
    const { look } = stopLooks()
    const { port, cuts } = await running(serving('x'.repeat(LARGE_BYTES)))
    const socket = await sendRequest(port, 'GET / HTTP/1.0\r\n\r\n')
    const part = 6 * 1024 * 1024
    for (let parts = 1; parts <= 5; parts += 1) {
      await read(socket, part)
      look(20)
    }
    await received(socket)
    expect(socket.bytesRead).toBeGreaterThan(LARGE_BYTES)
    expect(cuts).toEqual([])
  })

  test('a response with a slow handler is not cut', async () => {
    const { look } = stopLooks()
    let release: () => void = () => undefined
    let begin: () => void = () => undefined
    const begun = new Promise<void>((resolve) => (begin = resolve))
    const slow = new H3().get('/', async (event) => {
      begin()
      await new Promise<void>((resolve) => (release = resolve))
      return respondText(event, 200, {}, 'text/plain', 'late')
    })
    const { port } = await running(slow)
    const socket = await sendRequest(port)
    await begun
    look(120)
    release()
    expect(await firstBytes(socket)).toContain('late')
  })
})

describe('too many pending bytes', () => {
  /** Responses to addresses that read only on demand. */
  async function waiting(addresses: readonly string[], app: H3, waitingBytes: number) {
    const { look } = stopLooks()
    const server = await running(app, { bounds: { waitingBytes } })
    const sockets: Socket[] = []
    for (const address of addresses) {
      const socket = await sendRequest(server.port, GET, address)
      await read(socket, 1)
      sockets.push(socket)
    }
    return { ...server, look, sockets }
  }

  test('the network with most pending bytes loses its largest response, even if it still reads and another stalls', async () => {
    const bodies = [2, 1, 1].map((size) => 'x'.repeat(LARGE_BYTES * size))
    const app = new H3().all('/', (event) => respondText(event, 200, {}, 'text/plain', bodies.pop() ?? ''))
    const addresses = ['127.0.0.2', '127.0.0.3', '127.0.0.3']
    const { look, sockets, cuts } = await waiting(addresses, app, LARGE_BYTES * 2.5)
    const [pausing, small, large] = sockets as [Socket, Socket, Socket]
    const closed = once(large, 'close')
    look(1)
    expect(cuts).toEqual(['waiting_bytes'])
    large.resume()
    await closed
    for (const socket of [pausing, small]) await read(socket, LARGE_BYTES - 1024 * 1024)
  })

  test('a shared body counts once', async () => {
    const body = Buffer.alloc(LARGE_BYTES)
    const app = new H3().get('/', (event) => respond(event, 200, {}, body))
    const addresses = ['127.0.0.2', '127.0.0.3', '127.0.0.4']
    const { look, cuts } = await waiting(addresses, app, LARGE_BYTES * 1.5)
    look(5)
    expect(cuts).toEqual([])
  })
})

test.each([
  ['sixteen requests of one connection are handled one after another', 16, 16, []],
  ['seventeen waiting requests close their connection, and only the first is handled', 17, 1, ['pipelined']],
])('%s', async (_what, sent, handled, expected) => {
  let [open, most, count] = [0, 0, 0]
  const counting = new H3().get('/', async (event) => {
    open += 1
    count += 1
    most = Math.max(most, open)
    await nextTurn()
    open -= 1
    return respondText(event, 200, {}, 'text/plain', 'here')
  })
  const { port, cuts } = await running(counting)
  const last = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  const text = await received(await sendRequest(port, GET.repeat(sent - 1) + last))
  expect([count, most, cuts]).toEqual([handled, 1, expected])
  if (handled === sent) expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(sent)
})

describe('connections of one peer', () => {
  const bounds = { perPeer: 2 }

  test('connections beyond the limit of a peer are closed, while other peers are served', async () => {
    const { port, cuts } = await running(serving(), { bounds })
    await connected(port)
    const second = await connected(port)
    await received(await connected(port))
    expect(cuts).toEqual(['peer_connections'])
    const other = await connected(port, '127.0.0.2')
    for (const socket of [second, other]) {
      socket.write(GET)
      expect(await firstBytes(socket)).toContain('200')
    }
  })

  test.each([
    ['that are closed', 'GET / HTTP/1.0\r\n\r\n', {}],
    ['of a trusted proxy', GET, { trustedProxies: LOOPBACK }],
  ])('connections %s have no limit', async (_what, request, options) => {
    const { port, cuts } = await running(serving(), { bounds, ...options })
    for (let count = 0; count < 5; count += 1) {
      const socket = await sendRequest(port, request)
      expect(await firstBytes(socket)).toContain('200')
      if (request !== GET) await once(socket, 'close')
    }
    expect(cuts).toEqual([])
  })
})

describe('connections without a free slot', () => {
  const bounds = { ...CONNECTION_BOUNDS, perPeer: 3, perNetwork: 4, connections: 8 }
  const spread = Array.from({ length: 8 }, (_, at) => `192.0.2.${at + 1}`)

  test('one IPv6 /48 holds no more than its share of the slots', () => {
    const { open, cuts } = bounded(bounds)
    for (let at = 0; at < 4; at += 1) open(`2001:db8:7:${at}::1`)
    expect(open('2001:db8:7:9::1').destroyed).toBe(true)
    expect(cuts).toEqual(['peer_connections'])
    expect(open('2001:db8:8::1').destroyed).toBe(false)
  })

  test('a /48 of many addresses loses a slot to other networks', () => {
    const { open, cuts } = bounded(bounds)
    const large = [0, 1, 2].map((at) => open(`2001:db8:7:${at}::1`))
    const others = spread.slice(0, 5).map(open)
    expect(open('198.51.100.1').destroyed).toBe(false)
    expect(large.map((socket) => socket.destroyed)).toEqual([true, false, false])
    expect(others.some((socket) => socket.destroyed)).toBe(false)
    expect(cuts).toEqual(['connections'])
  })

  test('the connection idle for longest is evicted when each address holds one slot', () => {
    const { open, ask, cuts } = bounded(bounds)
    const held = spread.map(open)
    if (held[0]) ask(held[0])
    const fresh = ['198.51.100.1', '198.51.100.2'].map(open)
    expect(held.map((socket) => socket.destroyed)).toEqual([false, true, true, ...Array(5).fill(false)])
    expect(fresh.some((socket) => socket.destroyed)).toBe(false)
    expect(cuts).toEqual(['connections', 'connections'])
  })

  test('the first connection with an incomplete body is evicted', () => {
    const { open, ask } = bounded(bounds)
    const held = spread.map(open)
    for (const socket of held) ask(socket, false)
    expect(open('198.51.100.1').destroyed).toBe(false)
    expect(held.filter((socket) => socket.destroyed)).toEqual([held[0]])
  })

  test('a new connection is refused, without a slot, when every connection of as many addresses has a response in progress', () => {
    const { open, ask, cuts } = bounded(bounds)
    const held = spread.map(open)
    for (const socket of held) ask(socket)
    for (let tries = 0; tries < 5; tries += 1) expect(open('198.51.100.1').destroyed).toBe(true)
    expect(cuts).toEqual(Array(5).fill('connections'))
    expect(held.some((socket) => socket.destroyed)).toBe(false)
  })
})

describe('an ambiguous or invalid request', () => {
  const post = 'POST / HTTP/1.1\r\nHost: x\r\n'
  test.each([
    ['two Host lines', 'GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n', 400],
    ['a list of hosts', 'GET / HTTP/1.1\r\nHost: x, y\r\n\r\n', 400],
    ['a Host with a path', 'GET / HTTP/1.1\r\nHost: x/y\r\n\r\n', 400],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['an unknown transfer coding', `${post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 501],
    ['an empty transfer coding', `${post}Transfer-Encoding:\r\n\r\n`, 400],
    ['a coding in version 1.0', 'POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400],
    ['a length and a coding', `${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    ['two lengths', `${post}Content-Length: 0\r\nContent-Length: 1\r\n\r\na`, 400],
    ['a line that ends with LF alone', `${post}Content-Length: 0\nX-A: b\r\n\r\n`, 400],
    ['version 2.0', 'GET / HTTP/2.0\r\nHost: x\r\n\r\n', 505],
  ])('an invalid request is refused, and nothing behind it is read: %s', async (_case, request, status) => {
    const { port } = await running(serving())
    const socket = await sendRequest(port, `${request}${GET}`)
    const text = await received(socket)
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1)
  })

  test.each([
    [
      'an address that is not percent-encoded',
      'GET /?q=ü HTTP/1.1\r\nHost: x\r\n\r\n',
      400,
      /percent-encode/,
    ],
    ['an address with a space', 'GET /a b HTTP/1.1\r\nHost: x\r\n\r\n', 400, /percent-encode/],
    ['a space before a colon', 'GET / HTTP/1.1\r\nHost : x\r\n\r\n', 400, /: Invalid header token$/],
    ['long headers', `GET / HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`, 431, /overflow$/],
  ])('a request that cannot be parsed gets a reason: %s', async (_case, request, status, reason) => {
    const text = await received(await sendRequest((await running(serving())).port, request))
    const [head = '', body = ''] = text.split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(JSON.parse(body)).toEqual({
      error: 'bad_request',
      message: expect.stringMatching(reason) as unknown,
    })
  })

  test.each([
    ['a port', 'GET / HTTP/1.1\r\nHost: example.org:8080\r\n\r\n'],
    ['an IPv6 address', 'GET / HTTP/1.1\r\nHost: [::1]:3000\r\n\r\n'],
    ['no host name', 'GET / HTTP/1.1\r\nHost:\r\n\r\n'],
    ['a header named like a member of objects', 'GET / HTTP/1.1\r\nHost: x\r\nConstructor: a\r\n\r\n'],
    ['a chunked body', `${post}Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n`],
  ])('an unusual valid request is served: %s', async (_case, request) => {
    const socket = await sendRequest((await running(serving())).port, request)
    expect(await firstBytes(socket)).toMatch(/^HTTP\/1\.1 200 /)
  })
})

test('the log line of a request names route, status and public code, and truncates its path', async () => {
  const lines: Record<string, unknown>[] = []
  const log = { ...silentLog, info: (fields: Record<string, unknown>) => void lines.push(fields) }
  const { port } = await running(openApp(await openWorkspace()), { log, requests: requestMeter() })
  const get = async (target: string): Promise<Record<string, unknown> | undefined> => {
    await received(await sendRequest(port, `GET ${target} HTTP/1.0\r\n\r\n`))
    return lines.at(-1)
  }
  const cut = { path: `/${'a'.repeat(199)}…`, status: 404, code: 'not_found' }
  expect(await get(`/${'a'.repeat(8_000)}?b`)).toMatchObject(cut)
  expect(await get('/api/feed/history?sort=nothing')).toMatchObject({ status: 400, code: 'invalid_sort' })
  expect(await get('/healthz')).not.toMatchObject({ code: expect.anything() })
})
