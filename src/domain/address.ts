import ipaddr from 'ipaddr.js'
import { areSameBytes, hmacSha256 } from './digest.ts'

/** IP addresses and address ranges. */

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6

/** A range: the addresses that share the first `prefix` bits with `address`. */
export interface IpRange {
  address: IpAddress
  prefix: number
}

/** Longest text of an address: eight groups that end in IPv4. */
const ADDRESS_MAX_LENGTH = 45

/**
 * Parses a plain address (`192.0.2.1`, `2001:db8::1`, `::ffff:192.0.2.1`), without zone or brackets; null otherwise.
 */
export function parseIpAddress(text: string): IpAddress | null {
  // The library also reads zones, and octal, hexadecimal and shortened IPv4 addresses.
  if (text.length > ADDRESS_MAX_LENGTH || text.includes('%')) return null
  const dotted = text.slice(text.lastIndexOf(':') + 1)
  if (text.includes('.') && !ipaddr.IPv4.isValidFourPartDecimal(dotted)) return null
  if (dotted === text) return text.includes('.') ? ipaddr.IPv4.parse(text) : null
  return ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : null
}

/** Parses `10.0.0.0/8`, `fd00::/8` or one address; null for anything else, including bits set after the prefix. */
export function parseIpRange(text: string): IpRange | null {
  const [, base = '', length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const address = parseIpAddress(base)
  if (address === null) return null
  const bits = 8 * address.toByteArray().length
  const prefix = Number(length ?? bits)
  if (prefix > bits) return null
  const version = address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6
  const network = version.networkAddressFromCIDR(`${base}/${prefix}`)
  return network.toString() === address.toString() ? { address, prefix } : null
}

/** True when an address lies in a range of the same IP version. */
export function isInRange(address: IpAddress, range: IpRange): boolean {
  return address.kind() === range.address.kind() && address.match(range.address, range.prefix)
}

/** The IPv6 range assigned to machines. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

/** The metadata service of a large cloud provider, which has a public address. */
const CLOUD_METADATA = '168.63.129.16'

/**
 * True for a public Internet address of one machine. IPv4: everything except the private, local, shared, documentation,
 * benchmark, multicast and reserved ranges of IANA. IPv6: global unicast (`2000::/3`) without the special ranges inside
 * it, so that no mapped, translated or tunnelled IPv4 address passes.
 */
export function isPublicAddress(address: IpAddress): boolean {
  if (address.range() !== 'unicast' || address.toString() === CLOUD_METADATA) return false
  return address.kind() === 'ipv4' || address.match(GLOBAL_UNICAST)
}

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
