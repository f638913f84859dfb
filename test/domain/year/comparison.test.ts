import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareLists, standingsOf } from '../../../src/domain/year/calendar.ts'
const list = (keys: readonly string[]) => keys.map((key, index) => ({ key, rank: index + 1 }))

test('what entered, left, moved and stayed is told apart by save keys', () => {
  const { entered, left, moved, stayed } = compareLists(
    list(['a', 'b', 'c', 'd']),
    list(['a', 'c', 'e', 'b']),
  )
  expect(entered).toEqual([{ key: 'e', rank: 3 }])
  expect(left).toEqual([{ key: 'd', rank: 4 }])
  expect(moved.map(({ after, rose }) => [after.key, rose])).toEqual([
    ['c', 1],
    ['b', -2],
  ])
  expect(stayed.map(({ before }) => before.key)).toEqual(['a'])
})

test('every item of both lists is in exactly one part, and the other way round what entered left', () => {
  const lists = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'))
  fc.assert(
    fc.property(lists, lists, (before, after) => {
      const there = compareLists(list(before), list(after))
      const back = compareLists(list(after), list(before))
      const kept = [...there.moved, ...there.stayed].map((one) => one.after.key)
      expect([...kept, ...there.entered.map(({ key }) => key)].sort()).toEqual([...after].sort())
      expect(back.entered).toEqual(there.left)
      expect(back.left).toEqual(there.entered)
      for (const { before: then, after: now, rose } of there.moved) expect(then.rank - rose).toBe(now.rank)
    }),
  )
})

test('an item stands in the list of its source, in Popular, or in both', () => {
  const item = (key: string, rank: number, points: number) => ({ key, rank, points })
  const feed = {
    hackerNews: [item('hn-1', 4, 10)],
    lobsters: [],
    lessWrong: [],
    hypeReplicate: [item('hype-github-1', 1, 7)],
    midjourney: [],
    popular: [item('hn-1', 2, 10), item('hn-2', 3, 9)],
  }
  const standings = standingsOf(feed)
  expect(Object.fromEntries(standings)).toEqual({
    'hn-1': { rank: 4, popular: 2, points: 10 },
    'hn-2': { rank: null, popular: 3, points: 9 },
    'hype-github-1': { rank: 1, popular: null, points: 7 },
  })
})
