import fc from 'fast-check'
import { marked } from 'marked'
import { describe, expect, test } from 'vitest'
import { answerFilter } from '../../../src/domain/answers/answer-text.ts'

function filtered(...chunks: string[]): string {
  const filter = answerFilter()
  return chunks.map((chunk) => filter.push(chunk)).join('') + filter.end()
}

/** Targets of everything that a Markdown reader makes of a text, other than links that it makes of plain addresses. */
function targetsOf(text: string): { images: string[]; links: string[]; markup: string[] } {
  const found = { images: [] as string[], links: [] as string[], markup: [] as string[] }
  void marked.walkTokens(marked.lexer(text), (token) => {
    if (token.type === 'image') found.images.push(String(token['href']))
    if (token.type === 'link' && !isPlainAddress(token.raw, String(token['text'])))
      found.links.push(String(token['href']))
    if (token.type === 'html') found.markup.push(token.raw)
  })
  return found
}

/** True for an address that a reader links without a mark, or a mail address between angle brackets. */
function isPlainAddress(raw: string, text: string): boolean {
  return raw === text || (raw === `<${text}>` && /^[^:]+@/.test(text))
}

/** Pieces of which hostile Markdown is made. */
// prettier-ignore
const PIECES = [
  ...'! [ ] ( ) < > : \\ ` ``` " \' & # * _ | ~ - / = a javascript:alert(1) data:x //e.org mailto: xmpp:'.split(
    ' ',
  ),
  ...'https://e.org/ http://e.org ftp://e.org FTP: b@c.de @ @c.de &commat; &#64; .d www.e.org'.split(' '),
  ...'![ ]( ]: ![]( [x] <https://e.org &#33; &lbrack; 😀'.split(' '),
  '```\n', '~~~\n', '   ```', '`<b>`', '| ', '|--|--|\n', '[a](https://e.org) ',
  '\n', '\n\n', ' ', '  ', '    ', '\t', '\r', '> ', '- ', '2. ', '<b>\n', '1. ', '[x]: ', '<a href=', 'img src=x',
  '\u0000', '\u200b', '\u00ad', '\u{e0021}', '\u202e', '\ud83d',
]
const hostile = fc.array(fc.constantFrom(...PIECES), { maxLength: 30 }).map((pieces) => pieces.join(''))

