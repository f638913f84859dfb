import { hash } from 'node:crypto'

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
