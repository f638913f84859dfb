import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LIVE_SORTS, midpointPercentiles, parseLiveSort } from '../../../src/domain/feed/columns.ts'

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

describe('the sort of a live feed', () => {
  const parse = (query: string): string => parseLiveSort(new URLSearchParams(query))

  test.each(LIVE_SORTS)('is %s', (sort) => {
    expect(parse(`sort=${sort}&other=1`)).toBe(sort)
  })

  test('is trending when nothing is asked for', () => {
    expect(parse('')).toBe('trending')
  })

  test.each([
    ...['sort=', 'sort=Day', 'sort=day%20', 'sort=hour', 'sort=day&sort=day', 'sort=year&sort=year'],
  ])('is not given by %s', (query) => {
    expect(() => parse(query)).toThrow(expect.objectContaining({ code: 'invalid_sort' }))
  })

  test('has a refusal of its own for the year', () => {
    expect(() => parse('sort=year')).toThrow(expect.objectContaining({ code: 'year_is_archived' }))
  })
})
