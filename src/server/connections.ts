import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { peerOf } from '../domain/agent/client-address.ts'
import type { IpRange } from '../domain/ip-address.ts'
import type { Log } from './log.ts'

/** Bounds of what clients can hold open (docs/operations.md#connections). */
export interface ConnectionBounds {
  /** A client that accepts no byte of a waiting response for so long is cut off. */
  unreadMs: number
  /** Requests of one connection whose responses have not ended. */
  requests: number
  /** Connections of one IPv4 address or IPv6 /64; trusted proxies have no such bound. */
  perPeer: number
  connections: number
  /** Bytes of responses that wait in this process for their readers, over all connections. */
  waitingBytes: number
}

export const CONNECTION_BOUNDS: ConnectionBounds = {
  unreadMs: 30_000,
  requests: 16,
  perPeer: 256,
  connections: 4_096,
  waitingBytes: 128 * 1024 * 1024,
}

/** How often connections are examined within `unreadMs`. */
const LOOKS = 30

type CutReason = 'unread' | 'pipelined' | 'peer_connections' | 'connections' | 'waiting_bytes'

interface Connection {
  /** Null for a trusted proxy. */
  peer: string | null
  /** Handlers of the requests whose responses have not ended, in order; the first one has begun. */
  requests: (() => void)[]
  /** True after a request that must be the last. */
  ending: boolean
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
  receive(socket: Socket, handle: () => void, isLast: boolean): void
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
  const peers = new Map<string, number>()
  const cut = (socket: Socket, code: CutReason): void => {
    if (socket.destroyed) return
    log.warn({ code }, 'connection cut')
    socket.destroy()
  }

  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket.remoteAddress, trustedProxies)
    const held = peer === null ? 0 : (peers.get(peer) ?? 0)
    if (held >= bounds.perPeer) return cut(socket, 'peer_connections')
    if (open.size >= bounds.connections) {
      cut(connectionToGiveUp(open, peers, held) ?? socket, 'connections')
      if (socket.destroyed) return
    }
    if (peer !== null) peers.set(peer, held + 1)
    open.set(socket, { peer, requests: [], ending: false, accepted: 0, stillLooks: 0 })
    const forget = (): void => {
      if (!open.delete(socket) || peer === null) return
      const left = (peers.get(peer) ?? 1) - 1
      if (left === 0) peers.delete(peer)
      else peers.set(peer, left)
    }
    socket.once('close', forget)
  })

  const look = (): void => {
    let waitingBytes = 0
    for (const [socket, connection] of open) {
      waitingBytes += socket.writableLength
      examine(socket, connection)
      // The first still look may follow right after a byte, so that one more makes the time whole.
      if (connection.stillLooks > LOOKS) cut(socket, 'unread')
    }
    if (waitingBytes <= bounds.waitingBytes) return
    const still = [...open].filter(([, { stillLooks }]) => stillLooks > 0)
    for (const [socket] of still.toSorted(([, one], [, other]) => other.stillLooks - one.stillLooks)) {
      if (waitingBytes <= bounds.waitingBytes) return
      waitingBytes -= socket.writableLength
      cut(socket, 'waiting_bytes')
    }
  }
  const looks = setInterval(look, bounds.unreadMs / LOOKS).unref()
  server.once('close', () => clearInterval(looks))

  return {
    receive(socket, handle, isLast) {
      const connection = open.get(socket)
      if (connection === undefined || connection.ending || socket.destroyed) return
      connection.ending = isLast
      connection.requests.push(handle)
      const { length } = connection.requests
      // Node hands over all requests of one chunk, even after the connection was paused.
      if (length > bounds.requests) cut(socket, 'pipelined')
      else if (length === 1) handle()
    },
    answered(socket) {
      const requests = open.get(socket)?.requests
      requests?.shift()
      if (socket.writable) requests?.[0]?.()
    },
    count: () => open.size,
    closeUnused() {
      for (const [socket, { requests }] of open) {
        if (requests.length === 0) socket.end(() => socket.destroy())
      }
    },
  }
}

/**
 * When all places are taken, the peer with the most connections loses the one that has stood still longest, so that many
 * connections of a few peers do not lock out others.
 *
 * @param held connections of the peer that asks for a place
 */
function connectionToGiveUp(
  open: ReadonlyMap<Socket, Connection>,
  peers: ReadonlyMap<string, number>,
  held: number,
): Socket | null {
  let [greatest, most] = ['', held + 1]
  for (const [peer, count] of peers) if (count > most) [greatest, most] = [peer, count]
  let found: [Socket, Connection] | null = null
  for (const each of open) {
    if (each[1].peer === greatest && each[1].stillLooks > (found?.[1].stillLooks ?? -1)) found = each
  }
  return found?.[0] ?? null
}

/** Progress is a byte that the system accepts; it accepts more whenever the client's system has taken enough. */
function examine(socket: Socket, connection: Connection): void {
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
