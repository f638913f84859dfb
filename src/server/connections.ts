import { STATUS_CODES } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { networkOf, peerOf } from '../domain/address.ts'
import { OpenSlots } from './fair-queue.ts'
import type { SlotCount } from './fair-queue.ts'
import type { IpRange } from '../domain/address.ts'
import { notesOf } from './respond.ts'
import type { Log } from './route.ts'

/** Limits of open connections and requests (docs/operations.md#connections). */
export interface ConnectionBounds {
  /** A client that accepts no byte of a pending response for this long is cut off, in milliseconds. */
  unreadMs: number
  /** Unfinished requests per connection. */
  requests: number
  /** Connections per IPv4 address or IPv6 /64; trusted proxies are exempt. */
  perPeer: number
  /** Connections per IPv6 /48; trusted proxies are exempt. */
  perNetwork: number
  connections: number
  /** Bytes of pending responses in this process, over all connections. */
  waitingBytes: number
}

export const CONNECTION_BOUNDS: ConnectionBounds = {
  unreadMs: 30_000,
  requests: 16,
  perPeer: 256,
  perNetwork: 1_024,
  connections: 4_096,
  waitingBytes: 128 * 1024 * 1024,
}

/** Number of connection checks within `unreadMs`. */
const CHECKS_PER_TIMEOUT = 30

/** A request whose response has not ended. */
interface OpenRequest {
  response: ServerResponse
  handle: Handle
}

/** @param peer the address of the connection as requests are counted by; null for a trusted proxy */
type Handle = (peer: string | null) => void

interface Connection {
  socket: Socket
  /** Null for a trusted proxy. */
  peer: string | null
  /** Slots held by its network, including its own; null for a trusted proxy. */
  network: Readonly<SlotCount> | null
  /** In order; the first one is being handled. */
  requests: OpenRequest[]
  /** The latest request, whose body may be incomplete. */
  latest: IncomingMessage | null
  /** True after a request that must be the last. */
  isEnding: boolean
  /** When the connection was opened or its last response ended. */
  idleSince: number
  /** Bytes that the system had accepted at the last check. */
  acceptedBytes: number
  /** Consecutive checks without progress while bytes were pending. */
  stalledChecks: number
}

export interface ConnectionTracker {
  /**
   * Handles a request after the previous responses of its connection have ended, so that a connection never holds more
   * than one response. Ignores requests of a connection that is closed or has too many requests.
   *
   * @param isLast true if the bytes after this request cannot be trusted
   */
  receive(request: IncomingMessage, response: ServerResponse, handle: Handle, isLast: boolean): void
  responseEnded(socket: Socket): void
  /** Closes idle connections; Node's own method skips those that have not sent a request yet. */
  closeUnused(): void
}

/** Bounds the connections, unfinished requests and unread responses of a server. */
export function boundConnections(
  server: Server,
  trustedProxies: readonly IpRange[],
  bounds: ConnectionBounds,
  log: Log,
): ConnectionTracker {
  const open = new Map<Socket, Connection>()
  const slots = new OpenSlots({ perAddress: bounds.perPeer, perNetwork: bounds.perNetwork, all: Infinity })
  const forget = (socket: Socket): void => {
    const peer = open.get(socket)?.peer ?? null
    if (open.delete(socket) && peer !== null) slots.leave(peer)
  }
  const cutConnection = (socket: Socket, code: string): void => {
    const response = open.get(socket)?.requests[0]?.response
    // Free the slot now: the socket reports its close later.
    forget(socket)
    if (socket.destroyed) return
    log.warn({ requestId: notesOf(response).id, code }, 'connection cut')
    socket.destroy()
  }

  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket.remoteAddress, trustedProxies)
    if (peer !== null && slots.enter(peer) !== 'admitted') return cutConnection(socket, 'peer_connections')
    const network = peer === null ? null : slots.ofNetwork(networkOf(peer))
    if (open.size >= bounds.connections) {
      const victim = connectionToEvict(open.values(), network?.count ?? 1)
      cutConnection(victim?.socket ?? socket, 'connections')
      if (victim === null) {
        if (peer !== null) slots.leave(peer)
        return
      }
    }
    open.set(socket, {
      socket,
      peer,
      network,
      requests: [],
      latest: null,
      isEnding: false,
      idleSince: performance.now(),
      acceptedBytes: 0,
      stalledChecks: 0,
    })
    socket.once('close', () => forget(socket))
  })

  server.on('clientError', (error: ParseError, socket: Socket) => {
    // A second response would corrupt one that has begun.
    const hasBegun = open.get(socket)?.requests[0]?.response.headersSent ?? false
    if (socket.writable && !hasBegun) socket.write(unreadableRequest(error))
    socket.destroySoon()
  })

  const checkConnections = (): void => {
    for (const [socket, connection] of open) {
      updateProgress(connection)
      // The first check without progress may follow right after a byte, so require one more.
      if (connection.stalledChecks > CHECKS_PER_TIMEOUT) cutConnection(socket, 'unread')
    }
    for (const { socket } of connectionsOverBudget(open.values(), bounds.waitingBytes))
      cutConnection(socket, 'waiting_bytes')
  }
  const checkTimer = setInterval(checkConnections, bounds.unreadMs / CHECKS_PER_TIMEOUT).unref()
  server.once('close', () => clearInterval(checkTimer))

  return {
    receive(request, response, handle, isLast) {
      const { socket } = request
      const connection = open.get(socket)
      if (connection === undefined || connection.isEnding || socket.destroyed) return
      connection.isEnding = isLast
      connection.latest = request
      connection.requests.push({ response, handle })
      const { length } = connection.requests
      // Node emits all requests of one chunk, even after the connection was paused.
      if (length > bounds.requests) cutConnection(socket, 'pipelined')
      else if (length === 1) handle(connection.peer)
    },
    responseEnded(socket) {
      const connection = open.get(socket)
      if (connection === undefined) return
      connection.requests.shift()
      connection.idleSince = performance.now()
      if (socket.writable) connection.requests[0]?.handle(connection.peer)
    },
    closeUnused() {
      for (const [socket, { requests }] of open) {
        if (requests.length === 0) socket.end(() => socket.destroy())
      }
    },
  }
}

