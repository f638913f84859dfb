import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  addressHash,
  clientAddress,
  isSameCaller,
  networkOf,
  regionOf,
} from '../../src/domain/client-address.ts'
import { parseIpRange } from '../../src/domain/address.ts'
import type { IpRange } from '../../src/domain/address.ts'

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
    ['2001:db8:1:2::/64', '2001:db8:1::/48'],
    ['0:0:0:0::/64', '0:0:0::/48'],
    ['203.0.113.7', '203.0.113.7'],
    ['unknown', 'unknown'],
  ])('the address %s has the network %s', (address, network) => {
    expect(networkOf(address)).toBe(network)
  })

  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2::/64', '2001:db8::/32'],
    ['0:0:0:0::/64', '0:0::/32'],
    ['unknown', 'unknown'],
  ])('the region of %s is %s', (address, region) => {
    expect(regionOf(address)).toBe(region)
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
