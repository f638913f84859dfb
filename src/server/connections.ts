import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { peerOf } from '../domain/client-address.ts'
import { openSlots } from '../domain/fair-queue.ts'
import type { HeldSlots } from '../domain/fair-queue.ts'
import type { IpRange } from '../domain/address.ts'
import { notesOf } from './respond.ts'
import type { Log } from './route.ts'

/** Bounds of what clients can hold open (docs/operations.md#connections). */
export interface ConnectionBounds {
  /** A client that accepts no byte of a waiting response for so long is cut off. */
  unreadMs: number
  /** Requests of one connection whose responses have not ended. */
  requests: number
  /** Connections of one IPv4 address or IPv6 /64; trusted proxies have no such bound. */
  perPeer: number
  /** Connections of one IPv6 /48; trusted proxies have no such bound. */
  perNetwork: number
  connections: number
  /** Bytes of responses that wait in this process for their readers, over all connections. */
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

/** How often connections are examined within `unreadMs`. */
const LOOKS = 30

type CutReason = 'unread' | 'pipelined' | 'peer_connections' | 'connections' | 'waiting_bytes'

/** A request whose response has not ended. */
interface OpenRequest {
  response: ServerResponse
  handle: () => void
}

interface Connection {
  socket: Socket
  /** Null for a trusted proxy. */
  peer: string | null
  /** By its peer and network, itself included; null for a trusted proxy. */
  held: HeldSlots | null
  /** In order; the first one has begun. */
  requests: OpenRequest[]
  /** The request that arrived last, perhaps without all of its body. */
  latest: IncomingMessage | null
  /** True after a request that must be the last. */
  ending: boolean
  /** When it was opened, or its last response ended. */
  quietSince: number
  /** Bytes the system had accepted at the last look. */
  accepted: number
  /** Looks in a row at which bytes waited and none had been accepted. */
  stillLooks: number
}

/** The open connections of a server. */
export interface Connections {
  /**
   * Handles a request as soon as those before it on its connection are answered: a connection never holds more than one
   * response. Nothing is handled of a connection that is closed or has too many requests.
   *
   * @param isLast true when nothing behind this request can be trusted to be a request
   */
  receive(request: IncomingMessage, response: ServerResponse, handle: () => void, isLast: boolean): void
  /** A response has ended. */
  answered(socket: Socket): void
  /** How many are open. */
  count(): number
  /** Closes connections without an open request; Node's own method leaves those that have not sent one yet. */
  closeUnused(): void
}

/** Keeps what clients hold of a server bounded: connections, unanswered requests, and responses they do not read. */
export function boundConnections(
  server: Server,
  trustedProxies: readonly IpRange[],
  bounds: ConnectionBounds,
  log: Log,
): Connections {
  const open = new Map<Socket, Connection>()
  const places = openSlots({ perAddress: bounds.perPeer, perNetwork: bounds.perNetwork, all: Infinity })
  const forget = (socket: Socket): void => {
    const peer = open.get(socket)?.peer ?? null
    if (open.delete(socket) && peer !== null) places.leave(peer)
  }
  const cut = (socket: Socket, code: CutReason): void => {
    const response = open.get(socket)?.requests[0]?.response
    // Its place is free at once: the socket tells of its end later.
    forget(socket)
    if (socket.destroyed) return
    log.warn({ code }, 'connection cut')
    if (response) notesOf(response).cut = true
    socket.destroy()
  }

  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket.remoteAddress, trustedProxies)
    if (peer !== null && places.enter(peer) !== 'admitted') return cut(socket, 'peer_connections')
    const held = peer === null ? null : places.held(peer)
    if (open.size >= bounds.connections) {
      const victim = connectionToGiveUp(open.values(), held)
      cut(victim?.socket ?? socket, 'connections')
      if (victim === null) {
        if (peer !== null) places.leave(peer)
        return
      }
    }
    open.set(socket, newConnection(socket, peer, held))
    socket.once('close', () => forget(socket))
  })

  const look = (): void => {
    for (const [socket, connection] of open) {
      examine(connection)
      // The first still look may follow right after a byte, so that one more makes the time whole.
      if (connection.stillLooks > LOOKS) cut(socket, 'unread')
    }
    for (const { socket } of overfull(open.values(), bounds.waitingBytes)) cut(socket, 'waiting_bytes')
  }
  const looks = setInterval(look, bounds.unreadMs / LOOKS).unref()
  server.once('close', () => clearInterval(looks))

  return {
    receive(request, response, handle, isLast) {
      const { socket } = request
      const connection = open.get(socket)
      if (connection === undefined || connection.ending || socket.destroyed) return
      connection.ending = isLast
      connection.latest = request
      connection.requests.push({ response, handle })
      const { length } = connection.requests
      // Node hands over all requests of one chunk, even after the connection was paused.
      if (length > bounds.requests) cut(socket, 'pipelined')
      else if (length === 1) handle()
    },
    answered(socket) {
      const connection = open.get(socket)
      if (connection === undefined) return
      connection.requests.shift()
      connection.quietSince = performance.now()
      if (socket.writable) connection.requests[0]?.handle()
    },
    count: () => open.size,
    closeUnused() {
      for (const [socket, { requests }] of open) {
        if (requests.length === 0) socket.end(() => socket.destroy())
      }
    },
  }
}

