import fc from 'fast-check'
import { expect, test } from 'vitest'
import { uriOf } from '../../../src/server/feed/subscription-feed.ts'

test.each([
  ['https://example.com', 'https://example.com/'],
  ['HTTP://EXAMPLE.com:80/A b?c d#e f', 'http://example.com/A%20b?c%20d#e%20f'],
  ['https://example.com/{a}|^`\\?q=[1]|{}', 'https://example.com/%7Ba%7D%7C%5E%60/?q=%5B1%5D%7C%7B%7D'],
  ['https://[::1]:8080/[x]', 'https://[::1]:8080/%5Bx%5D'],
  ['https://bücher.example/größe', 'https://xn--bcher-kva.example/gr%C3%B6%C3%9Fe'],
  ['https://user:p%40ss@example.com/', 'https://user:p%40ss@example.com/'],
  ['https://example.com/?q=%26&a="<>\'', 'https://example.com/?q=%26&a=%22%3C%3E%27'],
])('makes of %s a URI', (url, uri) => {
  expect(uriOf(url)).toBe(uri)
})

test('has only characters a URI may have, and leads where the URL leads', () => {
  fc.assert(
    fc.property(fc.webPath(), fc.string({ unit: 'binary-ascii' }), (path, query) => {
      const url = `https://example.com${path}?${query}`
      const uri = uriOf(url)
      expect(uri).toMatch(/^[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]*$/)
      const decoded = (text: string): string =>
        text.replaceAll(/%(5B|5C|5D|5E|60|7B|7C|7D)/g, (code) => decodeURIComponent(code))
      expect(decoded(uri)).toBe(decoded(new URL(url).href))
    }),
  )
})
