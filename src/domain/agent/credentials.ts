import { z } from 'zod'
import { CLOCK_TOLERANCE_MS } from '../clock-check.ts'
import { areSameBytes, deriveKey, hmacSha256, sha256Hex } from '../digest.ts'
import { parseJsonBytes } from '../json.ts'
import { dayOf, parseDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'

/** Sessions as signed tokens, `v1.<payload>.<signature>`; the server does not store them (docs/agent-chat.md). */

export interface SessionPayload {
  v: 1
  /** Session id that quotas count by: 128 random bits. Quotas never count by the token text. */
  sid: string
  /** Seconds since the epoch. */
  iat: number
  /** Seconds since the epoch; from then on the token is expired. */
  exp: number
  /** Salted hash of the address that started the session. */
  ip: string
  /** The UTC day of that salt. */
  day: Day
}

/** Reasons to reject a token: `reason` of 401 `invalid_session`. Only {@link isSameCaller} decides `ip_mismatch`. */
export type TokenProblem = 'missing' | 'malformed' | 'bad_signature' | 'expired' | 'ip_mismatch'

type Verification = { ok: true; payload: SessionPayload } | { ok: false; reason: TokenProblem }

export interface SessionSigner {
  sign(payload: SessionPayload): string
  /**
   * A token of the future, by a clock that was ahead, counts as expired: it would outlast its lifetime.
   *
   * @param token as it came, whatever it is; null where there was none
   */
  verify(token: string | null, now: Instant): Verification
}

export const SESSION_ID_BYTES = 16

/** Longest session: one day (docs/configuration.md). */
export const SESSION_MAX_SECONDS = 86_400

const TOKEN_MAX_LENGTH = 1024
const VERSION = 'v1'

const payloadSchema = z
  .strictObject({
    v: z.literal(1),
    sid: z.string().regex(/^[A-Za-z0-9_-]{22}$/),
    iat: z.int().nonnegative(),
    exp: z.int(),
    ip: z.string().regex(/^[0-9a-f]{32}$/),
    day: z.string().refine((day) => parseDay(day) !== null),
  })
  // Rejects milliseconds in place of seconds, which would give a token that never expires.
  .refine(({ iat, exp }) => exp > iat && exp - iat <= SESSION_MAX_SECONDS && iat < 1e11)

/**
 * Creates the payload of a session that starts now.
 *
 * @param random 16 random bytes
 * @param seconds lifetime of the session
 * @param ip salted hash of the caller's address under the salt of the day of `now`
 */
export function beginSession(random: Uint8Array, now: Instant, seconds: number, ip: string): SessionPayload {
  const iat = Math.floor(now / 1000)
  const sid = Buffer.from(random).toString('base64url')
  return { v: 1, sid, iat, exp: iat + seconds, ip, day: dayOf(now) }
}

/**
 * Creates a signer and verifier of sessions.
 *
 * @param secret at least 32 bytes; a change invalidates every token
 */
export function sessionSigner(secret: string): SessionSigner {
  const key = deriveKey(secret, 'dash agent session token v1')
  const signatureOf = (signed: string): Uint8Array => hmacSha256(key, signed)
  return {
    sign(payload) {
      const signed = `${VERSION}.${encode(JSON.stringify(payload))}`
      return `${signed}.${encode(signatureOf(signed))}`
    },
    verify(token, now) {
      if (token === null || token === '') return rejected('missing')
      // The signature is verified before the payload is parsed.
      const [version, body, signature, ...rest] = token.length > TOKEN_MAX_LENGTH ? [] : token.split('.')
      if (version !== VERSION || body === undefined || signature === undefined || rest.length > 0) {
        return rejected('malformed')
      }
      const [bytes, given] = [decode(body), decode(signature)]
      if (bytes === null || given === null) return rejected('malformed')
      if (!areSameBytes(given, signatureOf(`${VERSION}.${body}`))) return rejected('bad_signature')
      // A correctly signed payload of another release may be invalid.
      const payload = payloadSchema.safeParse(parseJsonBytes(bytes)).data
      if (!payload) return rejected('malformed')
      const isCurrent = payload.iat * 1000 <= now + CLOCK_TOLERANCE_MS && now < payload.exp * 1000
      return isCurrent ? { ok: true, payload } : rejected('expired')
    },
  }
}

function rejected(reason: TokenProblem): Verification {
  return { ok: false, reason }
}

function encode(bytes: string | Uint8Array): string {
  return Buffer.from(bytes).toString('base64url')
}

/** Decodes canonical base64url; null for any other spelling, which Node would accept. */
function decode(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : null
}

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
