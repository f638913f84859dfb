import fc from 'fast-check'
import { expect, test } from 'vitest'
import { uriOf } from '../../../src/server/feed/feeds.ts'

test.each([
  ['https://example.com', 'https://example.com/'],
  ['HTTP://EXAMPLE.com:80/A b?c d#e f', 'http://example.com/A%20b?c%20d#e%20f'],
  ['https://example.com/{a}|^`\\?q=[1]|{}', 'https://example.com/%7Ba%7D%7C%5E%60/?q=%5B1%5D%7C%7B%7D'],
  ['https://[::1]:8080/[x]', 'https://[::1]:8080/%5Bx%5D'],
  ['https://bücher.example/größe', 'https://xn--bcher-kva.example/gr%C3%B6%C3%9Fe'],
  ['https://user:p%40ss@example.com/', 'https://user:p%40ss@example.com/'],
  ['https://example.com/?q=%26&a="<>\'', 'https://example.com/?q=%26&a=%22%3C%3E%27'],
  ['https://example.com/%zz?100%&a=%4#%', 'https://example.com/%25zz?100%25&a=%254#%25'],
  ['https://example.com/%41%%41%c3%A9', 'https://example.com/%41%25%41%c3%A9'],
  ['https://example.com/#a#b##', 'https://example.com/#a%23b%23%23'],
  ['https://example.com/#', 'https://example.com/#'],
  ['https://example.com/#é "q" \'', "https://example.com/#%C3%A9%20%22q%22%20'"],
])('makes of %s a URI', (url, uri) => {
  expect(uriOf(url)).toBe(uri)
})

const URI =
  /^https:\/\/example\.com(?:[\w\-.~:/?@!$&'()*+,;=]|%[\dA-F]{2})*(?:#(?:[\w\-.~:/?@!$&'()*+,;=]|%[\dA-F]{2})*)?$/i

const decoded = (text: string): string =>
  text.replaceAll(/%([\dA-F]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))

test('has only what a URI may have, and leads where the URL leads', () => {
  const text = fc.string({ unit: fc.constantFrom(...Array.from('%#"\'<>[]^`{|}\\ az09éß漢?&=/')) })
  fc.assert(
    fc.property(fc.webPath(), text, text, (path, query, fragment) => {
      const url = `https://example.com${path}?${query}#${fragment}`
      const uri = uriOf(url)
      expect(uri).toMatch(URI)
      expect(decoded(uri)).toBe(decoded(new URL(url).href))
      expect(uriOf(uri)).toBe(uri)
    }),
  )
})
