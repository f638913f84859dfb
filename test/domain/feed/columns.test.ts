import fc from 'fast-check'
import { expect, test } from 'vitest'
import { midpointPercentiles } from '../../../src/domain/feed/columns.ts'

test('the midpoint percentile is (L + E/2) / n for every member, counted one by one, in any order', () => {
  const members = fc.array(fc.record({ value: fc.integer({ min: -4, max: 4 }) }), { maxLength: 60 })
  fc.assert(
    fc.property(members, (all) => {
      const before = [...all]
      const percentiles = midpointPercentiles(all, (a, b) => a.value - b.value)
      expect(all).toEqual(before)
      expect(percentiles.size).toBe(all.length)
      for (const member of all) {
        const lower = all.filter((other) => other.value < member.value).length
        const equal = all.filter((other) => other.value === member.value).length
        expect(percentiles.get(member)).toBe((lower + equal / 2) / all.length)
      }
    }),
  )
})
