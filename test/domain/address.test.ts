import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  isInRange,
  isPublicAddress,
  parseIpAddress,
  parseIpRange,
  addressHash,
  clientAddress,
  isSameCaller,
  networkOf,
  regionOf,
} from '../../src/domain/address.ts'
import { isHttpUrl } from '../../src/domain/text.ts'
import type { IpRange } from '../../src/domain/address.ts'

const isPublic = (text: string): boolean => {
  const address = parseIpAddress(text)
  if (address === null) throw new Error(`${text} is no address`)
  return isPublicAddress(address)
}

describe('an address', () => {
  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['0.0.0.0', '0.0.0.0'],
    ['::', '0:0:0:0:0:0:0:0'],
    ['::1', '0:0:0:0:0:0:0:1'],
    ['1::', '1:0:0:0:0:0:0:0'],
    ['2001:DB8::a', '2001:db8:0:0:0:0:0:a'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['::ffff:127.0.0.1', '0:0:0:0:0:ffff:7f00:1'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0:0:0:c000:201'],
  ])('the address %s is parsed', (text, address) => {
    expect(parseIpAddress(text)?.toNormalizedString()).toBe(address)
  })

  test.each([
    '', '1', '127.1', '0x7f.0.0.1', '0177.0.0.1', '127.0.0.1.', '256.0.0.1', '1.2.3', '1.2.3.4.5', ' 127.0.0.1', 'localhost',
    ':', ':::', '1::2::3', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7::8:9', '12345::', 'g::', '[::1]',
    'fe80::1%eth0', '::127.0.0', '::ffff:0x7f.0.0.1', '::ffff:0177.0.0.1', '2606::010.0.0.1', '127.0.0.01', '::1.2.3.4.5', '1.2.3.4::', '1:2:3:4:5:6:7:1.2.3.4',
  ])('%j is not parsed as an address', (text) => {
    expect(parseIpAddress(text)).toBeNull()
  }) // prettier-ignore
})

