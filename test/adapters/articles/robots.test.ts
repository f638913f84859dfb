import { expect, test } from 'vitest'
import { forbidsKeeping, parseRobots } from '../../../src/adapters/articles/robots.ts'

const allows = (text: string, path: string): boolean => parseRobots(text, 'dash')(path)

test.each([
  ['a rule for everybody, elsewhere', 'User-agent: *\nDisallow: /a', '/b', true],
  ['an empty rule', 'User-agent: *\nDisallow:', '/a', true],
  ['rules of others', 'User-agent: other\nDisallow: /', '/a', true],
  ['rules before any group', 'Disallow: /\nUser-agent: x', '/a', true],
  [
    'its own group instead of everybody’s',
    'User-agent: *\nDisallow: /\n\nUser-agent: DASH\nAllow: /',
    '/a',
    true,
  ],
  ['its own group, even an empty one', 'User-agent: dash\n\nUser-agent: *\nDisallow: /', '/a', false],
  ['its own empty group', 'User-agent: dash\nDisallow:\n\nUser-agent: *\nDisallow: /', '/a', true],
  ['other lines between agents', 'User-agent: dash\nSitemap: x\nUser-agent: y\nDisallow: /', '/a', false],
  ['the longest match', 'User-agent: *\nAllow: /a/b\nDisallow: /a', '/a/b/c', true],
  ['the longest match, in any order', 'User-agent: *\nDisallow: /a/b\nAllow: /a', '/a/b/c', false],
  ['equal matches', 'User-agent: *\nDisallow: /a\nAllow: /a', '/a', true],
  ['a wildcard', 'User-agent: *\nDisallow: /*.php', '/x/y.php?z', false],
  ['an end', 'User-agent: *\nDisallow: /*.php$', '/y.php?z', true],
  ['an end that is met', 'User-agent: *\nDisallow: /*.php$', '/y.php', false],
  ['an end after a wildcard alone', 'User-agent: *\nDisallow: /a*$', '/abc', false],
  ['an end without a wildcard', 'User-agent: *\nDisallow: /a$', '/ab', true],
  ['parts that overlap', 'User-agent: *\nDisallow: /ab*ba$', '/aba', true],
  ['queries', 'User-agent: *\nDisallow: /*?', '/a?b', false],
  ['comments, spaces and letter case', ' user-AGENT : * # all\n\tDISALLOW: /a # no', '/a', false],
  ['misspelt names', 'Useragent: x\nUser agent: *\nDissallow: /a', '/a', false],
  ['old line ends and a byte order mark', '\uFEFFUser-agent: *\rDisallow: /a\r', '/a', false],
  ['escaped letters', 'User-agent: *\nDisallow: /%7euser/%61', '/~user/a', false],
  ['other letters', 'User-agent: *\nDisallow: /ä', '/%C3%A4', false],
  ['an escaped slash', 'User-agent: *\nDisallow: /a%2fb', '/a%2Fb', false],
  ['an escaped slash, not there', 'User-agent: *\nDisallow: /a%2fb', '/a/b', true],
  ['an escaped asterisk', 'User-agent: *\nDisallow: /a-%2A.html', '/a-*.html', false],
  ['an escaped dollar sign', 'User-agent: *\nDisallow: /a-%24', '/a-$', false],
  ['a dollar sign inside', 'User-agent: *\nDisallow: /a$b', '/a$bc', false],
  ['a final dollar sign', 'User-agent: *\nDisallow: /a$', '/a$', true],
  ['characters that a URL escapes', 'User-agent: *\nDisallow: /{x}/"<`', '/%7Bx%7D/%22%3C%60', false],
  ['an apostrophe', "User-agent: *\nDisallow: /a?q='", '/a?q=%27', false],
  ['everything but itself', 'User-agent: *\nDisallow: /', '/robots.txt', true],
])('a robots.txt with %s', (_what, text, path, allowed) => {
  expect(allows(text, path)).toBe(allowed)
})

// Work that grew with rule times path would take far longer than a test may.
test.each(['*a'.repeat(250_000), '*'.repeat(500_000), `/${'*a'.repeat(100)}`])(
  'a robots.txt of half a megabyte of %.20s… is evaluated like any other',
  (rule) => {
    const rules = `Disallow: ${rule}b\n`.repeat(Math.ceil(500_000 / rule.length))
    expect(allows(`User-agent: *\n${rules}`, `/${'a'.repeat(2_000)}`)).toBe(true)
  },
)

test('a robots.txt of half a megabyte with thousands of agents and rules is evaluated like any other', () => {
  const agents = Array.from({ length: 16_000 }, (_, index) => {
    const name = Array.from(String(index), (digit) => 'abcdefghij'[Number(digit)]).join('')
    return `user-agent:${name}\n`
  })
  expect(allows(`${agents.join('')}user-agent:*\n${'allow:/\n'.repeat(32_000)}disallow:/b`, '/b')).toBe(false)
})

test.each([
  ['noindex', true],
  ['NOARCHIVE', true],
  ['nofollow, nosnippet', true],
  ['none', true],
  ['max-snippet:0', true],
  ['max-snippet: 20, max-image-preview:large', false],
  ['max-image-preview:large, noindex', true],
  ['otherbot: noindex, nofollow', false],
  ['otherbot: noindex, dash: noarchive', true],
  ['noindex nofollow', true],
  ['', false],
])('the robots directives %j forbid storing a page: %s', (words, forbidden) => {
  expect(forbidsKeeping(words, 'dash')).toBe(forbidden)
})
