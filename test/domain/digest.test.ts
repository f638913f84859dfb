import { describe, expect, test } from 'vitest'
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

test('the hash matches the published SHA-256 vectors', () => {
  expect(sha256Hex('')).toBe(EMPTY)
  expect(sha256Hex('abc')).toBe(ABC)
  expect(sha256Hex(new Uint8Array([0x61, 0x62, 0x63]))).toBe(ABC)
})

test('the raw digest has the bytes of the hex digits', () => {
  expect(Buffer.from(sha256(new Uint8Array([0x61, 0x62, 0x63]))).toString('hex')).toBe(ABC)
})

test('the base64 form holds the raw digest bytes for RFC 9530', () => {
  expect(sha256HexToBase64(ABC)).toBe('ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=')
})

// prettier-ignore
test.each([
    `${ABC}0`, ABC.toUpperCase(),   
])('%j is not a digest', (text) => {
  expect(isSha256Hex(text)).toBe(false)
})

test('base64 decodes "AA==" to bytes that encode to it', () => {
  expect(encodeBase64(decodeBase64('AA==') ?? new Uint8Array(9))).toBe('AA==')
})

test('base64 refuses "A", which is not canonical', () => {
  expect(decodeBase64('A')).toBeNull()
})

describe('Ed25519', () => {
  const bytes = (hex: string): Uint8Array => Buffer.from(hex, 'hex')

  // RFC 8032, 7.1: tests 1, 2 and 3.
  // prettier-ignore
  const VECTORS = [
    [
      '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', '',
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    ],
    [
      '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
      '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c', '72',
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    ],
    [
      'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
      'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025', 'af82',
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
    ],
  ] as const

  test.each(VECTORS)('signs the published vector of seed %s', (seed, publicKey, message, signature) => {
    expect(Buffer.from(ed25519PublicKey(bytes(seed))).toString('hex')).toBe(publicKey)
    expect(Buffer.from(signEd25519(bytes(seed), bytes(message))).toString('hex')).toBe(signature)
    expect(isEd25519Signature(bytes(publicKey), bytes(message), bytes(signature))).toBe(true)
    expect(isEd25519Signature(bytes(publicKey), bytes(`${message}00`), bytes(signature))).toBe(false)
  })
})
