import { lookup } from 'node:dns/promises'
import { createServer, Server as NetServer } from 'node:net'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import type { H3 } from 'h3'
import { listen } from 'listhen'
import { NodeRequest, sendNodeResponse } from 'srvx/node'
import type { IpRange } from '../domain/address.ts'
import { clientAddress } from '../domain/address.ts'
import { Refusal } from '../domain/refusal.ts'
import { boundConnections, CONNECTION_BOUNDS } from './connections.ts'
import type { ConnectionBounds, ConnectionTracker } from './connections.ts'
import type { Log } from './route.ts'
import type { RequestMeter } from './metrics/instruments.ts'
import { requestTurns } from './fair-queue.ts'
import { PlainResponse, notesOf, requestId } from './respond.ts'

/** Largest request body of any route, in bytes; a route may have a lower limit. */
const BODY_MAX_BYTES = 64 * 1024

/** Interval of Node's search for connections that timed out, in milliseconds. */
const TIMEOUT_CHECK_MS = 1_000

/** On shutdown: time to end open responses, and then time for the last bytes to reach the clients, in milliseconds. */
const END_TIMEOUT_MS = 5_000
const FLUSH_TIMEOUT_MS = 1_000

export interface ListenOptions {
  host: string
  /** 0 takes a free port. */
  port: number
  log: Log
  isDraining: () => boolean
  /** Time for a request's headers to arrive (docs/operations.md: 10 s). */
  headersTimeoutMs: number
  /** Time for a whole request to arrive, body included (docs/operations.md: 15 s). */
  requestTimeoutMs: number
  /** Peers that are exempt from the connection limits. */
  trustedProxies?: readonly IpRange[]
  bounds?: Partial<ConnectionBounds>
  requests?: Pick<RequestMeter, 'recordStart' | 'recordEnd'>
  refuse?: RefuseAddress
  /** Largest request body of any route, in bytes, if it differs from that of the public interfaces. */
  bodyMaxBytes?: number
}

/**
 * Makes the refusal of an address that this machine cannot listen on.
 *
 * @param detail ends with the advice to choose another value
 * @param setting the one to change
 */
export type RefuseAddress = (
  code: 'port_taken' | 'address_unavailable',
  detail: string,
  setting: 'host' | 'port',
) => Refusal

const refusePlainly: RefuseAddress = (code, detail) => new Refusal(code, detail)

export interface RunningServer {
  /** `http://host:port` for a browser. */
  url: string
  port: number
  /**
   * Stops accepting connections, waits up to `graceMs` for open responses, then cuts the rest.
   *
   * @param endOpen ends the responses that are still open after `graceMs`; their connections are cut after it resolves
   * and the last bytes had time to leave
   */
  close(graceMs: number, endOpen?: () => Promise<void>): Promise<void>
}

/**
 * Serves the app on a socket.
 *
 * @throws the refusal of its address; the server never listens on another one
 */
