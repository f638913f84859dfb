import { expect, test } from 'vitest'
import { newsOf } from '../../../src/domain/feed/news.ts'

const NOW = Date.parse('2026-03-16T20:00:00Z')

test.each([
  [3, 20, '2026-03-16T07:30:00Z', '3 new since today 07:30 UTC', true],
  [10, 20, '2026-03-15T20:00:00Z', '10 new since yesterday 20:00 UTC', true],
  [11, 20, '2026-03-15T20:00:00Z', '11 of 20 new since yesterday 20:00 UTC', false],
  [0, 20, '2026-03-14T23:59:00Z', 'nothing new since 2026-03-14 23:59 UTC', true],
])('of %i new rows among %i since %s a page says "%s"', (entered, shown, since, text, isMarked) => {
  expect(newsOf(entered, shown, Date.parse(since), NOW)).toEqual({ text, isMarked })
})
