import type { H3Event } from 'h3'
import type { IpRange } from '../domain/address.ts'
import type { AgentRefusal } from '../domain/agent/schema.ts'
import { clientAddress } from '../domain/address.ts'
import type { Clock } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import type { HeadersFor } from './route.ts'

export interface CallerSettings {
  trustedProxies: readonly IpRange[]
  /** Origins whose pages may send requests; called once the server listens. */
  origins: () => readonly string[]
}

/** Identifies the caller of a request by origin and address, for the chat and the tools. */
export interface Callers {
  /** CORS headers that let pages of allowed origins read any response. */
  headersFor: HeadersFor
  /**
   * The origin of the requesting page.
   *
   * @throws Refusal `forbidden_origin` if it is missing or not allowed
   */
  requireOrigin(event: H3Event): string
  /** The canonical address that a caller is counted by. */
  address(event: H3Event): string
}

export function openCallers({ origins, trustedProxies }: CallerSettings): Callers {
  // Compare exactly: a missing origin, `null` and look-alikes are not allowed.
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

/** The canonical address that a request is counted by, on every route. */
export function addressOf(event: H3Event, trustedProxies: readonly IpRange[]): string {
  const socketAddress = event.runtime?.node?.req.socket.remoteAddress
  return clientAddress(socketAddress, event.req.headers.get('x-forwarded-for'), trustedProxies)
}

const MINUTE_MS = 60_000

/** Counts an event of an address; returns the seconds to wait if the limit is reached, else null. */
type CountEvent = (address: string) => number | null

/** Limits events per address and clock minute, in memory; counts are dropped at the end of the minute. */
export function addressLimit(perMinute: number, clock: Clock): CountEvent {
  let minute = Number.NaN
  let counts = new Map<string, number>()
  return (address) => {
    const now = clock()
    const current = Math.floor(now / MINUTE_MS)
    if (current !== minute) counts = new Map()
    minute = current
    const counted = counts.get(address) ?? 0
    if (counted >= perMinute) return Math.ceil(((current + 1) * MINUTE_MS - now) / 1_000)
    counts.set(address, counted + 1)
    return null
  }
}
