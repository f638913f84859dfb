import { expect, test } from 'vitest'
import { networkReason } from '../../src/domain/refusal.ts'

test('a failure at ten addresses of one host is described once', () => {
  const code = 'ECONNREFUSED'
  const refused = Array.from({ length: 10 }, (_, index) =>
    Object.assign(new Error(`connect ECONNREFUSED 192.0.2.${index}:443`), { code }),
  )
  const all = Object.assign(new AggregateError(refused), { code })
  for (const error of [all, new TypeError('fetch failed', { cause: all })])
    expect(networkReason(error)).toBe('connect ECONNREFUSED 192.0.2.0:443')
})

test('a server without TLS is described without the text of OpenSSL', () => {
  const text =
    'write EPROTO 80DE:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../deps/x.c:354:\n'
  const error = Object.assign(new Error(text), { code: 'EPROTO' })
  expect(networkReason(new TypeError('fetch failed', { cause: error }))).toBe(
    'TLS failed: wrong version number; the port may speak http, not https',
  )
})

test('a failure without a message is described by its code', () => {
  expect(networkReason(Object.assign(new Error(''), { code: 'EPIPE' }))).toBe('EPIPE')
})
