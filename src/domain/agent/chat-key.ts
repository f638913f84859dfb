import { sha256Hex } from '../digest.ts'
import type { Instant } from '../time.ts'

/** Keys of servers that call the chat (docs/agent-chat.md#keys-for-servers). */

/** Random bytes of a key: too many to guess, so that a plain digest protects it. */
export const CHAT_KEY_BYTES = 32

const PREFIX = 'dck_'
const KEY_PATTERN = /^dck_[A-Za-z0-9_-]{43}$/

/** Longest name of a key, in characters. */
export const CHAT_KEY_NAME_MAX_LENGTH = 64

/** Largest quota of a key. */
export const CHAT_KEY_QUOTA_MAX = 1_000_000

/** Turns that a key may start. */
export interface ChatKeyQuota {
  /** In one UTC day. */
  perDay: number
  /** In any 60 seconds. */
  perMinute: number
}

/** A key that a caller may use. */
export interface ChatKey extends ChatKeyQuota {
  id: number
}

export interface NewChatKey extends ChatKeyQuota {
  name: string
  /** Digest of the key ({@link digestOfKey}). */
  digest: string
  createdAt: Instant
}

/** A key as an operator sees it. */
export interface StoredChatKey extends Omit<NewChatKey, 'digest'> {
  /** Null while the key is active. */
  revokedAt: Instant | null
  usedToday: number
}

/** @param random {@link CHAT_KEY_BYTES} random bytes */
export function formatChatKey(random: Uint8Array): string {
  return `${PREFIX}${Buffer.from(random).toString('base64url')}`
}

/**
 * The digest under which a key is stored and found: SHA-256, in hex. A lookup by it takes no longer for a key that
 * resembles a stored one. Null for a text that is no key.
 */
export function digestOfKey(key: string): string | null {
  return KEY_PATTERN.test(key) ? sha256Hex(key) : null
}

/** Returns the name if it can name a key: 1 to 64 letters, digits, dots, hyphens and underscores; else null. */
export function parseKeyName(name: string): string | null {
  return name.length <= CHAT_KEY_NAME_MAX_LENGTH && /^[\w.-]+$/.test(name) ? name : null
}

/** The caller that the turns of a key are counted by. No hash of an address has its form. */
export function keyCaller(id: number): string {
  return `key:${id}`
}
