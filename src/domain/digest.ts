import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  hash,
  hkdfSync,
  sign,
  timingSafeEqual,
  verify,
} from 'node:crypto'

/** SHA-256 of bytes or of a text's UTF-8 bytes, as 64 lower-case hex digits. */
export function sha256Hex(bytes: Uint8Array | string): string {
  return hash('sha256', bytes, 'hex')
}

export function sha256(bytes: Uint8Array): Uint8Array {
  return hash('sha256', bytes, 'buffer')
}

/** The raw 32 digest bytes in base64, as RFC 9530 digest fields carry them. */
export function sha256HexToBase64(hex: string): string {
  return Buffer.from(hex, 'hex').toString('base64')
}

/** SHA-256 as 64 lower-case hexadecimal digits. */
export const SHA256_HEX = /^[0-9a-f]{64}$/

/** True for {@link SHA256_HEX} and nothing else. A digest read from a store must pass before it names a path. */
export function isSha256Hex(value: string): boolean {
  return SHA256_HEX.test(value)
}

/** HMAC-SHA256 of a text's UTF-8 bytes: 32 bytes. */
export function hmacSha256(key: Uint8Array, text: string): Uint8Array {
  return createHmac('sha256', key).update(text, 'utf8').digest()
}

/** Derives a key of 32 bytes for one purpose by HKDF-SHA256, so that no two purposes share a key. */
export function deriveKey(secret: string, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', purpose, 32))
}

/** Compares bytes in constant time. */
export function areSameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.byteLength === right.byteLength && timingSafeEqual(left, right)
}

export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

/** Decodes canonical base64; null for other texts, which Node would partly decode too. */
export function decodeBase64(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : null
}

/** DER prefixes of an Ed25519 key of 32 bytes: PKCS #8 for a seed, SPKI for a public key (RFC 8410). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')

/** Length of an Ed25519 seed and of a public key, in bytes. */
export const ED25519_KEY_BYTES = 32

/** Length of an Ed25519 signature, in bytes. */
export const ED25519_SIGNATURE_BYTES = 64

export function ed25519PublicKey(seed: Uint8Array): Uint8Array {
  const spki = createPublicKey(ed25519PrivateKey(seed)).export({ type: 'spki', format: 'der' })
  return spki.subarray(SPKI_PREFIX.length)
}

/** Returns the Ed25519 signature of a message: 64 bytes, always the same for the same seed and message. */
export function signEd25519(seed: Uint8Array, message: Uint8Array): Uint8Array {
  return sign(null, message, ed25519PrivateKey(seed))
}

export function isEd25519Signature(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  const der = Buffer.concat([SPKI_PREFIX, publicKey])
  return verify(null, message, createPublicKey({ key: der, format: 'der', type: 'spki' }), signature)
}

function ed25519PrivateKey(seed: Uint8Array): ReturnType<typeof createPrivateKey> {
  const der = Buffer.concat([PKCS8_PREFIX, seed])
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
}
