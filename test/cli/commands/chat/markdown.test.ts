import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { markdownStream } from '../../../../src/cli/commands/chat/markdown.ts'

/** Renders an answer that arrives in these parts. */
function rendered(parts: readonly string[], columns = 40, linked = false): string {
  const answer = markdownStream({ columns, colored: true, linked })
  return parts.map((part) => answer.push(part)).join('') + answer.end()
}

const styledRows = (text: string, columns?: number, linked?: boolean): string[] =>
  rendered([text], columns, linked).split('\n').slice(0, -1)

const shown = (text: string, columns?: number): string[] =>
  styledRows(text, columns).map(stripVTControlCharacters)

describe('Markdown on a terminal', () => {
  test.each([
    ['a heading', '# One *two*\n\ntext', ['One two', '', 'text']],
    ['numbers from where they begin', '3. a\n4. b', ['3. a', '4. b']],
    ['tasks', '- [x] done\n- [ ] not', ['• [x] done', '• [ ] not']],
    ['code as it is', '```js\nif (a)\n  b()\n```\nafter', ['  if (a)', '    b()', 'after']],
    ['a quote', '> one\n> two\n\nthree', ['│ one', '│ two', '', 'three']],
    ['a table', '| a | long |\n|--|--:|\n| 漢字 | 1 |', ['a     long', '────  ────', '漢字     1']],
    [
      'links with their addresses',
      '[a *name*](https://a.example/b) <https://c.example>',
      ['a name (https://a.example/b)', 'https://c.example'],
    ],
    ['hosts and e-mail addresses once', 'www.a.example b@c.test', ['www.a.example b@c.test']],
    [
      'an address behind another scheme',
      '[https://a.b](http://https://a.b)',
      ['https://a.b (http://https://a.b)'],
    ],
    [
      'the address of a link that is no web page',
      '[a](mailto:b@c.test) [b](javascript:x)',
      ['a (mailto:b@c.test) b (javascript:x)'],
    ],
    [
      'the target of a link as it is written',
      '[1]: https://a.example "b"\n\nc',
      ['[1]: https://a.example "b"', '', 'c'],
    ],
    ['entities of marks', 'a &amp; b &lt;c&gt;', ['a & b <c>']],
    ['HTML as it is written', 'a <b id="&lt;">c</b>', ['a <b id="&lt;">c</b>']],
    ['a rule', 'a\n\n---\n', ['a', '', '─'.repeat(40)]],
  ])('the rows show %s', (_what, text, expected) => {
    expect(shown(text)).toEqual(expected)
  })

  test('a table that is too wide shows the cells of a row one after the other', () => {
    expect(shown('| first | second |\n|--|--|\n| one word more | and another one |', 20)).toEqual([
      'first | second',
      '───',
      'one word more |',
      '  and another one',
    ])
  })

  test('a link is a hyperlink if the terminal knows them, and shows its address if it looks like another one', () => {
    const linked = (text: string): string =>
      `\x1b]8;;https://a.example/b\x1b\\\x1b[4m${text}\x1b[24m\x1b]8;;\x1b\\`
    expect(styledRows('See [a name](https://a.example/b)!', 40, true)).toEqual([`See ${linked('a name')}!`])
    expect(styledRows('[c.test/](https://a.example/b)', 40, true)).toEqual([
      `${linked('c.test/')}\x1b[2m (https://a.example/b)\x1b[22m`,
    ])
  })

  test('rows are wrapped between words, and within a word that is longer than a row', () => {
    expect(shown('Some words: 漢字漢字 and more of them', 15)).toEqual([
      'Some words:',
      '漢字漢字 and',
      'more of them',
    ])
    expect(shown('abcdefghijkl', 8)).toEqual(['abcdefgh', 'ijkl'])
  })

  test('text is styled, and has the marks of Markdown instead without colours', () => {
    expect(styledRows('some **bold** `code`')).toEqual(['some \x1b[1mbold\x1b[22m \x1b[36mcode\x1b[39m'])
    const answer = markdownStream({ columns: 40, colored: false, linked: false })
    expect(answer.push('## Head\n\nsome **bold** _text_ `code`\n') + answer.end()).toBe(
      '## Head\n\nsome **bold** _text_ `code`\n',
    )
  })

  test('an address that is no web page becomes no hyperlink', () => {
    expect(styledRows('[a](<javascript:alert(1)>)', 40, true)).toEqual([
      '\x1b[4ma\x1b[24m\x1b[2m (javascript:alert(1))\x1b[22m',
    ])
  })

  test('extreme nesting keeps its marks', () => {
    for (const marks of ['>', '1) ', '> - ', '- '])
      expect(shown(`${marks.repeat(20_000)}x`).join('').length).toBeGreaterThan(1_000)
  })

  test('no row has control characters, for any text', () => {
    const mark = fc.constantFrom(
      ...Array.from('#*_`-1.>| \n~\t漢👍a'),
      '```\n',
      '[a](',
      ')',
      '<b>',
      '&#27;',
      '    ',
    )
    fc.assert(
      fc.property(fc.array(mark, { maxLength: 60 }), fc.integer({ min: 8, max: 60 }), (marks, columns) => {
        for (const row of shown(marks.join(''), columns)) expect(row).not.toMatch(/\p{Cc}/u)
      }),
    )
  })
})

