import { expect, test } from 'vitest'
import {
  decodeBase64,
  ed25519PublicKey,
  encodeBase64,
  isEd25519Signature,
  isSha256Hex,
  sha256,
  sha256Hex,
  sha256HexToBase64,
  signEd25519,
} from '../../src/domain/digest.ts'

const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
const ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

test('the hash matches the published SHA-256 vectors, as digits, bytes and base64 of RFC 9530', () => {
  expect(sha256Hex('')).toBe(EMPTY)
  expect(sha256Hex('abc')).toBe(ABC)
  const bytes = new Uint8Array([0x61, 0x62, 0x63])
  expect(sha256Hex(bytes)).toBe(ABC)
  expect(Buffer.from(sha256(bytes)).toString('hex')).toBe(ABC)
  expect(sha256HexToBase64(ABC)).toBe('ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=')
})

test('digits of another number or in capitals are not a digest', () => {
  expect([ABC, `${ABC}0`, ABC.toUpperCase()].map(isSha256Hex)).toEqual([true, false, false])
})

test('base64 decodes to bytes that encode to it, and is refused unless it is canonical', () => {
  expect(encodeBase64(decodeBase64('AA==') ?? new Uint8Array(9))).toBe('AA==')
  expect(['A', 'AB==', 'AA'].map(decodeBase64)).toEqual([null, null, null])
})

test('a key signs as the second published vector of RFC 8032', () => {
  const bytes = (hex: string): Uint8Array => Buffer.from(hex, 'hex')
  const seed = bytes('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb')
  const publicKey = bytes('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c')
  const signature =
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00'
  expect(Buffer.from(ed25519PublicKey(seed))).toEqual(publicKey)
  expect(Buffer.from(signEd25519(seed, bytes('72'))).toString('hex')).toBe(signature)
  expect(isEd25519Signature(publicKey, bytes('72'), bytes(signature))).toBe(true)
  expect(isEd25519Signature(publicKey, bytes('7200'), bytes(signature))).toBe(false)
})
