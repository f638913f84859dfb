import { expect, test } from 'vitest'
import { LIVE_SORTS, parseLiveSort } from '../../../src/domain/feed/columns.ts'

const parse = (query: string): string => parseLiveSort(new URLSearchParams(query))

test.each(LIVE_SORTS)('takes %s', (sort) => {
  expect(parse(`sort=${sort}&other=1`)).toBe(sort)
})

test('is trending when nothing is asked for', () => {
  expect(parse('')).toBe('trending')
})

test.each(['sort=', 'sort=Day', 'sort=day%20', 'sort=hour', 'sort=day&sort=day', 'sort=year&sort=year'])(
  '%s is invalid_sort',
  (query) => {
    expect(() => parse(query)).toThrow(expect.objectContaining({ code: 'invalid_sort' }))
  },
)

test('has a code of its own for the year', () => {
  expect(() => parse('sort=year')).toThrow(expect.objectContaining({ code: 'year_is_archived' }))
})