function newConnection(socket: Socket, peer: string | null, held: HeldSlots | null): Connection {
  const quietSince = performance.now()
  return {
    socket,
    peer,
    held,
    requests: [],
    latest: null,
    ending: false,
    quietSince,
    accepted: 0,
    stillLooks: 0,
  }
}

/**
 * When all places are taken, the network with the most connections loses one, and within it the peer with the most. When
 * no network has more than that of the new connection, only a connection without an open request gives way, the one
 * that did nothing for longest, or else one that is not read: a new client is served even when a thousand networks
 * hold the same number of places.
 *
 * @param own what the peer of the new connection holds with it; null for a trusted proxy
 */
function connectionToGiveUp(open: Iterable<Connection>, own: HeldSlots | null): Connection | null {
  let found: Connection | null = null
  for (const connection of open) {
    if (connection.held === null || !mayGiveWay(connection, connection.held, own)) continue
    if (found === null || goesBefore(connection, found)) found = connection
  }
  return found
}

function mayGiveWay(connection: Connection, { network, address }: HeldSlots, own: HeldSlots | null): boolean {
  const more =
    network === own?.network ? address.count - own.address.count : network.count - (own?.network.count ?? 1)
  return more > 0 || (more === 0 && useOf(connection) !== IN_USE)
}

function goesBefore(one: Connection, other: Connection): boolean {
  const ofNetwork = (one.held?.network.count ?? 0) - (other.held?.network.count ?? 0)
  if (ofNetwork !== 0) return ofNetwork > 0
  const ofPeer = (one.held?.address.count ?? 0) - (other.held?.address.count ?? 0)
  if (ofPeer !== 0) return ofPeer > 0
  const use = useOf(one)
  const otherUse = useOf(other)
  if (use !== otherUse) return use < otherUse
  return use === UNREAD ? one.stillLooks > other.stillLooks : one.quietSince < other.quietSince
}

const [QUIET, UNREAD, IN_USE] = [0, 1, 2]

/** A request whose body is still to come is none yet: a client that sends it slowly holds its place for nothing. */
function useOf({ latest, requests, stillLooks }: Connection): number {
  if (latest === null || !latest.complete || requests.length === 0) return QUIET
  return stillLooks > 0 ? UNREAD : IN_USE
}

interface Waiting {
  connection: Connection
  bytes: number
}

/**
 * The connections to cut when more bytes wait than may: again and again one of the network for which most bytes wait, there
 * the one with the most bytes, each counted for as long as nothing of them was accepted.
 */
function overfull(open: Iterable<Connection>, mostBytes: number): Connection[] {
  const waiting = waitingOf(open)
  let total = waiting.reduce((sum, { bytes }) => sum + bytes, 0)
  if (total <= mostBytes) return []
  // What waits for a proxy is for many clients: each of its connections stands for itself.
  const byNetwork = new Map<object, Waiting[]>()
  for (const each of waiting) {
    const key = each.connection.held?.network ?? each.connection
    const members = byNetwork.get(key)
    if (members) members.push(each)
    else byNetwork.set(key, [each])
  }
  const groups = [...byNetwork.values()].map((members) => ({
    bytes: members.reduce((sum, { bytes }) => sum + bytes, 0),
    members: members.toSorted((one, other) => weightOf(one) - weightOf(other)),
  }))
  const cut: Connection[] = []
  while (total > mostBytes) {
    const largest = groups.reduce((one, other) => (other.bytes > one.bytes ? other : one))
    const last = largest.members.pop()
    if (last === undefined) break
    largest.bytes -= last.bytes
    total -= last.bytes
    cut.push(last.connection)
  }
  return cut
}

function weightOf({ bytes, connection }: Waiting): number {
  return bytes * (1 + connection.stillLooks)
}

/** What waits for each reader; a body that several are sent, such as a kept page, is in memory once. */
function waitingOf(open: Iterable<Connection>): Waiting[] {
  const unread = [...open].filter(({ socket }) => socket.writableLength > 0)
  const readers = new Map<Buffer, number>()
  const bodies = unread.map(({ requests: [first] }) => first && notesOf(first.response).body)
  for (const body of bodies) if (body) readers.set(body, (readers.get(body) ?? 0) + 1)
  return unread.map((connection, index) => {
    const body = bodies[index]
    return { connection, bytes: connection.socket.writableLength / ((body && readers.get(body)) ?? 1) }
  })
}

/** Progress is a byte that the system accepts; it accepts more whenever the client's system has taken enough. */
function examine(connection: Connection): void {
  const { socket } = connection
  const accepted = acceptedBytes(socket)
  const isStill = socket.writableLength > 0 && accepted <= connection.accepted
  connection.stillLooks = isStill ? connection.stillLooks + 1 : 0
  connection.accepted = accepted
}

/**
 * Node tells in public only of whole writes, and a response may be one write of many megabytes; its own socket timeout
 * reads these two fields too.
 */
function acceptedBytes(socket: Socket): number {
  const { _handle: handle } = socket as unknown as {
    _handle: { bytesWritten: number; writeQueueSize: number } | null
  }
  return handle === null ? socket.bytesWritten : handle.bytesWritten - handle.writeQueueSize
}