/** An error of Node's parser; `reason` describes it. */
type ParseError = NodeJS.ErrnoException & { reason?: string }

/** Statuses as in Node's own response, which has no body; any other error is 400. */
const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
}

/** The response to a request that cannot be parsed, such as one whose address is not percent-encoded. */
function unreadableRequest({ code = '', reason, message: fallback }: ParseError): string {
  const status = STATUS_BY_CODE[code] ?? 400
  // The parser reports a space in an address with the second code.
  const isAddress = code === 'HPE_INVALID_URL' || code === 'HPE_INVALID_CONSTANT'
  const advice = isAddress ? '; percent-encode spaces and characters outside of ASCII in an address' : ''
  const message = `the request cannot be read: ${reason ?? fallback}${advice}`
  const body = JSON.stringify({ error: 'bad_request', message })
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Cache-Control: no-store',
    'Connection: close',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Content-Type: application/json; charset=utf-8',
    '',
    body,
  ].join('\r\n')
}

/**
 * Chooses the connection to close if all slots are taken: in the network with the most connections an idle one first, the
 * one idle for longest. If no network has more than that of the new connection, only an idle connection is closed. A new
 * client is thus served even if a thousand networks hold the same number of slots.
 *
 * @param own slots of the new connection's network, including the new one
 */
function connectionToEvict(open: Iterable<Connection>, own: number): Connection | null {
  let victim: Connection | null = null
  for (const connection of open) {
    const slots = connection.network?.count ?? 0
    if (slots < own || (slots === own && !isIdle(connection))) continue
    if (victim === null || isEvictedBefore(connection, victim)) victim = connection
  }
  return victim
}

function isEvictedBefore(one: Connection, other: Connection): boolean {
  const more = (one.network?.count ?? 0) - (other.network?.count ?? 0)
  const idler = Number(isIdle(one)) - Number(isIdle(other))
  return (more || idler || other.idleSince - one.idleSince) > 0
}

/** A request counts once its body is complete, so that a slow sender can be evicted. */
function isIdle({ latest, requests }: Connection): boolean {
  return latest === null || !latest.complete || requests.length === 0
}

interface PendingBytes {
  connection: Connection
  bytes: number
}

/**
 * Selects connections to cut until the pending bytes fit the limit. Each step takes the network with the most pending
 * bytes, and in it the connection with the most bytes.
 */
function connectionsOverBudget(open: Iterable<Connection>, maxBytes: number): Connection[] {
  const pending = pendingBytesOf(open).toSorted((one, other) => one.bytes - other.bytes)
  let total = pending.reduce((sum, { bytes }) => sum + bytes, 0)
  // A proxy serves many clients, so each of its connections is a separate group.
  const byNetwork = new Map<object, { bytes: number; members: PendingBytes[] }>()
  for (const each of pending) {
    const key = each.connection.network ?? each.connection
    const group = byNetwork.get(key) ?? { bytes: 0, members: [] }
    group.bytes += each.bytes
    group.members.push(each)
    byNetwork.set(key, group)
  }
  const groups = [...byNetwork.values()]
  const cut: Connection[] = []
  while (total > maxBytes) {
    const largest = groups.reduce((one, other) => (other.bytes > one.bytes ? other : one))
    const last = largest.members.pop()
    if (last === undefined) break
    largest.bytes -= last.bytes
    total -= last.bytes
    cut.push(last.connection)
  }
  return cut
}

/** Pending bytes per connection. A body that several connections share, such as a cached page, is counted once. */
function pendingBytesOf(open: Iterable<Connection>): PendingBytes[] {
  const unread = [...open].filter(({ socket }) => socket.writableLength > 0)
  const readers = new Map<Buffer, number>()
  const bodies = unread.map(({ requests: [first] }) => first && notesOf(first.response).body)
  for (const body of bodies) if (body) readers.set(body, (readers.get(body) ?? 0) + 1)
  return unread.map((connection, index) => {
    const body = bodies[index]
    return { connection, bytes: connection.socket.writableLength / ((body && readers.get(body)) ?? 1) }
  })
}

/** Updates the progress of a connection, measured by the bytes that the system has accepted. */
function updateProgress(connection: Connection): void {
  const { socket } = connection
  const accepted = acceptedBytes(socket)
  const isStalled = socket.writableLength > 0 && accepted <= connection.acceptedBytes
  connection.stalledChecks = isStalled ? connection.stalledChecks + 1 : 0
  connection.acceptedBytes = accepted
}

/**
 * Bytes accepted by the system. Node's public counters include whole writes only, and a response may be one write of many
 * megabytes; Node's own socket timeout reads these two fields too.
 */
function acceptedBytes(socket: Socket): number {
  const { _handle: handle } = socket as unknown as {
    _handle: { bytesWritten: number; writeQueueSize: number } | null
  }
  return handle === null ? socket.bytesWritten : handle.bytesWritten - handle.writeQueueSize
}
