import { createHmac, hash, hkdfSync, timingSafeEqual } from 'node:crypto'

/** SHA-256 of bytes or of a text's UTF-8 bytes, as 64 lower-case hex digits. */
export function sha256Hex(bytes: Uint8Array | string): string {
  return hash('sha256', bytes, 'hex')
}

/** The raw 32 digest bytes in base64, as RFC 9530 digest fields carry them. */
export function sha256HexToBase64(hex: string): string {
  return Buffer.from(hex, 'hex').toString('base64')
}

/** True for 64 lower-case hex digits and nothing else. A digest read from a store must pass before it names a path. */
export function isSha256Hex(value: string): boolean {
  return /^[0-9a-f]{64}$/.test(value)
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
