import { expect, test } from 'vitest'
import { z } from 'zod'
import { writeCsv } from '../../src/server/csv.ts'

const item = z.object({
  value: z.union([z.string(), z.number(), z.boolean()]).nullish(),
  inner: z.object({ count: z.int().optional() }),
  left: z.array(z.string()),
})

test.each([
  ['a comma', 'a,b', '"a,b"'],
  ['a line break', 'a\r\nb', '"a\r\nb"'],
  ['null', null, ''],
  ['a number below zero', -1, '-1'],
  ['a text with the form of a number below zero', '-1', "'-1"],
  ['a formula with quotes', '=HYPERLINK("https://a.test")', `"'=HYPERLINK(""https://a.test"")"`],
  ['a plus sign', '+1', "'+1"],
  ['an at sign', '@SUM(A1)', "'@SUM(A1)"],
  ['a tab', '\t=1', "'\t=1"],
  ['a carriage return', '\r=1', `"'\r=1"`],
])('a cell of CSV is quoted where it must be, and is never a formula: %s', (_what, value, cell) => {
  const text = writeCsv(item, [{ value, inner: { count: 2 }, left: ['out'] }])
  expect(text).toBe(`value,inner.count\r\n${cell},2\r\n`)
})
