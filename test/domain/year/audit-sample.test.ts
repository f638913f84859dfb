import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { chooseManifests, parseSample } from '../../../src/domain/year/audit.ts'
import type { Manifest } from '../../../src/domain/year/ledger.ts'
import { addDays } from '../../../src/domain/time.ts'
import { manifest } from './ledger-rows.ts'

describe('a sample on the command line', () => {
  test.each([
    ['5%', { by: 'share', percent: 5 }],
    ['0.5%', { by: 'share', percent: 0.5 }],
    ['100%', { by: 'share', percent: 100 }],
    ['2/7', { by: 'bucket', bucket: 2, buckets: 7 }],
    ['1/1', { by: 'bucket', bucket: 1, buckets: 1 }],
    ['700', { by: 'size', bytes: 700 }],
    ['500M', { by: 'size', bytes: 500 * 1024 * 1024 }],
    ['2gib', { by: 'size', bytes: 2 * 1024 ** 3 }],
  ])('%s is understood', (text, sample) => {
    expect(parseSample(text)).toEqual(sample)
  })

  test.each(['', '0%', '101%', '-5%', '5 %', '0/7', '8/7', '1/0', '1/', '0', '0M', '5X', '1e3', 'all'])(
    '%j is refused',
    (text) => {
      expect(parseSample(text)).toBeNull()
    },
  )
})

describe('the chosen publications', () => {
  const all: Manifest[] = Array.from({ length: 100 }, (_, index) =>
    manifest(addDays('2026-01-01', index), { sha256: sha256Hex(String(index)), byteSize: 1000 }),
  )
  const random = (): number => 0.42
  const choose = (sample: string | null, since: string | null = null): Manifest[] =>
    chooseManifests(all, { since, sample: sample === null ? null : parseSample(sample) }, random)

  test('are all of them without a sample, or those from a day on', () => {
    expect(choose(null)).toEqual(all)
    expect(choose(null, '2026-04-01').map(({ asOfDay }) => asOfDay)[0]).toBe('2026-04-01')
    expect(choose('100%', '2026-04-01')).toHaveLength(10)
  })

  test('of all buckets are each publication exactly once', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), (buckets) => {
        const chosen = Array.from({ length: buckets }, (_, index) => choose(`${index + 1}/${buckets}`)).flat()
        expect(new Set(chosen).size).toBe(all.length)
        expect(chosen).toHaveLength(all.length)
      }),
    )
  })

  test('of a bucket stay the same when publications are added', () => {
    const before = chooseManifests(all.slice(0, 50), { since: null, sample: parseSample('3/5') }, random)
    expect(choose('3/5').slice(0, before.length)).toEqual(before)
  })

  test('of a share are that many, at least one, in their order', () => {
    const some = choose('7%')
    expect(some).toHaveLength(7)
    expect(some).toEqual(all.filter((each) => some.includes(each)))
    expect(choose('0.001%')).toHaveLength(1)
  })

  test('of a size hold no more than that, but at least one', () => {
    expect(choose('5500')).toHaveLength(5)
    expect(choose('1')).toHaveLength(1)
  })

  test('differ from one draw to the next', () => {
    const draw = (): string =>
      chooseManifests(all, { since: null, sample: parseSample('10%') }, Math.random)
        .map(({ asOfDay }) => asOfDay)
        .join()
    expect(new Set(Array.from({ length: 8 }, draw)).size).toBeGreaterThan(1)
  })
})
