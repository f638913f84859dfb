import { describe, expect, test } from 'vitest'
import { canonicalUrl } from '../../../src/domain/feed/canonical-url.ts'

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
    ['https://www.youtube.com/shorts/dQw4w9WgXcQ', 'youtube.com/watch?v=dQw4w9WgXcQ'],
    ['https://www.youtube.com/dQw4w9WgXcQ', 'youtube.com/dQw4w9WgXcQ'],
    ['https://www.youtube.com/list?v=dQw4w9WgXcQ', 'youtube.com/list?v=dQw4w9WgXcQ'],
    ['https://youtu.be/watch?v=dQw4w9WgXcQ', 'youtu.be/watch?v=dQw4w9WgXcQ'],
    ['https://www.youtube.com/watch?v=a', 'youtube.com/watch?v=a'],
    ['https://arxiv.org/list/cs.AI', 'arxiv.org/list/cs.AI'],
    ['https://github.com/Owner/Name?q=1', 'github.com/Owner/Name?q=1'],
    ['https://github.com/Owner/Name/issues', 'github.com/Owner/Name/issues'],
    ['https://twitter.com/Name', 'twitter.com/Name'],
    ['https://reddit.com/r/X', 'reddit.com/r/X'],
    ['https://example.org/r/X/comments/Ab1', 'example.org/r/X/comments/Ab1'],
    ['https://arxiv.org/pdf/2412.17606v2.pdf', 'arxiv.org/abs/2412.17606'],
    ['http://export.arxiv.org/abs/math.GT/0309136', 'arxiv.org/abs/math.GT/0309136'],
    ['https://github.com/Owner/Name.git?tab=readme-ov-file', 'github.com/owner/name'],
    ['https://en.m.wikipedia.org/wiki/Rust', 'en.wikipedia.org/wiki/Rust'],
    ['https://old.reddit.com/r/x/comments/Ab1/some_words/', 'reddit.com/r/x/comments/ab1'],
    ['https://x.com/Name/status/1/photo/1?s=20', 'twitter.com/i/status/1'],
    ['https://twitter.com/i/web/status/1', 'twitter.com/i/status/1'],
    ['https://github.com/Owner/.git', 'github.com/owner/.git'],
    ['https://example.org/%7Ename/caf%c3%a9', 'example.org/~name/caf%C3%A9'],
    ['https://www.com/', 'www.com'],
    ['HTTPS://EXAMPLE.ORG/A?B=%20C', 'example.org/A?B=%20C'],
    ['https://[::1]:8080/a//b/%20é?x=%&y', '[::1]:8080/a//b/%20%C3%A9?x=%25&y='],
  ])('the canonical URL of %s is %s, which is its own', (url, canonical) => {
    expect(canonicalUrl(url)).toBe(canonical)
    expect(canonicalUrl(canonical)).toBe(canonical)
  })

  test.each(['', 'ftp://example.org/', 'https://./'])('%j has no canonical URL', (url) => {
    expect(canonicalUrl(url)).toBeNull()
  })
})
