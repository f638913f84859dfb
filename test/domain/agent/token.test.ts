import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { beginSession, sessionSigner } from '../../../src/domain/agent/token.ts'
import type { SessionPayload } from '../../../src/domain/agent/token.ts'
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

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })

/** A token whose signature is right, whatever is in it. */
function forge(payload: unknown, version = 'v1'): string {
  const body = typeof payload === 'string' ? payload : JSON.stringify(payload)
  const signed = `${version}.${Buffer.from(body).toString('base64url')}`
  const key = deriveKey(SECRET, 'dash agent session token v1')
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
}

describe('a session token', () => {
  test('holds what was signed, for anybody who has the secret', () => {
    expect(token).toMatch(/^v1\.[\w-]+\.[\w-]{43}$/)
    expect(sessionSigner(SECRET).verify(token, NOW)).toEqual({ ok: true, payload: session })
    expect(session).toMatchObject({ v: 1, ip: IP, day: '2026-03-01' })
    expect(session.exp - session.iat).toBe(1_800)
    expect(forge(session)).toBe(token)
  })

  test('verifies for any session, and fits the header', () => {
    fc.assert(
      fc.property(bytes(16), fc.integer({ min: 1, max: 86_400 }), fc.nat(4e12), (random, seconds, now) => {
        const payload = beginSession(random, now, seconds, IP)
        const signed = signer.sign(payload)
        expect(signed.length).toBeLessThan(512)
        expect(signer.verify(signed, now)).toEqual({ ok: true, payload })
      }),
    )
  })

  test('lasts past midnight and until its last second, and not a moment longer', () => {
    expect(signer.verify(token, NOW + 1_799_999)).toMatchObject({ ok: true })
    expect(signer.verify(token, NOW + 1_800_000)).toEqual({ ok: false, reason: 'expired' })
  })

  test('is refused when it is missing', () => {
    expect(signer.verify(null, NOW)).toEqual({ ok: false, reason: 'missing' })
    expect(signer.verify('', NOW)).toEqual({ ok: false, reason: 'missing' })
  })

  test('is refused under another secret, the previous one too', () => {
    const other = sessionSigner(`${SECRET}.`)
    expect(other.verify(token, NOW)).toEqual({ ok: false, reason: 'bad_signature' })
    expect(signer.verify(other.sign(session), NOW)).toEqual({ ok: false, reason: 'bad_signature' })
  })

  const [, body = '', signature = ''] = token.split('.')

  test.each([
    ['padding', `v1.${body}.${signature}=`],
    ['more padding', `v1.${body}==.${signature}`],
    ['a space', `v1.${body}.${signature} `],
    ['a line break', `v1.${body}.${signature.slice(0, 20)}\n${signature.slice(20)}`],
    ['the other alphabet', `v1.${body}.${signature.replaceAll('-', '+').replaceAll('_', '/')}!`],
    ['spare bits', `v1.${body}.${withSpareBits(signature)}`],
    ['junk between', `v1.${body.slice(0, 4)}*${body.slice(4)}.${signature}`],
    ['a fourth part', `${token}.x`],
    ['four parts', 'a.b.c.d'],
    ['another version', `v2.${body}.${signature}`],
    ['no version', `${body}.${signature}`],
    ['a megabyte', `v1.${'A'.repeat(1_000_000)}.${signature}`],
    ['no ASCII', `v1.${body}.${signature}é`],
    ['nothing', '..'],
  ])('is malformed in any spelling but its own: %s', (_, text) => {
    expect(signer.verify(text, NOW)).toEqual({ ok: false, reason: 'malformed' })
  })

  test('is refused with a signature that is empty or short', () => {
    expect(signer.verify(`v1.${body}.`, NOW)).toEqual({ ok: false, reason: 'bad_signature' })
    expect(signer.verify(`v1.${body}.AAAA`, NOW)).toEqual({ ok: false, reason: 'bad_signature' })
  })

  test('never verifies after any change of one character', () => {
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.string({ minLength: 0, maxLength: 2 }), (at, put) => {
        const changed = token.slice(0, at) + put + token.slice(at + 1)
        fc.pre(changed !== token)
        expect(signer.verify(changed, NOW).ok).toBe(false)
      }),
      { numRuns: 1_000 },
    )
  })

  test('never throws, whatever it is', () => {
    const parts = fc.array(fc.oneof(fc.string(), fc.base64String(), fc.constant('v1'), fc.constant(body)))
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          parts.map((each) => each.join('.')),
        ),
        (text) => {
          expect(signer.verify(text, NOW).ok).toBe(false)
        },
      ),
      { numRuns: 1_000 },
    )
  })

  const without = (name: keyof SessionPayload): unknown => {
    const { [name]: _left, ...rest } = session
    return rest
  }

  test.each<[string, unknown]>([
    ['no session id', without('sid')],
    ['no end', without('exp')],
    ['an end in milliseconds', { ...session, exp: session.exp * 1000 }],
    ['times in milliseconds', { ...session, iat: NOW, exp: NOW + 1_800 }],
    ['an end before its beginning', { ...session, exp: session.iat }],
    ['an end that is a text', { ...session, exp: String(session.exp) }],
    ['an end that is no whole second', { ...session, exp: session.exp + 0.5 }],
    ['another version', { ...session, v: 2 }],
    ['a field nobody knows', { ...session, alg: 'none' }],
    ['no real day', { ...session, day: '2026-02-30' }],
    ['a list', [session]],
    ['null', null],
    ['no JSON', '{'],
  ])('is malformed when its payload, though signed, holds %s', (_, payload) => {
    expect(signer.verify(forge(payload), NOW)).toEqual({ ok: false, reason: 'malformed' })
  })
})

/** The same bytes with other bits in the last character, of which four count. */
function withSpareBits(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = alphabet.indexOf(text.at(-1) ?? '')
  return `${text.slice(0, -1)}${alphabet[last ^ 1]}`
}
