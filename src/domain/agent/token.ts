import { z } from 'zod'
import { areSameBytes, deriveKey, hmacSha256 } from '../digest.ts'
import { dayOf, parseDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'

/** Sessions as signed tokens, `v1.<payload>.<signature>`: nothing of them is stored (docs/agent-chat.md). */

export interface SessionPayload {
  v: 1
  /** What quotas count by: 128 random bits. The token itself is none: nobody may have two of one session. */
  sid: string
  /** Seconds since the epoch. */
  iat: number
  /** Seconds since the epoch; from then on the token is expired. */
  exp: number
  /** Salted hash of the address the session was made from. */
  ip: string
  /** The UTC day whose salt that is. */
  day: Day
}

/** Why a token is refused: `reason` of 401 `invalid_session`. `ip_mismatch` is told by {@link isSameCaller} alone. */
export type TokenProblem = 'missing' | 'malformed' | 'bad_signature' | 'expired' | 'ip_mismatch'

type Verification = { ok: true; payload: SessionPayload } | { ok: false; reason: TokenProblem }

export interface SessionSigner {
  sign(payload: SessionPayload): string
  /** @param token as it came, whatever it is; null where there was none */
  verify(token: string | null, now: Instant): Verification
}

export const SESSION_ID_BYTES = 16

/** The longest session there is: a day (docs/configuration.md). */
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
  // Milliseconds where seconds belong would make a token that outlives everybody.
  .refine(({ iat, exp }) => exp > iat && exp - iat <= SESSION_MAX_SECONDS && iat < 1e11)

/**
 * A session that begins now.
 *
 * @param random 16 random bytes
 * @param seconds how long it lasts
 * @param ip salted hash of the caller's address under the salt of the day of `now`
 */
export function beginSession(random: Uint8Array, now: Instant, seconds: number, ip: string): SessionPayload {
  const iat = Math.floor(now / 1000)
  const sid = Buffer.from(random).toString('base64url')
  return { v: 1, sid, iat, exp: iat + seconds, ip, day: dayOf(now) }
}

/**
 * Signs sessions and verifies them, under one secret that is not kept elsewhere.
 *
 * @param secret at least 32 bytes; another one makes every token of this one worthless
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
      // Nothing is parsed before the signature has been found right.
      const [version, body, signature, ...rest] = token.length > TOKEN_MAX_LENGTH ? [] : token.split('.')
      if (version !== VERSION || body === undefined || signature === undefined || rest.length > 0) {
        return rejected('malformed')
      }
      const [bytes, given] = [decode(body), decode(signature)]
      if (bytes === null || given === null) return rejected('malformed')
      if (!areSameBytes(given, signatureOf(`${VERSION}.${body}`))) return rejected('bad_signature')
      const payload = parsePayload(bytes)
      if (payload === null) return rejected('malformed')
      return now < payload.exp * 1000 ? { ok: true, payload } : rejected('expired')
    },
  }
}

function rejected(reason: TokenProblem): Verification {
  return { ok: false, reason }
}

function parsePayload(bytes: Uint8Array): SessionPayload | null {
  try {
    return payloadSchema.parse(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
  } catch {
    // Signed by us and yet not ours: written by another release.
    return null
  }
}

function encode(bytes: string | Uint8Array): string {
  return Buffer.from(bytes).toString('base64url')
}

/** The bytes of base64url in its canonical form; null for any other spelling, which Node would decode as well. */
function decode(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : null
}
