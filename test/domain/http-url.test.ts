import { expect, test } from 'vitest'
import { isHttpUrl } from '../../src/domain/http-url.ts'

test.each([
  'http://example.com',
  'https://example.com/a?b=c#d',
  'HTTPS://EXAMPLE.COM/',
  'https://user:secret@example.com:8443/',
  'http://127.0.0.1',
  'http://[::1]/',
  'https://b\u00fccher.example/\u6f22\u5b57',
  'https://example.com/a b"<>',
])('%s is an absolute http(s) URL', (text) => {
  expect(isHttpUrl(text)).toBe(true)
})

test.each([
  '',
  'example.com',
  '/path',
  '//example.com/',
  '?query',
  'http:',
  'https://',
  'http://exa mple.com/',
  'http://example.com:99999/',
  'http://[::1',
  'ftp://example.com/',
  'file:///etc/passwd',
  'javascript:alert(1)',
  'data:text/html,https://example.com',
  'xhttp://example.com/',
  'httpss://example.com/',
  'blob:https://example.com/1',
])('%j is none', (text) => {
  expect(isHttpUrl(text)).toBe(false)
})

test('the answer stays the same however often it is asked', () => {
  const wrong = Array.from({ length: 50_000 }).filter(() => !isHttpUrl('https://\u00ef.at'))
  expect(wrong).toHaveLength(0)
})
