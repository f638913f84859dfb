import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { addDays } from '../../../src/domain/time.ts'
import type { Manifest } from '../../../src/domain/year/ledger.ts'
import { chooseManifests, parseSample } from '../../../src/domain/year/sample.ts'
import { manifest } from './ledger-rows.ts'

describe('a sample', () => {
  test.each([
    ['0.5%', { by: 'share', percent: 0.5 }],
    ['100%', { by: 'share', percent: 100 }],
    ['2/7', { by: 'bucket', bucket: 2, buckets: 7 }],
    ['700', { by: 'size', bytes: 700 }],
    ['500M', { by: 'size', bytes: 500 * 1024 * 1024 }],
    ['2gib', { by: 'size', bytes: 2 * 1024 ** 3 }],
  ])('a sample is parsed as %s', (text, sample) => {
    expect(parseSample(text)).toEqual(sample)
  })

  const none = ' 0% 101% -5% 5_% 0/7 8/7 1/0 1/ 0 0M 5X 1e3 all'.split(' ')

  test.each(none.map((text) => text.replace('_', ' ')))('a sample is not %j', (text) => {
    expect(parseSample(text)).toBeNull()
  })

  const all = Array.from({ length: 100 }, (_, index) =>
    manifest(addDays('2026-01-01', index), { sha256: sha256Hex(String(index)), byteSize: 1000 }),
  )
  const choose = (sample: string | null, since: string | null = null, random = () => 0.42): Manifest[] =>
    chooseManifests(all, { since, sample: sample === null ? null : parseSample(sample) }, random)

  test('a sample without a size is every publication, or those from a day on', () => {
    expect(choose(null)).toEqual(all)
    expect(choose('100%', '2026-04-01')).toEqual(all.slice(90))
  })

  test('all buckets together hold each publication exactly once', () => {
    const chosen = ['1/3', '2/3', '3/3'].flatMap((bucket) => choose(bucket))
    expect(chosen).toHaveLength(all.length)
    expect(new Set(chosen)).toEqual(new Set(all))
  })

  test('a share has that many publications, at least one, in order, and differs by draw', () => {
    const some = choose('7%')
    expect(some).toHaveLength(7)
    expect(some).toEqual(all.filter((each) => some.includes(each)))
    expect(choose('0.001%')).toHaveLength(1)
    const draws = Array.from({ length: 8 }, () => choose('10%', null, Math.random))
    expect(new Set(draws.map((draw) => JSON.stringify(draw))).size).toBeGreaterThan(1)
  })

  test('a size has no more bytes than that, but at least one publication', () => {
    expect([choose('5500').length, choose('1').length]).toEqual([5, 1])
  })
})
