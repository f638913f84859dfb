import { expect, test } from 'vitest'
import { isHttpUrl } from '../../src/domain/http-url.ts'
import { networkReason } from '../../src/domain/refusal.ts'

// prettier-ignore
test.each([
  'http://example.com', 'https://example.com/a?b=c#d', 'HTTPS://EXAMPLE.COM/', 'http://127.0.0.1',
  'https://user:secret@example.com:8443/', 'http://[::1]/', 'https://b\u00fccher.example/\u6f22\u5b57',
  'https://example.com/a b"<>',
])('%s is an absolute http(s) URL', (text) => {
  expect(isHttpUrl(text)).toBe(true)
})

// prettier-ignore
test.each([
  '', 'example.com', '/path', '//example.com/', '?query', 'http:', 'https://', 'http://exa mple.com/',
  'http://example.com:99999/', 'http://[::1', 'ftp://example.com/', 'file:///etc/passwd',
  'javascript:alert(1)', 'data:text/html,https://example.com', 'xhttp://example.com/',
  'httpss://example.com/', 'blob:https://example.com/1',
])('%j is none', (text) => {
  expect(isHttpUrl(text)).toBe(false)
})

test('the answer stays the same however often it is asked', () => {
  const wrong = Array.from({ length: 50_000 }).filter(() => !isHttpUrl('https://\u00ef.at'))
  expect(wrong).toHaveLength(0)
})

test('a failure at ten addresses of one host is described once', () => {
  const code = 'ECONNREFUSED'
  const refused = Array.from({ length: 10 }, (_, index) =>
    Object.assign(new Error(`connect ECONNREFUSED 192.0.2.${index}:443`), { code }),
  )
  const all = Object.assign(new AggregateError(refused), { code })
  for (const error of [all, new TypeError('fetch failed', { cause: all })])
    expect(networkReason(error)).toBe('connect ECONNREFUSED 192.0.2.0:443')
})

test('a failure without a message is described by its code', () => {
  expect(networkReason(Object.assign(new Error(''), { code: 'EPIPE' }))).toBe('EPIPE')
})
