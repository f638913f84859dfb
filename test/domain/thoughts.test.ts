import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { thoughtFilter, withoutThoughts } from '../../src/domain/thoughts.ts'

function filtered(chunks: readonly string[], isHeld = false): { text: string; leaked: boolean } {
  const filter = thoughtFilter(isHeld)
  let text = ''
  // Nothing is read after a leak.
  for (const chunk of chunks) if (!filter.hasLeaked) text += filter.push(chunk)
  if (!filter.hasLeaked) text += filter.end()
  return { text, leaked: filter.hasLeaked }
}

const shown = (text: string): string => filtered([text]).text

describe('thoughts at the start of an answer', () => {
  test.each([
    ['<think>\nhm\n</think>\n\nThe answer.', 'The answer.'],
    ['<think>hm</think>Answer.', 'Answer.'],
    ['\n <think></think>\nAnswer.', 'Answer.'],
    ['<think>a</think>\n<think>b</think>\nAnswer.', 'Answer.'],
    ['<THINK>hm</THINK>Answer.', 'Answer.'],
    ['<thinking>a < b, <think> is a tag</thinking> Answer.', 'Answer.'],
    ['</think>\n\nAnswer.', 'Answer.'],
    ['<think>İİİ</think>Answer.', 'Answer.'],
    ['<think>never closed', ''],
    ['<think>only</think>\n', ''],
    ['<think>a</think>Answer.\n</think>\nMore.', 'Answer.\n</think>\nMore.'],
  ])('the thoughts of %j are removed, whole or by code unit', (text, expected) => {
    expect(filtered([text])).toEqual({ text: expected, leaked: false })
    expect(filtered(text.split(''))).toEqual({ text: expected, leaked: false })
  })
})

describe('tags that are text', () => {
  test.each([
    'The tag `<think>` opens thoughts, `</think>` closes them.',
    'Write <think> and </think> around thoughts.',
    'Answer.</think> is a tag\n',
    'An example:\n\n```xml\n<think>\nhm\n</think>\n```\n',
    'An example:\n~~~\n</think>\n~~~\nDone.',
    'Thoughts begin with\n<think>\nand end with\n</think>\nalways.',
    'Code:\n\n    </think>\n',
    '<thin ice',
    '<table>',
    'a <',
    '\n\n  indented',
    '',
  ])('the answer %j stays as it is', (text) => {
    expect(filtered([text])).toEqual({ text, leaked: false })
    expect(filtered(text.split(''))).toEqual({ text, leaked: false })
  })

  test('an answer without tags is returned immediately', () => {
    const filter = thoughtFilter()
    expect(['Hello', ' ', 'world', '\n', 'a <b'].map((chunk) => filter.push(chunk)).join('|')).toBe(
      'Hello| |world|\n|a <b',
    )
  })
})

describe('thoughts without an opening tag', () => {
  test.each(['I guess.\n</think>\n\nAnswer.', 'I guess.\n</think>', 'a\n\n  </think>  \r\nAnswer.'])(
    'the thoughts of %j are known when their end arrives on a line of its own',
    (text) => {
      expect(filtered([text]).leaked).toBe(true)
      expect(filtered(text.split('')).leaked).toBe(true)
      expect(filtered(text.split('')).text).not.toContain('Answer')
    },
  )

  test.each([
    ['I guess.\n</think>\n\nAnswer.', 'Answer.'],
    ['I guess.</think>Answer.', 'Answer.'],
    ['The tag `</think>` and\n```\n</think>\n```\n</think>\nAnswer.', 'Answer.'],
    ['<think>hm</think>Answer.', 'Answer.'],
    ['An answer without thoughts.', 'An answer without thoughts.'],
    ['Write `</think>` here.', 'Write `</think>` here.'],
    ['hm</think>Answer.\n</think>\nMore.', 'Answer.\n</think>\nMore.'],
  ])('the text %j of a known model is held until its thoughts end', (text, expected) => {
    expect(withoutThoughts(text)).toBe(expected)
    expect(filtered(text.split(''), true)).toEqual({ text: expected, leaked: false })
  })
})

test('the result does not depend on the chunks', () => {
  const piece = fc.constantFrom(
    '<think>',
    '</think>',
    '<th',
    'ink>',
    '</',
    '\n',
    ' ',
    'a',
    '`',
    '```',
    '\n</think>\n',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.boolean(), (pieces, isHeld) => {
      const whole = filtered([pieces.join('')], isHeld)
      const split = filtered(pieces.join('').split(''), isHeld)
      expect(split.leaked).toBe(whole.leaked)
      expect(split.text).toBe(whole.text)
    }),
    { numRuns: 5_000 },
  )
})

test('long thoughts are read in linear time', () => {
  const long = '`'.repeat(200_000) + '<think> '.repeat(50_000)
  expect(shown(`x\n${long}\n`).length).toBe(long.length + 3)
  expect(withoutThoughts(`x${long}\n</think>\nA`)).toBe('A')
})
