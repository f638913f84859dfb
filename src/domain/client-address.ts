import ipaddr from 'ipaddr.js'
import { areSameBytes, hmacSha256 } from './digest.ts'
import { isInRange, parseIpAddress } from './address.ts'
import type { IpAddress, IpRange } from './address.ts'

/** Stands for a socket without an address. */
const UNKNOWN = 'unknown'

/**
 * The address that limits count by: an IPv4 address, or the /64 of an IPv6 address, in canonical form.
 *
 * This is the socket's address, unless that is a trusted proxy's. Then `X-Forwarded-For` is read from the right, where
 * the proxy appended, and the first address that is not a trusted proxy's counts. An entry that is not an address ends
 * the search, and the last trusted proxy's own address counts, because entries to its left are unverified.
 *
 * @param socketAddress undefined when the socket is closed
 * @param forwardedFor the header value, several joined by commas
 */
export function clientAddress(
  socketAddress: string | undefined,
  forwardedFor: string | null,
  trusted: readonly IpRange[],
): string {
  let counted = parseHop(socketAddress ?? '')
  if (counted === null) return UNKNOWN
  const hops = (forwardedFor ?? '').split(',').map((hop) => hop.trim())
  // Empty list elements are ignored (RFC 9110).
  for (const hop of hops.filter((text) => text !== '').toReversed()) {
    const proxy: IpAddress = counted
    if (!trusted.some((range) => isInRange(proxy, range))) break
    const previous = parseHop(hop)
    if (previous === null) break
    counted = previous
  }
  return canonical(counted)
}

/**
 * The network within which one person can have any number of addresses: the /48 of an IPv6 address, which contains a
 * /56; for IPv4 the address itself.
 */
export function networkOf(canonicalAddress: string): string {
  return canonicalAddress.endsWith('::/64')
    ? `${canonicalAddress.split(':', 3).join(':')}::/48`
    : canonicalAddress
}

/** The region of an address: the /32 of an IPv6 address, which one provider can have; for IPv4 the address itself. */
export function regionOf(canonicalAddress: string): string {
  return canonicalAddress.endsWith('::/64')
    ? `${canonicalAddress.split(':', 2).join(':')}::/32`
    : canonicalAddress
}

/**
 * The key by which connections of a peer are counted: its IPv4 address, or the /64 of its IPv6 address; null for a
 * trusted proxy.
 *
 * @param socketAddress undefined when the socket is closed
 */
export function peerOf(socketAddress: string | undefined, trusted: readonly IpRange[]): string | null {
  const peer = parseHop(socketAddress ?? '')
  if (peer === null) return UNKNOWN
  return trusted.some((range) => isInRange(peer, range)) ? null : canonical(peer)
}

/**
 * The stored form of a caller's address: half of its HMAC-SHA256 under the day's random salt, in hex. It cannot be
 * reversed once the salt is deleted.
 */
export function addressHash(salt: Uint8Array, canonicalAddress: string): string {
  return Buffer.from(hmacSha256(salt, canonicalAddress).subarray(0, HASH_BYTES)).toString('hex')
}

/**
 * True when the session and the request come from the same address.
 *
 * @param ip salted hash in the session
 * @param salt of the session's day; null when it is deleted, which makes the result false
 */
export function isSameCaller(ip: string, salt: Uint8Array | null, canonicalAddress: string): boolean {
  if (salt === null) return false
  return areSameBytes(Buffer.from(ip), Buffer.from(addressHash(salt, canonicalAddress)))
}

const HASH_BYTES = 16

/** `192.0.2.1`, `192.0.2.1:443`, `2001:db8::1`, `[2001:db8::1]:443`, `fe80::1%eth0`; null for anything else. */
function parseHop(text: string): IpAddress | null {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text)?.[1]
  const v4 = /^([\d.]+):\d{1,5}$/.exec(text)?.[1]
  const address = parseIpAddress((bracketed ?? v4 ?? text).replace(/%[\w.-]+$/, ''))
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address
}

function canonical(address: IpAddress): string {
  if (address instanceof ipaddr.IPv4) return address.toString()
  const network = address.parts.slice(0, 4).map((part) => part.toString(16))
  return `${network.join(':')}::/64`
}
