import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { markdownRows } from '../../../../src/cli/commands/chat/markdown.ts'

const shown = (text: string, columns = 40): string[] =>
  markdownRows(text, { columns, colored: true }).map((row) => stripVTControlCharacters(row.text))

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
      'a link with its address',
      '[name](https://a.example/b) <https://c.example>',
      ['name (https://a.example/b)', 'https://c.example'],
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
        for (const { text } of markdownRows(marks.join(''), { columns, colored: true })) {
          const visible = stripVTControlCharacters(text)
          expect(visible).not.toMatch(/\p{Cc}/u)
        }
      }),
    )
  })
})
