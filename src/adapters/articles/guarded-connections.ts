import { lookup as systemLookup } from 'node:dns'
import type { LookupAddress, LookupAllOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { isInRange, isPublicAddress, parseIpAddress } from '../../domain/address.ts'
import type { IpRange } from '../../domain/address.ts'
import { openHttpClient } from '../http.ts'
import type { HttpClient } from '../http.ts'
import { PageProblem } from './page-client.ts'

/** Asks for every address of a name; `dns.lookup` has this form. */
export type NameLookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Ports of public addresses that pages are read from. */
const PUBLIC_PORTS: ReadonlySet<number> = new Set([80, 443])

const CONNECT_MS = 10_000

/**
 * Connections to strangers' servers that reach no machine they should not (docs/articles.md). What is judged is the
 * address a socket is connected to: a name's addresses are filtered as they are looked up for that very socket, an
 * address in a URL before the socket is made, and the peer of the socket once more when it stands.
 *
 * @param allowed ranges that may be reached although they are not public, and on any port
 * @param lookup how names are looked up; the system's way unless a test has its own
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
    // The page comes over the connection of its robots.txt, so that its name is not looked up again.
    connections: 1,
    pipelining: 1,
    maxHeaderSize: 32 * 1024,
  })
}

/** Looks a name up and gives only addresses that may be reached, whatever else it stands for. */
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
  return new PageProblem('private', `${where}, port ${port}, is not a public place of pages`)
}