describe('an answer that arrives in parts', () => {
  test('each block is rendered once it is complete, and of a list each item', () => {
    const answer = markdownStream({ columns: 40, colored: false, linked: false })
    for (const [part, rows] of [
      ['# Today', ''],
      ['\nThe first', '# Today\n'],
      [' paragraph\n', ''],
      ['\n', 'The first paragraph\n'],
      ['- one\n- t', ''],
      ['wo\n  - inner\n\n', '\n• one\n'],
      ['- three\n', '• two\n  • inner\n'],
      ['\nThe last\n', '• three\n'],
      ['```\na\n\nb\n', '\nThe last\n'],
      ['```\n', ''],
      ['end\n', '  a\n\n  b\n'],
    ] as const)
      expect([part, answer.push(part)]).toEqual([part, rows])
    expect(answer.end()).toBe('end\n')
  })

  test('later blocks are wrapped for the width of the terminal at that time', () => {
    const options = { columns: 40, colored: false, linked: false }
    const answer = markdownStream(options)
    const widths = [40, 8].map((columns) => ((options.columns = columns), answer.push('several words\n\n')))
    expect(widths).toEqual(['several words\n', '\nseveral\nwords\n'])
  })

  test('the numbers of a list continue, whatever its source says', () => {
    expect(rendered(['1. a\n', '1. b\n', '1. c\n\n', 'end\n\n', '1. d'])).toBe(
      '1. a\n2. b\n3. c\n\nend\n\n1. d\n',
    )
  })

  test('an answer is the same, however it is split', () => {
    const block = fc.constantFrom(
      'A paragraph with **bold** text\nof two lines',
      '## A heading',
      '- one\n- two\n  - inner\n- three',
      '1. one\n\n   more of it\n2. two',
      '```js\nif (a)\n\n  b()\n```',
      '| a | b |\n|---|---|\n| 1 | 2 |',
      '> a quote\n>\n> - of a list',
      '---',
    )
    fc.assert(
      fc.property(
        fc.array(block, { minLength: 1, maxLength: 6 }),
        fc.infiniteStream(fc.nat(12)),
        (given, sizes) => {
          const text = given.join('\n\n')
          const parts: string[] = []
          for (let at = 0; at < text.length; at += parts.at(-1)?.length ?? 0)
            parts.push(text.slice(at, at + 1 + (sizes.next().value as number)))
          expect(rendered(parts)).toBe(rendered([text]))
        },
      ),
    )
  })
})