describe('a range', () => {
  test.each([
    ['10.0.0.0/8', '10.255.255.255', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['127.0.0.1', '127.0.0.1', true],
    ['127.0.0.1', '127.0.0.2', false],
    ['0.0.0.0/0', '8.8.8.8', true],
    ['0.0.0.0/0', '::1', false],
    ['::/0', '1.1.1.1', false],
    ['fd00::/8', 'fdff::1', true],
    ['::1/128', '::1', true],
  ])('the range %s holds %s: %s', (text, address, holds) => {
    const [range, parsed] = [parseIpRange(text), parseIpAddress(address)]
    expect(range && parsed && isInRange(parsed, range)).toBe(holds)
  })

  // prettier-ignore
  test.each([
    '', '10.0.0.0/33', '10.0.0.1/8', '::/129', '10.0.0.0/', '10.0.0.0/a', '10/8', 'x/8',
    '1.2.3.4/-1', '/8',
  ])('%j is not parsed as a range', (text) => {
    expect(parseIpRange(text)).toBeNull()
  })
})

test.each(['1.1.1.1', '8.8.8.8', '93.184.216.34', '172.15.0.1', '172.32.0.1', '100.63.255.255', '100.128.0.0', '192.0.1.1',
  '198.20.0.0', '223.255.255.255', '2606:2800:220:1::1', '2001:4860:4860::8888', '2a00::1', '3ffe::1'])(
  '%s is a public address',
  (text) => {
    expect(isPublic(text)).toBe(true)
  },
) // prettier-ignore

test.each(['0.0.0.0', '0.1.2.3', '10.0.0.1', '100.64.0.1', '100.100.100.200', '127.0.0.1', '127.255.255.255', '169.254.169.254',
  '168.63.129.16', '172.16.0.1', '172.31.255.255', '192.0.0.192', '192.0.2.1', '192.88.99.1', '192.168.1.1', '198.18.0.1',
  '198.51.100.1', '203.0.113.1', '224.0.0.1', '239.1.1.1', '240.0.0.1', '255.255.255.255',
  '::', '::1', '::ffff:127.0.0.1', '::ffff:8.8.8.8', '::127.0.0.1', '::8.8.8.8', '64:ff9b::8.8.8.8', '64:ff9b:1::1',
  '2002:7f00:1::', '2002:808:808::1', '2001::1', '2001:db8::1', '3fff::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'fec0::1',
  'ff02::1', '100::1', '5f00::1', '4000::1', '192.175.48.1', '192.31.196.1', '192.52.193.1', '2620:4f:8000::1'])(
  '%s is not a public address',
  (text) => {
    expect(isPublic(text)).toBe(false)
  },
) // prettier-ignore

// prettier-ignore
test.each([
  'http://example.com', 'https://example.com/a?b=c#d', 'HTTPS://EXAMPLE.COM/', 'http://127.0.0.1',
  'https://user:secret@example.com:8443/', 'http://[::1]/', 'https://b\u00fccher.example/\u6f22\u5b57',
  'https://example.com/a b"<>',
])('%s is an absolute http(s) URL', (text) => {
  expect(isHttpUrl(text)).toBe(true)
})

// prettier-ignore
test.each([
  '', 'example.com', '/path', '//example.com/', '?query', 'http:', 'https://', 'http://exa mple.com/',
  'http://example.com:99999/', 'http://[::1', 'ftp://example.com/', 'file:///etc/passwd',
  'javascript:alert(1)', 'data:text/html,https://example.com', 'xhttp://example.com/',
  'httpss://example.com/', 'blob:https://example.com/1',
])('%j is not an http(s) URL', (text) => {
  expect(isHttpUrl(text)).toBe(false)
})

test('a URL is always judged the same, also after many calls', () => {
  const wrong = Array.from({ length: 50_000 }).filter(() => !isHttpUrl('https://\u00ef.at'))
  expect(wrong).toHaveLength(0)
})

const ranges = (...texts: string[]): IpRange[] => texts.flatMap((text) => parseIpRange(text) ?? [])

const TRUSTED = ranges('10.0.0.0/8', 'fd00::/8')

describe('the address of a caller', () => {
  test.each([
    ['::FFFF:cb00:7107', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['/run/dash.sock', 'unknown'],
  ])('the counted address has one spelling of %s', (socket, canonical) => {
    expect(clientAddress(socket, null, [])).toBe(canonical)
  })

  test.each([
    ['2001:db8:1:2::/64', '2001:db8:1::/48', '2001:db8::/32'],
    ['0:0:0:0::/64', '0:0:0::/48', '0:0::/32'],
    ['203.0.113.7', '203.0.113.7', '203.0.113.7'],
    ['unknown', 'unknown', 'unknown'],
  ])('the address %s has the network %s and the region %s', (address, network, region) => {
    expect([networkOf(address), regionOf(address)]).toEqual([network, region])
  })

  test.each([
    ['what the caller wrote before it is not', '10.0.0.1', '6.6.6.6, 198.51.100.9', '198.51.100.9'],
    ['through a chain of proxies', '10.0.0.1', '6.6.6.6, 198.51.100.9, 10.9.9.9', '198.51.100.9'],
    ['with ports', '10.0.0.1', '198.51.100.9:4711', '198.51.100.9'],
    ['with brackets and a port', '10.0.0.1', '[2001:db8::5]:443', '2001:db8:0:0::/64'],
    ['with brackets', '10.0.0.1', '[::ffff:198.51.100.9]', '198.51.100.9'],
    ['with empty elements', '10.0.0.1', ', 198.51.100.9 ,, ', '198.51.100.9'],
    ['without a socket', undefined, '6.6.6.6', 'unknown'],
    ['with an unknown caller', '10.0.0.1', 'unknown', '10.0.0.1'],
    ['with a port that is none', '10.0.0.1', '198.51.100.9:', '10.0.0.1'],
  ])('the counted address: %s', (_, socket, header, counted) => {
    expect(clientAddress(socket, header, TRUSTED)).toBe(counted)
  })

  test("text that a caller writes before a proxy's entry is never the counted address", () => {
    fc.assert(
      fc.property(fc.string(), (written) => {
        expect(clientAddress('10.0.0.1', `${written}, 198.51.100.9`, TRUSTED)).toBe('198.51.100.9')
        expect(clientAddress('203.0.113.7', written, TRUSTED)).toBe('203.0.113.7')
      }),
    )
  })
})

describe('the stored hash of an address', () => {
  const salt = new Uint8Array(32).fill(1)

  test('the hash distinguishes callers of one day, and nothing across days', () => {
    const hash = addressHash(salt, '203.0.113.7')
    expect(hash).toMatch(/^[0-9a-f]{32}$/)
    expect(addressHash(salt, '203.0.113.8')).not.toBe(hash)
    expect(addressHash(new Uint8Array(32).fill(2), '203.0.113.7')).not.toBe(hash)
  })

  test('a session recognises its caller by the hash', () => {
    const ip = addressHash(salt, '203.0.113.7')
    expect(isSameCaller(ip, salt, '203.0.113.7')).toBe(true)
    expect(isSameCaller(ip, salt, '203.0.113.8')).toBe(false)
    expect(isSameCaller(ip, null, '203.0.113.7')).toBe(false)
  })
})