export async function listenOn(app: H3, options: ListenOptions): Promise<RunningServer> {
  const { host, port, refuse = refusePlainly } = options
  const server = await listenQuietly(host, port, refuse)
  const address = server.address()
  const actual = typeof address === 'object' && address ? address.port : port
  if (port !== 0 && actual !== port) {
    server.close()
    throw unsafePort(host, port, refuse)
  }
  const connections = serveRequests(server, app, options)
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${actual}`,
    port: actual,
    close: (graceMs, endOpen) => close(server, connections, graceMs, endOpen),
  }
}

/**
 * listhen would otherwise try other ports, read `--host` from the command line, print, and exit on SIGTERM. It gets the
 * address of a name: for a name that it does not accept, such as `my_server`, it would listen on every address.
 */
async function listenQuietly(host: string, port: number, refuse: RefuseAddress): Promise<Server> {
  try {
    const { address: hostname } = await lookup(host)
    const { server } = await listen(() => undefined, {
      hostname,
      port: { port, random: port === 0, verbose: false },
      public: hostname !== '::1' && !hostname.startsWith('127.'),
      isProd: true,
      showURL: false,
      qr: false,
      autoClose: false,
    })
    return server
  } catch {
    // The port was taken meanwhile or is unsafe; this check distinguishes them.
    await requireFreePort(host, port, refuse)
    throw unsafePort(host, port, refuse)
  }
}

/** The refusal of a free port that browsers block; listhen would replace it with 3000. */
function unsafePort(host: string, port: number, refuse: RefuseAddress): Refusal {
  const detail = `port ${port} on ${host} cannot be used: browsers block it as unsafe; choose another`
  return refuse('address_unavailable', detail, 'port')
}

/**
 * Checks that a port is free; listhen only reports that it found none.
 *
 * @throws the refusal of the address
 */
export async function requireFreePort(host: string, port: number, refuse: RefuseAddress): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(listenRefusal(error, `port ${port} on ${host}`, refuse)))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()))
  })
}

function listenRefusal(
  { code, message }: NodeJS.ErrnoException,
  where: string,
  refuse: RefuseAddress,
): Refusal {
  if (code === 'EADDRINUSE')
    return refuse('port_taken', `${where} is taken by another process; choose another`, 'port')
  const detail =
    code === 'EACCES'
      ? `${where} needs more rights than this user has; choose a port above 1023`
      : `${where} cannot be opened (${message}); choose an address of this machine`
  return refuse('address_unavailable', detail, code === 'EACCES' ? 'port' : 'host')
}

/** Characters of a request's path that are logged. */
const LOGGED_PATH_LENGTH = 200

function serveRequests(server: Server, app: H3, options: ListenOptions): ConnectionTracker {
  const { log, isDraining, requests, trustedProxies = [] } = options
  const bounds = { ...CONNECTION_BOUNDS, ...options.bounds }
  const connections = boundConnections(server, trustedProxies, bounds, log)
  setTimeouts(server, options)
  const maxRequestBodySize = options.bodyMaxBytes ?? BODY_MAX_BYTES
  const startInTurn = requestTurns()
  const handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    try {
      const response = await app.fetch(new NodeRequest({ req, res, maxRequestBodySize }))
      if (response instanceof PlainResponse) response.send(res)
      else await sendNodeResponse(res, response)
    } catch (error) {
      log.error({ requestId: notesOf(res).id, err: error }, 'a response cannot be sent')
      res.destroy()
    }
  }
  const serve = (
    request: IncomingMessage,
    response: ServerResponse,
    framing: FramingFault | null,
    peer: string | null,
  ): void => {
    const startedAt = performance.now()
    requests?.recordStart()
    const id = requestId({ get: (name) => request.headers[name]?.toString() ?? null })
    request.headers['x-request-id'] = id
    notesOf(response).id = id
    if (isDraining()) response.shouldKeepAlive = false
    response.once('close', () => {
      connections.responseEnded(request.socket)
      if (!server.listening) connections.closeUnused()
      const { method } = request
      const { statusCode: status, headersSent, writableFinished: finished } = response
      const durationMs = Math.round((performance.now() - startedAt) * 100) / 100
      const { route = null, code } = notesOf(response)
      const template = route ?? 'none'
      requests?.recordEnd({ route: template, method, status, hasResponse: headersSent, durationMs })
      const loggedRoute = requests && template
      const path = loggedPath(request)
      log.info(
        { requestId: id, method, path, route: loggedRoute, status, code, finished, durationMs },
        'request',
      )
    })
    if (framing !== null) return refuseFraming(response, framing, id)
    const forwardedFor = request.headers['x-forwarded-for']?.toString() ?? null
    const address = peer ?? clientAddress(request.socket.remoteAddress, forwardedFor, trustedProxies)
    startInTurn(address, () => {
      if (!request.socket.destroyed) void handle(request, response)
    })
  }
  // listhen's shutdown listener ends the process if a response finishes after its socket is gone.
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const framing = framingFault(request)
    connections.receive(
      request,
      response,
      (peer) => serve(request, response, framing, peer),
      framing !== null,
    )
  })
  return connections
}

/** The refusal of a request that another server could parse differently. */
interface FramingFault {
  status: 400 | 501 | 505
  error: 'bad_request' | 'unsupported_transfer_coding' | 'unsupported_version'
}

const BAD_REQUEST: FramingFault = { status: 400, error: 'bad_request' }

/** `host` or `host:port` of RFC 9110, 7.2, without user, path or list; empty for a target without an authority. */
const HOST_PATTERN = /^(?:[\w.~%!$&'()*+;=-]*|\[[\da-f:.v]+\])(?::\d*)?$/i

/**
 * Detects requests that Node's parser accepts: several or malformed `Host` lines, transfer codings it does not decode,
 * and versions other than 1.0 and 1.1. The parser itself refuses the other ambiguous forms (docs/security.md#requests).
 */
function framingFault({ headers, httpVersion, rawHeaders }: IncomingMessage): FramingFault | null {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return { status: 505, error: 'unsupported_version' }
  // Of several lines, `headers` has only the first. Before Node 20.20.2 `headersDistinct` throws at `constructor`.
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host')
  if (hosts.length > 1 || !HOST_PATTERN.test(headers.host ?? '')) return BAD_REQUEST
  const coding = headers['transfer-encoding']
  if (coding === undefined) return null
  // RFC 9112, 6.1: a 1.0 message with a transfer coding has faulty framing.
  if (httpVersion === '1.0' || coding === '') return BAD_REQUEST
  return coding.toLowerCase() === 'chunked' ? null : { status: 501, error: 'unsupported_transfer_coding' }
}

/** Refuses a request and closes its connection, since the start of the next request is unknown. */
function refuseFraming(response: ServerResponse, { status, error }: FramingFault, id: string): void {
  const body = JSON.stringify({ error })
  notesOf(response).code = error
  response.shouldKeepAlive = false
  response.writeHead(status, {
    'cache-control': 'no-store',
    connection: 'close',
    'content-length': Buffer.byteLength(body),
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': id,
  })
  response.end(body)
}

function setTimeouts(
  server: Server,
  { headersTimeoutMs, requestTimeoutMs }: Pick<ListenOptions, 'headersTimeoutMs' | 'requestTimeoutMs'>,
): void {
  server.headersTimeout = headersTimeoutMs
  server.requestTimeout = requestTimeoutMs
  // Node checks timeouts every 30 s, an option of the constructor only; it reads the property again whenever the server
  // starts to listen.
  Object.assign(server, { connectionsCheckingInterval: TIMEOUT_CHECK_MS })
  server.emit('listening')
}

function loggedPath({ url = '' }: IncomingMessage): string {
  const end = url.indexOf('?')
  const path = end === -1 ? url : url.slice(0, end)
  return path.length > LOGGED_PATH_LENGTH ? `${path.slice(0, LOGGED_PATH_LENGTH)}…` : path
}

async function close(
  server: Server,
  connections: ConnectionTracker,
  graceMs: number,
  endOpen?: () => Promise<void>,
): Promise<void> {
  // The HTTP server's own close would destroy sockets whose last response has not reached the kernel.
  const closed = new Promise((resolve) => NetServer.prototype.close.call(server, resolve))
  connections.closeUnused()
  if (await isWithin(graceMs, closed)) return
  // What the responses leave to do, such as a settlement, may outlast their connections.
  const ended = endOpen?.().catch(() => undefined)
  if (ended && (await isWithin(END_TIMEOUT_MS, ended))) await isWithin(FLUSH_TIMEOUT_MS, closed)
  server.closeAllConnections()
  await Promise.all([closed, ended])
}

function isWithin(ms: number, event: Promise<unknown>): Promise<boolean> {
  return Promise.race([event.then(() => true), setTimeout(ms, false, { ref: false })])
}
