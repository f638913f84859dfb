import { lookup as systemLookup } from 'node:dns'
import type { LookupAddress, LookupAllOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { isInRange, isPublicAddress, parseIpAddress } from '../../domain/address.ts'
import type { IpRange } from '../../domain/address.ts'
import { openHttpClient } from '../http.ts'
import type { HttpClient } from '../http.ts'
import { PageProblem } from './page-client.ts'

/** Looks up every address of a name; `dns.lookup` has this signature. */
export type NameLookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Ports of public addresses that may be connected to. */
const PUBLIC_PORTS: ReadonlySet<number> = new Set([80, 443])

const CONNECT_MS = 10_000

/**
 * Opens connections to foreign servers that cannot reach private machines (docs/articles.md). The check applies to
 * the address a socket connects to: the addresses of a name are filtered in the lookup for that socket, an address
 * in a URL is checked before the socket is created, and the peer address is checked again after connecting.
 *
 * @param allowed ranges that are reachable although they are not public, on any port
 * @param lookup name lookup; the system's by default
 */
export function openGuardedConnections(
  allowed: readonly IpRange[],
  lookup: NameLookup = systemLookup,
): HttpClient {
  const isReachable = (address: string, port: number): boolean => {
    const parsed = parseIpAddress(address)
    if (parsed === null) return false
    if (allowed.some((range) => isInRange(parsed, range))) return true
    return isPublicAddress(parsed) && PUBLIC_PORTS.has(port)
  }
  const connect: buildConnector.connector = (options, callback) => {
    const port = Number(options.port || (options.protocol === 'https:' ? 443 : 80))
    const host = options.hostname.replace(/^\[(.*)\]$/, '$1')
    if (parseIpAddress(host) !== null && !isReachable(host, port)) {
      callback(privateAddress(host, host, port), null)
      return
    }
    const guarded = guardedLookup(lookup, (address) => isReachable(address, port), port)
    buildConnector({ timeout: CONNECT_MS, lookup: guarded })(options, (error, socket) => {
      if (error) {
        callback(error, null)
        return
      }
      const peer = socket.remoteAddress ?? ''
      if (isReachable(peer, port)) {
        callback(null, socket)
        return
      }
      socket.destroy()
      callback(privateAddress(host, peer, port), null)
    })
  }
  return openHttpClient({
    connect,
    // A page uses the connection of its robots.txt, so its name is not looked up again.
    connections: 1,
    pipelining: 1,
    maxHeaderSize: 32 * 1024,
  })
}

/** Returns a lookup that resolves a name to its reachable addresses only. */
function guardedLookup(
  lookup: NameLookup,
  isReachable: (address: string) => boolean,
  port: number,
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) {
        callback(error, [])
        return
      }
      const reachable = addresses.filter(({ address }) => isReachable(address))
      const [first] = reachable
      const addressList = addresses.map(({ address }) => address).join(', ')
      if (!first) callback(privateAddress(hostname, addressList, port), [])
      else if (options.all === true) callback(null, reachable)
      else callback(null, first.address, first.family)
    })
  }
}

function privateAddress(host: string, addresses: string, port: number): PageProblem {
  const where = host === addresses ? host : `${host} (${addresses || 'no address'})`
  return new PageProblem('private', `${where}, port ${port}, is not a public web address`)
}
