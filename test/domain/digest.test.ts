import { expect, test } from 'vitest'
import { isSha256Hex, sha256Hex, sha256HexToBase64 } from '../../src/domain/digest.ts'

const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
const ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

test('the hash matches the published SHA-256 vectors', () => {
  expect(sha256Hex('')).toBe(EMPTY)
  expect(sha256Hex('abc')).toBe(ABC)
  expect(sha256Hex(new Uint8Array([0x61, 0x62, 0x63]))).toBe(ABC)
})

test('the base64 form holds the raw digest bytes for RFC 9530', () => {
  expect(sha256HexToBase64(ABC)).toBe('ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=')
})

// prettier-ignore
test.each([
  '', ABC.slice(1), `${ABC}0`, ABC.toUpperCase(), `g${ABC.slice(1)}`, `${ABC}\n`, ` ${ABC}`,
  `${ABC.slice(1)}\uff10`, `../${ABC.slice(3)}`,
])('%j is not a digest', (text) => {
  expect(isSha256Hex(text)).toBe(false)
})
