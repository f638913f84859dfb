import ipaddr from 'ipaddr.js'

/** Addresses of the Internet Protocol, as text, and the ranges they lie in. */

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6

/** A range of addresses: those whose first `prefix` bits are those of `address`. */
export interface IpRange {
  address: IpAddress
  prefix: number
}

/** The longest address, of eight groups that end in IPv4. */
const ADDRESS_MAX_LENGTH = 45

/** An address in its plain forms (`192.0.2.1`, `2001:db8::1`, `::ffff:192.0.2.1`), or null; no zone, no brackets. */
export function parseIpAddress(text: string): IpAddress | null {
  // The library also reads zones, and octal, hexadecimal and shortened IPv4 addresses.
  if (text.length > ADDRESS_MAX_LENGTH || text.includes('%')) return null
  const dotted = text.slice(text.lastIndexOf(':') + 1)
  if (text.includes('.') && !ipaddr.IPv4.isValidFourPartDecimal(dotted)) return null
  if (dotted === text) return text.includes('.') ? ipaddr.IPv4.parse(text) : null
  return ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : null
}

/** `10.0.0.0/8`, `fd00::/8`, or one address; null for anything else, such as bits set behind the prefix. */
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

/** True when an address lies in a range; never across versions. */
export function isInRange(address: IpAddress, range: IpRange): boolean {
  return address.kind() === range.address.kind() && address.match(range.address, range.prefix)
}

/** IPv6 addresses given out so far for machines. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

/** The metadata of a large cloud, at a public address. */
const CLOUD_METADATA = '168.63.129.16'

/**
 * True for an address of the public Internet that belongs to one machine: of IPv4 all but what IANA keeps for private,
 * local, shared, documentation, benchmark, multicast and reserved use; of IPv6 global unicast (`2000::/3`) alone and
 * without the ranges that stand for something else, so that no mapped, translated or tunnelled IPv4 address is one.
 */
export function isPublicAddress(address: IpAddress): boolean {
  if (address.range() !== 'unicast' || address.toString() === CLOUD_METADATA) return false
  return address.kind() === 'ipv4' || address.match(GLOBAL_UNICAST)
}

/**
 * True when a text parses as an absolute http or https URL (docs/importing.md).
 *
 * The constructor is asked, not `URL.canParse`, which on Node 20 and 22 refuses some valid hosts after it has been
 * called often (`https://\u00ef.at`).
 */
export function isHttpUrl(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol)
  } catch {
    return false
  }
}
