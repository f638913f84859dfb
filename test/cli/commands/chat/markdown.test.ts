import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Sources, markdownRows } from '../../../../src/cli/commands/chat/markdown.ts'

const painted = (text: string, columns = 40, linked = false): string[] => {
  const sources = new Sources()
  const options = { columns, colored: true, linked, sources }
  return [...markdownRows(text, options), ...sources.rows(options)].map((row) => row.text)
}

const shown = (text: string, columns = 40): string[] => painted(text, columns).map(stripVTControlCharacters)

describe('Markdown on a terminal', () => {
  test.each([
    ['a heading', '# One *two*\n\ntext', ['One two', '', 'text']],
    ['a list in a list', '- a\n  - b\n- c', ['• a', '  • b', '• c']],
    ['numbers from where they begin', '3. a\n4. b', ['3. a', '4. b']],
    ['tasks', '- [x] done\n- [ ] not', ['• [x] done', '• [ ] not']],
    [
      'an item that is wrapped',
      '- a long item that has to be wrapped somewhere',
      ['• a long item that has to be wrapped', '  somewhere'],
    ],
    ['code as it is', '```js\nif (a)\n  b()\n```\nafter', ['  if (a)', '    b()', 'after']],
    ['a quote', '> one\n> two\n\nthree', ['│ one', '│ two', '', 'three']],
    ['a table', '| a | long |\n|--|--:|\n| 漢字 | 1 |', ['a     long', '────  ────', '漢字     1']],
    [
      'links by number, with their sources behind them',
      '[name](https://a.example/b) <https://c.example> [again](https://a.example/b)',
      ['name [1] https://c.example [2] again [1]', '[1] name https://a.example/b', '[2] https://c.example/'],
    ],
    [
      'the address beside a link that is no web page, or looks like another address',
      '[a](mailto:b@c.test) [d.test/](https://e.test/)',
      ['a (mailto:b@c.test) d.test/', '(https://e.test/) [1]', '[1] d.test/ https://e.test/'],
    ],
    ['entities of marks', 'a &amp; b &lt;c&gt;', ['a & b <c>']],
    ['HTML as it is written', 'a <b>c</b>', ['a <b>c</b>']],
    ['a rule', 'a\n\n---\n', ['a', '', '─'.repeat(40)]],
    ['marks that are not closed yet', 'some **bold and `co', ['some **bold and `co']],
    ['nothing', '', []],
  ])('the rows show %s', (_what, text, expected) => {
    expect(shown(text)).toEqual(expected)
  })

  test('a table that is too wide shows the cells of a row one after the other', () => {
    expect(shown('| first | second |\n|--|--|\n| one word more | and another one |', 20)).toEqual([
      'first | second',
      '───',
      'one word more | and',
      '  another one',
    ])
  })

  test('a link and its source are hyperlinks if the terminal knows them, on every row', () => {
    const rows = painted('[a name](https://a.example/b)', 7, true)
    const linked = (text: string): string =>
      `\x1b]8;;https://a.example/b\x1b\\\x1b[4m${text}\x1b[24m\x1b]8;;\x1b\\`
    expect(rows.slice(0, 2)).toEqual([linked('a name'), expect.stringContaining('[1]') as string])
    expect(rows[2]).toBe(`[1] ${linked('a')}`)
    expect(painted('[a](https://a.example/b)', 40, true)[1]).toContain('(a.example)')
  })

  test.each(['javascript:alert(1)', 'file:///etc/passwd', 'https://a.test/\u001b\\\u0007\u009c'])(
    'the address %j ends no escape and becomes a hyperlink only to a web page',
    (address) => {
      const text = painted(`[a](<${address}>)`, 200, true).join('\n')
      const targets = text
        .split('\u001b]8;;')
        .slice(1)
        .map((part) => part.split('\u001b')[0])
      for (const target of targets) expect(target).toMatch(/^(?:https:\/\/a\.test\/[\u0021-\u007e]*)?$/)
      expect(stripVTControlCharacters(text)).not.toMatch(/(?!\n)\p{Cc}/u)
    },
  )

  test('extreme nesting keeps its marks', () => {
    for (const marks of ['>', '1) ', '> - ', '- '])
      expect(shown(`${marks.repeat(20_000)}x`).join('').length).toBeGreaterThan(1_000)
  })

  test('an entity never becomes a control character', () => {
    expect(shown('a &#27;[7m &#x9b;7m &#x202e;b [&#27;](https://a.example/&#27;)').join('')).not.toMatch(
      /[\p{Cc}\p{Bidi_Control}]/u,
    )
  })

  test('no row is too wide or has control characters, for any text', () => {
    const mark = fc.constantFrom(
      '#',
      '*',
      '_',
      '`',
      '- ',
      '1. ',
      '> ',
      '|',
      '\n',
      '\n\n',
      '```\n',
      '[a](',
      ')',
      '<b>',
      '&#27;',
      'word ',
      '漢字',
      '👍',
      '    ',
      '---\n',
      '~~',
      '\t',
    )
    fc.assert(
      fc.property(fc.array(mark, { maxLength: 60 }), fc.integer({ min: 8, max: 60 }), (marks, columns) => {
        for (const text of painted(marks.join(''), columns)) {
          const visible = stripVTControlCharacters(text)
          expect(visible).not.toMatch(/\p{Cc}/u)
        }
      }),
    )
  })
})
