import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalUrl } from '../../../src/domain/address.ts'
import { anyText } from '../../support/any-text.ts'

describe('a canonical URL', () => {
  test.each([
    ['https://www.Example.org/', 'example.org'],
    ['https://example.org:8443/a', 'example.org:8443/a'],
    ['https://user:secret@example.org/a#section', 'example.org/a'],
    ['https://example.org/a?utm_source=x&b=2&fbclid=9&a=1', 'example.org/a?a=1&b=2'],
    ['https://example.org/#!/route', 'example.org#!/route'],
    ['https://example.org/docs/index.html', 'example.org/docs'],
    ['https://example.org/story/amp/', 'example.org/story'],
    ['https://example.org/amp', 'example.org/amp'],
    ['https://m.youtube.com/watch?v=dQw4w9WgXcQ&t=10', 'youtube.com/watch?v=dQw4w9WgXcQ'],
    ['https://youtu.be/dQw4w9WgXcQ?si=abc', 'youtube.com/watch?v=dQw4w9WgXcQ'],
    ['https://arxiv.org/pdf/2412.17606v2.pdf', 'arxiv.org/abs/2412.17606'],
    ['http://export.arxiv.org/abs/math.GT/0309136', 'arxiv.org/abs/math.GT/0309136'],
    ['https://github.com/Owner/Name.git?tab=readme-ov-file', 'github.com/owner/name'],
    ['https://en.m.wikipedia.org/wiki/Rust', 'en.wikipedia.org/wiki/Rust'],
    ['https://old.reddit.com/r/x/comments/Ab1/some_words/', 'reddit.com/r/x/comments/ab1'],
    ['https://x.com/Name/status/1/photo/1?s=20', 'twitter.com/i/status/1'],
    ['https://example.org/%7Ename/caf%c3%a9', 'example.org/~name/caf%C3%A9'],
    ['https://www.com/', 'www.com'],
    ['HTTPS://EXAMPLE.ORG/A?B=%20C', 'example.org/A?B=%20C'],
    ['example.org/a?b=1', 'example.org/a?b=1'],
  ])('the canonical URL of %s', (url, canonical) => {
    expect(canonicalUrl(url)).toBe(canonical)
  })

  test.each(['', 'ftp://example.org/', 'https://./'])('%j has no canonical URL', (url) => {
    expect(canonicalUrl(url)).toBeNull()
  })

  test('a canonical URL is its own canonical URL', () => {
    const host = fc.constantFrom(
      'https://example.org',
      'http://WWW.Example.org:80/',
      'https://m.a-b.example/a//b/',
      'https://[::1]:8080/',
    )
    const tail = fc.string({ unit: fc.constantFrom(...'%/?#&=.+-_~:;@aZ09 é'.split('')), maxLength: 30 })
    const url = fc.tuple(host, tail).map((parts) => parts.join(''))
    const noise = fc.oneof(fc.constant(''), anyText({ maxLength: 20 }))
    fc.assert(
      fc.property(url, noise, (start, end) => {
        const canonical = canonicalUrl(start + end)
        expect(canonical === null || canonicalUrl(canonical)).toBe(canonical ?? true)
      }),
      { numRuns: 500 },
    )
  })
})
