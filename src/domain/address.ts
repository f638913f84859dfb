import ipaddr from 'ipaddr.js'

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

/**
 * True for an absolute http or https URL (docs/importing.md).
 *
 * Uses the constructor, because `URL.canParse` on Node 20 and 22 rejects some valid hosts after many calls
 * (`https://\u00ef.at`).
 */
export function isHttpUrl(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol)
  } catch {
    return false
  }
}
