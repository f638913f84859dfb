/** Addresses of the Internet Protocol, as text, and the ranges they lie in. */

export interface IpAddress {
  version: 4 | 6
  value: bigint
}

/** A range of addresses: those whose first `prefix` bits are those of `address`. */
export interface IpRange {
  address: IpAddress
  prefix: number
}

const BITS = { 4: 32, 6: 128 } as const

/** An address in its plain forms (`192.0.2.1`, `2001:db8::1`, `::ffff:192.0.2.1`), or null; no zone, no brackets. */
export function parseIpAddress(text: string): IpAddress | null {
  if (!text.includes(':')) {
    const value = parseIpv4(text)
    return value === null ? null : { version: 4, value }
  }
  const value = parseIpv6(text)
  return value === null ? null : { version: 6, value }
}

/** `10.0.0.0/8`, `fd00::/8`, or one address; null for anything else, such as bits set behind the prefix. */
export function parseIpRange(text: string): IpRange | null {
  const [, base = '', , length] = /^([^/]+)(\/(\d{1,3}))?$/.exec(text) ?? []
  const address = parseIpAddress(base)
  if (address === null) return null
  const bits = BITS[address.version]
  const prefix = length === undefined ? bits : Number(length)
  if (prefix > bits) return null
  const behind = BigInt(bits - prefix)
  return (address.value >> behind) << behind === address.value ? { address, prefix } : null
}

/** True when an address lies in a range; never across versions. */
export function isInRange({ version, value }: IpAddress, { address, prefix }: IpRange): boolean {
  if (version !== address.version) return false
  const behind = BigInt(BITS[version] - prefix)
  return value >> behind === address.value >> behind
}

/**
 * True for an address of the public Internet that belongs to one machine: of IPv4 all but what IANA keeps for private,
 * local, shared, documentation, benchmark, multicast and reserved use; of IPv6 global unicast (`2000::/3`) alone and
 * without the ranges that stand for something else, so that no mapped, translated or tunnelled IPv4 address is one.
 */
export function isPublicAddress(address: IpAddress): boolean {
  if (address.version === 4) return !NOT_PUBLIC_4.some((range) => isInRange(address, range))
  return isInRange(address, GLOBAL_6) && !NOT_PUBLIC_6.some((range) => isInRange(address, range))
}

const range = (text: string): IpRange => {
  const parsed = parseIpRange(text)
  if (parsed === null) throw new Error(`${text} is no range of addresses`)
  return parsed
}

const NOT_PUBLIC_4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8',
  '100.64.0.0/10', // shared by carriers
  '127.0.0.0/8',
  '168.63.129.16/32', // the metadata of a large cloud, at a public address
  '169.254.0.0/16', // link-local, and the metadata of most clouds
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // relays of 6to4
  '192.168.0.0/16',
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4', // multicast
  '240.0.0.0/4',
].map(range)

const GLOBAL_6 = range('2000::/3')

const NOT_PUBLIC_6 = [
  '2001::/23', // Teredo and other protocols
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '3fff::/20', // documentation
].map(range)

function parseIpv4(text: string): bigint | null {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) {
    return null
  }
  return parts.reduce((value, part) => (value << 8n) | BigInt(part), 0n)
}

function parseIpv6(text: string): bigint | null {
  const lastColon = text.lastIndexOf(':')
  const embedded = text.includes('.') ? parseIpv4(text.slice(lastColon + 1)) : undefined
  if (embedded === null) return null
  const hex =
    embedded === undefined
      ? text
      : `${text.slice(0, lastColon)}:${(embedded >> 16n).toString(16)}:${(embedded & 0xffffn).toString(16)}`
  const halves = hex.split('::')
  if (halves.length > 2) return null
  const [head = [], tail = []] = halves.map((half) => (half === '' ? [] : half.split(':')))
  const missing = 8 - head.length - tail.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null
  const groups = [...head, ...Array.from({ length: missing }, () => '0'), ...tail]
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return null
  return groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n)
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
