import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { CLOCK_TOLERANCE_MS } from '../../../src/domain/clock-check.ts'
import {
  SESSION_MAX_SECONDS,
  beginSession,
  digestOfKey,
  formatChatKey,
  sessionSigner,
} from '../../../src/domain/agent/credentials.ts'
import { deriveKey } from '../../../src/domain/digest.ts'

const SECRET = 'a secret of at least thirty-two bytes'
const NOW = Date.UTC(2026, 2, 1, 23, 50)
const IP = '0123456789abcdef0123456789abcdef'
const signer = sessionSigner(SECRET)
const session = beginSession(
  Uint8Array.from({ length: 16 }, (_, index) => 240 + index),
  NOW,
  1_800,
  IP,
)
const token = signer.sign(session)

/** A token whose signature is right, whatever is in it. */
function forge(payload: unknown): string {
  const body = typeof payload === 'string' ? payload : JSON.stringify(payload)
  const signed = `v1.${Buffer.from(body).toString('base64url')}`
  const key = deriveKey(SECRET, 'dash agent session token v1')
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
}

describe('a session token', () => {
  test('a session token fits the header, and returns the signed payload to every holder of the secret', () => {
    expect(token).toMatch(/^v1\.[\w-]+\.[\w-]{43}$/)
    expect(token.length).toBeLessThan(512)
    expect(sessionSigner(SECRET).verify(token, NOW)).toEqual({ ok: true, payload: session })
    expect(session).toMatchObject({ v: 1, ip: IP, day: '2026-03-01' })
    expect(session.exp - session.iat).toBe(1_800)
    expect(forge(session)).toBe(token)
  })

  test('a session token is valid past midnight until its last second, not longer, and not by a clock far behind', () => {
    expect(signer.verify(token, NOW + 1_799_999)).toMatchObject({ ok: true })
    expect(signer.verify(token, NOW + 1_800_000)).toEqual({ ok: false, reason: 'expired' })
    expect(signer.verify(forge({ ...session, exp: session.iat + SESSION_MAX_SECONDS }), NOW)).toMatchObject({
      ok: true,
    })
    expect(signer.verify(token, NOW - CLOCK_TOLERANCE_MS)).toMatchObject({ ok: true })
    expect(signer.verify(token, NOW - CLOCK_TOLERANCE_MS - 1)).toEqual({ ok: false, reason: 'expired' })
  })

  const [, body = '', signature = ''] = token.split('.')

  test.each<[string, (string | null)[]]>([
    ['missing', [null, '']],
    [
      'bad_signature',
      [
        sessionSigner(`${SECRET}.`).sign(session),
        `v1.${body.replace(/./, 'f')}.${signature}`,
        `v1.${body}.`,
        `v1.${body}.AAAA`,
        `v1.${body}.${'A'.repeat(43)}`,
      ],
    ],
    // Any spelling but its own: padding, white space, the other alphabet, spare bits, junk between, other parts.
    [
      'malformed',
      // prettier-ignore
      [
        `v1.${body}.${signature}=`, `v1.${body}==.${signature}`, `v1.${body}.${signature} `,
        `v1.${body}.${signature.slice(0, 20)}\n${signature.slice(20)}`,
        `v1.${body}.${signature.replaceAll('-', '+').replaceAll('_', '/')}!`,
        `v1.${body}.${withSpareBits(signature)}`, `v1.${body.slice(0, 4)}*${body.slice(4)}.${signature}`,
        `${token}.x`, 'a.b.c.d', `v2.${body}.${signature}`, `${body}.${signature}`, '..',
        `v1.${'A'.repeat(1_000_000)}.${signature}`, `v1.${body}.${signature}é`,
      ],
    ],
  ])('a session token is %s', (reason, texts) => {
    for (const text of texts)
      expect(signer.verify(text, NOW), text?.slice(-99)).toEqual({ ok: false, reason })
  })

  const { sid: _sid, ...withoutSid } = session
  const { exp: _exp, ...withoutEnd } = session

  test.each<[string, unknown]>([
    ['no session id', withoutSid],
    ['no end', withoutEnd],
    ['times in milliseconds', { ...session, iat: NOW, exp: NOW + 1_800 }],
    ['an end before its beginning', { ...session, exp: session.iat }],
    ['an end after more than a day', { ...session, exp: session.iat + SESSION_MAX_SECONDS + 1 }],
    ['an end that is a text', { ...session, exp: String(session.exp) }],
    ['an end that is no whole second', { ...session, exp: session.exp + 0.5 }],
    ['another version', { ...session, v: 2 }],
    ['a field nobody knows', { ...session, alg: 'none' }],
    ['no real day', { ...session, day: '2026-02-30' }],
    ['null', null],
    ['no JSON', '{'],
  ])('a session token is malformed when its payload, though signed, holds %s', (_, payload) => {
    expect(signer.verify(forge(payload), NOW)).toEqual({ ok: false, reason: 'malformed' })
  })
})

/** The same bytes with other bits in the last character, of which four count. */
function withSpareBits(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = alphabet.indexOf(text.at(-1) ?? '')
  return `${text.slice(0, -1)}${alphabet[last ^ 1]}`
}

test('only a text in the form of a key has a digest', () => {
  const key = formatChatKey(new Uint8Array(32).fill(255))
  expect(digestOfKey(key)).toMatch(/^[0-9a-f]{64}$/)
  for (const other of ['', `${key}x`, key.slice(1), ` ${key}`, key.replace('dck', 'DCK'), `${key}\n`])
    expect(digestOfKey(other)).toBeNull()
})