/** Targets a reader would follow, load or run other than a link to a web page. */
function harmsOf(text: string): string[] {
  const { images, links, markup } = targetsOf(text)
  const elsewhere = links.filter((link) => !/^https?:\/\//i.test(link))
  return [...images, ...elsewhere, ...markup]
}

describe('plain answers', () => {
  // prettier-ignore
  test.each([
    'A plain answer, with **bold**, `code` and a list:\n\n- one\n- two\n',
    'Читайте [о модели](https://example.org/a_(b)?q=1&r=2) — 👩‍💻 и 👍🏽, می‌خواهم.',
    'Wow! That is 3 < 5, and a[0] = b[1] stays.',
    '```rust\nlet v = vec![1]; let x = a < b;\n```\n\tindented',
    'See <https://example.org/x> or https://example.org/y.', 'a!b ! [c] !',
    '@user, https://example.org/@user/a@1.2.3, a.b+c@example.org, ftp://e.org and a&#64;b.',
    '[eight spaces](        https://example.org/a) before a target',
    'Note: a & b &amp; c; `x@latest`; sftp: no',
  ])('a plain answer stays as it is: %j', (text) => {
    expect(filtered(text)).toBe(text)
    expect(filtered(...text.split(''))).toBe(text)
  })

  test('a plain answer is returned immediately', () => {
    const filter = answerFilter()
    expect(filter.push('Hello ')).toBe('Hello ')
    expect(filter.push('world!')).toBe('world')
    expect(filter.push(' And')).toBe('! And')
    expect(filter.push(' [a')).toBe(' [a')
    expect(filter.push('](h')).toBe('')
    expect(filter.push('ttps://x.org')).toBe('](https://x.org')
    expect(filter.push(') ![b](')).toBe(') [b')
  })
})

test.each([
  // Images become links.
  ['![a cat](https://example.org/cat.png)', '[a cat](https://example.org/cat.png)'],
  ['![](https://example.org/p?q=1)', '[image](https://example.org/p?q=1)'],
  ['!![](https://example.org/p)', '!! [image](https://example.org/p)'],
  ['Great![a](https://e.org) \\![a](https://e.org)', 'Great! [a](https://e.org) \\! [a](https://e.org)'],
  ['See ![a cat](https://e.org/i.png)', 'See [a cat](https://e.org/i.png)'],
  ['vec![1, 2]; if (![x].y && !["a"].b && ![1].c)', 'vec! [1, 2]; if (! [x].y && ! ["a"].b && ! [1].c)'],
  ['[![a](https://e.org/i.png)](https://e.org)', '[[a](https://e.org/i.png)](https://e.org)'],
  ['![x][ref]\n\n[ref]: https://evil.example/p?q=', '[x][ref]\n\n[ref] : https://evil.example/p?q='],
  ['!\u200b[a](https://example.org/p)', '[a](https://example.org/p)'],
  ['<img src="https://evil.example/p">', '< img src="https://evil.example/p">'],
  ['<a@example.org>', '< a@example.org>'],
  // Links lead to web pages alone.
  ['[a](javascript:alert(1))', '[a] (javascript:alert(1))'],
  ['[a](java\u0000script:alert(1))', '[a] (javascript:alert(1))'],
  ['[a](/etc) [b](#c) [d](//e.org) [f]()', '[a] (/etc) [b] (#c) [d] (//e.org) [f] ()'],
  ['[a](HTTPS://E.org)', '[a](HTTPS://E.org)'],
  ['[a][1]\n\n[1]: javascript:alert(1)', '[a][1]\n\n[1] : javascript:alert(1)'],
  ['<javascript:alert(1)>', '< javascript:alert(1)>'],
  ['<a href="javascript:alert(1)">x</a>', '< a href="javascript:alert(1)">x< /a>'],
  ['<script>alert(1)</script><!-- x -->', '< script>alert(1)< /script>< !-- x -->'],
])('the filter turns %j into %j, whole or by code unit', (text, expected) => {
  expect(filtered(text)).toBe(expected)
  expect(filtered(...text.split(''))).toBe(expected)
  expect(harmsOf(filtered(text))).toEqual([])
})

describe('code', () => {
  // prettier-ignore
  test.each([
    'Use `Vec<String>` or `Map<K, V>`.',
    'Run `git clone git@github.com:owner/repo.git`, then `curl ftp://e.org/x`.',
    'A `<div>` and ``<img src=x>``, `![a](b)`, `&#64;`, `a[i](x)` and `[key]: value`.',
    '- `Vec<String>`\n- **`Option<T>`**\n1. (`Box<T>`)\n> `Rc<T>`\n# `Arc<T>`\n',
    'See [the docs](https://e.org/a) for `Vec<String>`, and [`Vec<T>`](https://e.org/b) too.',
    '| type | text |\n|--|--|\n| `Vec<T>` | `<b>` |\n',
    '```rust\nfn f() -> Vec<String> {}\n```\nand\n\n```html\n<div>\n  <img src=x>\n</div>\n```\n',
    '~~~\ngit clone git@github.com:a/b\nwget ftp://e.org/x\n[a]: b\n![c](d)\n~~~\n',
    '1. Clone:\n   ```bash\n   git clone git@github.com:a/b\n\n   cd b\n   ```\n2. Read `Vec<T>`.\n',
    '- Clone:\n\n    ```bash\n    git clone git@github.com:a/b\n    ```\n\nThen `Vec<T>`.',
    '```\nunclosed Vec<String>',
    '```text\n``` Vec<T>\n~~~\n<b>\n```\n',
    // Indented code.
    'Text:\n\n    Vec<String>\n    git@github.com:a/b\n\n    <b>\n\nafter `Vec<T>`',
    'Text:\n\n\tVec<String>\n\t\t<b>\n', '    <b>\n', '# Title\n    <b>\n', 'a\n---\n    <b>\n',
    '1. a\n\n       Vec<T>\n\n2. b\n\n       <b>\n', '> a\n>\n>     Vec<T>\n', '>     Vec<T>\n',
    // Fences in lists and block quotes.
    '> text\n>\n> ```sh\n> git clone git@github.com:a/b\n>\n> <b>\n> ```\n> end `Vec<T>`\n',
    '>```\n>Vec<T>\n>```\n', '> - a\n>   ```\n>   Vec<T>\n>   ```\n', '1. a\n   > ~~~\n   > <b>\n   > ~~~\n',
    '- ```sh\n  git clone git@github.com:a/b\n  ```\n- ```\n  <b>\n  ```\n',
    '- a:\n  - b:\n    ```\n    Vec<T>\n    ```\n- c\n  ~~~\n  <b>\n  ~~~\n',
    '10. a\n    ```\n    Vec<T>\n    ```\n', '-\ta\n\t```\n\tVec<T>\n\t```\n', '1) a\n\n\t```\n\tVec<T>\n\t```\n',
    '1. a\n   - b\n     * c\n\n       ```\n       <b>\n       ```\n\nend `<b>`',
    '1. a\n```sh\ngit clone git@github.com:a/b\n```\n2. b\n```sh\n<b>\n```\n',
    '  ```\n<b>\n```\nx `<b>`', '````md\n```\n<b>\n```\n````\n', '~~~~\n<b>\n~~~\n<b>\n~~~~~\n`<b>`',
    '```js:a@b.js {1,2} <b>\nVec<T>\n```\n',
    // Spans with backquotes, over lines, with bars, and behind a backquote that is text.
    '``a ` Vec<T>`` and `` `<b>` ``', '```a `` <b>``` x', 'a `b\nVec<T>` c', '- a `b\n  Vec<T>` c\n',
    'Run `cat a | grep <b>`.', '- `a | <b>`\n- `b | <b>`\n', '| a |\n|--|\n| `x \\| <b>` |\n',
    'a lone ` here.\n\nThen `Vec<T>`', 'a lone ` here and ``Vec<T>``', '- a `\n- `Vec<T>`', '# a `\n`Vec<T>`',
    'a \\` b `Vec<T>`', 'C:\\\\`Vec<T>`',
    // Spans behind addresses, links and brackets.
    'https://e.org/a `Vec<T>`, www.e.org `Vec<T>`\nhttps://e.org\n`Vec<T>`',
    '[w](https://e.org/a_(b)) `Vec<T>`, [w](https://e.org/a "t") `Vec<T>`',
    'In [0, n) is `Vec<T>`.', '- [ ] `Vec<T>`\n- [x] `Vec<T>`\n', '[`<b>` `',
  ])('code stays as it is: %j', (text) => {
    expect(filtered(text)).toBe(text)
    expect(filtered(...text.split(''))).toBe(text)
    expect(harmsOf(text)).toEqual([])
  })

  test.each([
    // Text beside code is filtered.
    ['`Vec<T>` <b>', '`Vec<T>` < b>'],
    ['```\n<b>\n```\n<b>', '```\n<b>\n```\n< b>'],
    // Readers do not agree that this is code, or it is none.
    ['`<b>', '`< b>'],
    ['`a\n<b>`', '`a\n< b>`'],
    ['\\`<b>`', '\\`< b>`'],
    // An address would include the code.
    ['(https://e.org/`<b>`)', '(https://e.org/`< b>`)'],
    // Some readers end the label at the bracket.
    ['[`a]<b>`](https://e.org)', '[`a]< b>`](https://e.org)'],
    ['- a\n    <b>', '- a\n    < b>'],
    ['-     ```\n`<b>`', '-     ```\n`< b>`'],
    ['a\n    <b>', 'a\n    < b>'],
    ['| `a | <b>`\n|--|--|\n', '| `a | < b>`\n|--|--|\n'],
    ['> ```\n> a\n```\n<b>\n', '> ```\n> a\n```\n< b>\n'],
    ['> ```\n> a\n> ```\n<b>\n', '> ```\n> a\n> ```\n< b>\n'],
    ['> ```\n> a\n```\n```\n\\`<b>`', '> ```\n> a\n```\n```\n\\`< b>`'],
  ])('what may be no code is filtered: %j', (text, expected) => {
    expect(filtered(text)).toBe(expected)
    expect(filtered(...text.split(''))).toBe(expected)
    expect(harmsOf(expected)).toEqual([])
  })

  test('code goes on after an end that further text continues', () => {
    const filter = answerFilter()
    const texts = ['```\nVec<T>', '\n\n```\n<b>'].map((text) => filter.push(text) + filter.end())
    expect(texts.join('')).toBe('```\nVec<T>\n\n```\n< b>')
  })
})

test('the filter removes controls and hidden characters and normalises line ends', () => {
  expect(filtered('a\u001b[31mb\u0007\u009bc\u202ed\u{e0041}e')).toBe('a[31mbcde')
  expect(filtered('a\r\nb\rc\u2028d', '\r', '\n', 'e')).toBe('a\nb\nc\nd\ne')
  expect(filtered('\ud83d', '\ude00', 'x\ud83d')).toBe('😀x\ufffd')
})

// prettier-ignore
test.each([
  'a![abc', 'a!', 'a]', 'a<', 'a![a]', '[a](', '[a](http', '<htt', '<https://x',
])('unfinished markup is returned at the end: %s', (text) => {
  expect(filtered(text).replaceAll(' ', '')).toBe(text)
})

// prettier-ignore
test.each([
  ['![', 'a'], ['![', '['], ['![', '\\'], ['<https://', 'a'], ['[a](', ' '], ['', '!'], ['', '<'],
  ['', ']'],
  ['`', 'a'], ['`', ' `'], ['```', 'a'], ['```\n', ' '], ['- ', '`'],
  ['', '> '], ['', '- '], ['a `b', '\nc'], ['a\n\n', ' '], ['`a|b`', '-'], ['[', '`a` '],
])('the filter holds back only a little of %j followed by endless %j', (opening, filling) => {
  const filter = answerFilter()
  let given = filter.push(opening).length
  for (let count = 0; count < 20_000; count += 1) given += filter.push(filling).length
  expect(opening.length + 20_000 - given).toBeLessThan(2_100)
})

test('no Markdown makes an image, markup, or a link to anything but a web page', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      expect(harmsOf(filtered(text))).toEqual([])
    }),
    { numRuns: 8_000 },
  )
})

test('the filtered text does not depend on the chunks', () => {
  fc.assert(
    fc.property(hostile, fc.array(fc.nat(40), { maxLength: 10 }), (text, cuts) => {
      const places = [...new Set(cuts.filter((cut) => cut <= text.length))].sort((a, b) => a - b)
      const chunks = [0, ...places].map((start, index) => text.slice(start, places[index] ?? text.length))
      expect(filtered(...chunks)).toBe(filtered(text))
      expect(filtered(...text.split(''))).toBe(filtered(text))
    }),
    { numRuns: 1_500 },
  )
})

test('the filter removes only invisible characters', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const seen = (of: string) => of.replace(/[\s!\p{C}\ufffd]|image/gu, '')
      expect(seen(filtered(text))).toBe(seen(text.toWellFormed()))
    }),
    { numRuns: 1_500 },
  )
})
