import { expect, test } from 'vitest'
import { shorten } from '../../src/jobs/collect-sources.ts'

test.each([
  ['a text', 'a text'],
  ['two\r\n  lines', 'two lines'],
  ['😀'.repeat(400), '😀'.repeat(400)],
  ['😀'.repeat(401), `${'😀'.repeat(400)}…`],
  ['x'.repeat(5_000_000), `${'x'.repeat(400)}…`],
  [`a${' '.repeat(900)}b`, 'a …'],
])('a text of a report is one line of at most 400 characters', (text, short) => {
  expect(shorten(text)).toBe(short)
})
