import type { H3Event } from 'h3'
import type { IpRange } from '../domain/address.ts'
import type { AgentRefusal } from '../domain/agent/schema.ts'
import { clientAddress } from '../domain/client-address.ts'
import type { Clock } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import type { HeadersFor } from './route.ts'

export interface CallerSettings {
  trustedProxies: readonly IpRange[]
  /** Origins whose pages may ask; called once the server listens. */
  origins: () => readonly string[]
}

/** Who asks, as far as the chat and the tools need to know: from which page, and from which address. */
export interface Callers {
  /** What lets pages of allowed origins read an answer, whatever it is. */
  headersFor: HeadersFor
  /**
   * The origin of the page that asks.
   *
   * @throws Refusal `forbidden_origin` for none, and for one that is not allowed
   */
  requireOrigin(event: H3Event): string
  /** The address a caller is counted by, canonical. */
  address(event: H3Event): string
}

export function openCallers({ origins, trustedProxies }: CallerSettings): Callers {
  // Exactly as browsers write it: none, `null` and look-alikes are not allowed.
  const allowedOrigin = (event: H3Event): string | null => {
    const origin = event.req.headers.get('origin')
    return origin !== null && origin !== 'null' && origins().includes(origin) ? origin : null
  }
  return {
    headersFor(event) {
      const origin = allowedOrigin(event)
      const exposed = { 'access-control-expose-headers': 'Retry-After' }
      return { ...(origin && { 'access-control-allow-origin': origin, ...exposed }), vary: 'Origin' }
    },
    requireOrigin(event) {
      const origin = allowedOrigin(event)
      if (origin === null) throw new Refusal<AgentRefusal>('forbidden_origin')
      return origin
    },
    address: (event) => addressOf(event, trustedProxies),
  }
}

/** The address a request counts for, canonical, whatever its route. */
export function addressOf(event: H3Event, trustedProxies: readonly IpRange[]): string {
  const socketAddress = event.runtime?.node?.req.socket.remoteAddress
  return clientAddress(socketAddress, event.req.headers.get('x-forwarded-for'), trustedProxies)
}

const MINUTE_MS = 60_000

/**
 * Counts requests of each address in the minute of the clock, in memory; what was counted is forgotten with it.
 *
 * @returns gives the seconds to wait when the address has used up its minute; null when the request is counted and may go on
 */
export function rateLimiter(perMinute: number, clock: Clock): (address: string) => number | null {
  let minute = Number.NaN
  let counts = new Map<string, number>()
  return (address) => {
    const now = clock()
    const current = Math.floor(now / MINUTE_MS)
    if (current !== minute) counts = new Map()
    minute = current
    const count = counts.get(address) ?? 0
    if (count >= perMinute) return Math.ceil(((current + 1) * MINUTE_MS - now) / 1_000)
    counts.set(address, count + 1)
    return null
  }
}
