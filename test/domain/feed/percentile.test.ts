import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { midpointPercentiles } from '../../../src/domain/feed/columns.ts'

interface Member {
  value: number
}

const byValue = (a: Member, b: Member): number => a.value - b.value
const members = fc.array(
  fc.integer({ min: -4, max: 4 }).map((value): Member => ({ value })),
  { maxLength: 60 },
)

test('is (L + E/2) / n for every member, counted one by one', () => {
  fc.assert(
    fc.property(members, (all) => {
      const percentiles = midpointPercentiles(all, byValue)
      expect(percentiles.size).toBe(all.length)
      for (const member of all) {
        const lower = all.filter((other) => other.value < member.value).length
        const equal = all.filter((other) => other.value === member.value).length
        expect(percentiles.get(member)).toBe((lower + equal / 2) / all.length)
      }
    }),
  )
})

test('is 0.5 for everyone when all are equal', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 500 }), (size) => {
      const all = Array.from({ length: size }, (): Member => ({ value: 7 }))
      expect(new Set(midpointPercentiles(all, byValue).values())).toEqual(new Set([0.5]))
    }),
  )
})

test('lies strictly between 0 and 1 and averages one half', () => {
  fc.assert(
    fc.property(members, (all) => {
      fc.pre(all.length > 0)
      const values = [...midpointPercentiles(all, byValue).values()]
      for (const value of values) {
        expect(value).toBeGreaterThan(0)
        expect(value).toBeLessThan(1)
      }
      expect(values.reduce((sum, value) => sum + value, 0) / values.length).toBeCloseTo(0.5, 10)
    }),
  )
})

test('leaves the members in their order and gives nothing for nobody', () => {
  const all: Member[] = [{ value: 3 }, { value: 1 }, { value: 2 }]
  midpointPercentiles(all, byValue)
  expect(all.map(({ value }) => value)).toEqual([3, 1, 2])
  expect(midpointPercentiles([], byValue).size).toBe(0)
})
