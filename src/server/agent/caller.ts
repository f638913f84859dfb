import type { H3Event } from 'h3'
import { clientAddress } from '../../domain/agent/client-address.ts'
import { isAllowedOrigin } from '../../domain/agent/origin.ts'
import type { AgentRefusal } from '../../domain/agent/refusals.ts'
import type { IpRange } from '../../domain/ip-address.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { HeadersFor } from '../route.ts'
import type { AgentSettings } from './service.ts'

/** Who asks, as far as the chat and the tools need to know: from which page, and from which address. */
export interface Callers {
  /** What lets pages of allowed origins read an answer, whatever it is. */
  headersFor: HeadersFor
  /**
   * The origin of the page that asks.
   *
   * @throws Refusal `forbidden_origin` for none, and for one that is not allowed
   */
  origin(event: H3Event): string
  /** The address a caller is counted by, canonical. */
  address(event: H3Event): string
}

export function callersOf({
  origins,
  trustedProxies,
}: Pick<AgentSettings, 'origins' | 'trustedProxies'>): Callers {
  const allowed = (event: H3Event): string | null => {
    const origin = event.req.headers.get('origin')
    return isAllowedOrigin(origin, origins()) ? origin : null
  }
  return {
    headersFor(event) {
      const origin = allowed(event)
      if (origin === null) return { vary: 'Origin' }
      return {
        'access-control-allow-origin': origin,
        'access-control-expose-headers': 'Retry-After',
        vary: 'Origin',
      }
    },
    origin(event) {
      const origin = allowed(event)
      if (origin === null) throw new Refusal<AgentRefusal>('forbidden_origin')
      return origin
    },
    address: (event) => addressOf(event, trustedProxies),
  }
}

/** The address a request counts for, canonical, whatever its route. */
export function addressOf(event: H3Event, trustedProxies: readonly IpRange[]): string {
  return clientAddress(
    event.runtime?.node?.req.socket.remoteAddress,
    event.req.headers.get('x-forwarded-for'),
    trustedProxies,
  )
}
