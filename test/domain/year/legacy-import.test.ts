import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OBJECT_MAX_BYTES } from '../../../src/domain/refusal.ts'
import { proveLedger } from '../../../src/domain/year/chain.ts'
import {
  beganWith,
  parseListed,
  planFounding,
  repeatedIds,
  sealFounding,
} from '../../../src/domain/year/legacy-import.ts'
import type { ListedPublication } from '../../../src/domain/year/legacy-import.ts'
import { chainOf, gap, headAt, manifest } from './ledger-rows.ts'

const NOW = Date.UTC(2026, 2, 1)

const ROW = {
  ledger: 'versioned',
  publicationId: 'an id',
  algorithmVersion: 'top-year-v2',
  schemaVersion: 2,
  kind: 'a kind',
  asOfDay: '2025-12-31',
  windowStart: '2025-01-01T00:00:00Z',
  windowEnd: '2026-01-01T00:00:00.000Z',
  generatedAt: '2026-01-01T02:00:00+02:00',
  publishedAt: '2026-01-01T00:05:00.123456Z',
  sha256: 'ab'.repeat(32),
  byteSize: 7,
  file: 'objects/ab/cd',
}

const V1 = { ledger: 'v1', algorithmVersion: 'top-year-v1' }

describe('a line of the list', () => {
  test('gives the manifest with its times as instants, cut to the millisecond', () => {
    expect(parseListed({ ...ROW, unknown: 1 }, 3, NOW)).toEqual({
      line: 3,
      ledger: 'versioned',
      file: 'objects/ab/cd',
      manifest: {
        publicationId: 'an id',
        algorithmVersion: 'top-year-v2',
        schemaVersion: 2,
        kind: 'a kind',
        asOfDay: '2025-12-31',
        windowStart: Date.UTC(2025, 0, 1),
        windowEnd: Date.UTC(2026, 0, 1),
        generatedAt: Date.UTC(2026, 0, 1),
        publishedAt: Date.UTC(2026, 0, 1, 0, 5, 0, 123),
        sha256: 'ab'.repeat(32),
        byteSize: 7,
      },
    })
  })

  test('may have any integer schema version, any kind, and a path of any depth', () => {
    const odd = [
      { schemaVersion: -7 },
      { kind: ' ' },
      { kind: '年 😀' },
      { file: './a/b..c/.d' },
      { byteSize: 0 },
      V1,
    ]
    for (const changes of odd) expect(parseListed({ ...ROW, ...changes }, 1, NOW)).toHaveProperty('manifest')
  })

  test('may be published this very millisecond, and not one later', () => {
    const publishedAt = new Date(NOW).toISOString()
    expect(parseListed({ ...ROW, publishedAt }, 1, NOW)).toHaveProperty('manifest')
    expect(parseListed({ ...ROW, publishedAt }, 1, NOW - 1)).toMatchObject({
      reason: expect.stringContaining('lies in the future'),
    })
  })

  test('may name the very day it was published on as its own, and not the next', () => {
    expect(parseListed({ ...ROW, asOfDay: '2026-01-01' }, 1, NOW)).toHaveProperty('manifest')
    expect(parseListed({ ...ROW, asOfDay: '2026-01-02' }, 1, NOW)).toMatchObject({
      reason: 'asOfDay: 2026-01-02 had not begun when it was published',
    })
  })

  test.each(Object.keys(ROW))('without %s is refused by that name', (field) => {
    const without = Object.fromEntries(Object.entries(ROW).filter(([name]) => name !== field))
    const publicationId = field === 'publicationId' ? null : 'an id'
    expect(parseListed(without, 4, NOW)).toEqual({
      line: 4,
      publicationId,
      reason: expect.stringMatching(new RegExp(`^${field}: `)),
    })
    expect(parseListed({ ...ROW, [field]: null }, 4, NOW)).toHaveProperty('reason')
    expect(parseListed({ ...ROW, [field]: [] }, 4, NOW)).toHaveProperty('reason')
  })

  test.each([
    ['ledger', 'v2'],
    ['publicationId', ''],
    ['publicationId', 'a\0b'],
    ['publicationId', '\ud800'],
    ['publicationId', 'top-year-v3-2026-03-02'],
    ['algorithmVersion', 'top-year-v3'],
    ['algorithmVersion', 'top-year-v1'],
    ['schemaVersion', 1.5],
    ['schemaVersion', '2'],
    ['schemaVersion', 2 ** 53],
    ['kind', ''],
    ['asOfDay', '2026-02-30'],
    ['asOfDay', '2026-01-02'],
    ['windowStart', '2025-01-01'],
    ['windowEnd', '2026-01-01T24:00:00Z'],
    ['generatedAt', '2026-01-01T00:00:60Z'],
    ['publishedAt', '2026-01-01T00:00:00'],
    ['publishedAt', 1_767_225_600_000],
    ['sha256', 'AB'.repeat(32)],
    ['sha256', 'ab'.repeat(31)],
    ['byteSize', -1],
    ['byteSize', OBJECT_MAX_BYTES + 1],
    ['file', ''],
    ['file', '/etc/passwd'],
    ['file', '../x'],
    ['file', 'a/../../x'],
    ['file', 'a/..'],
    ['file', 'a\0'],
  ])('is refused by %s %j', (field, value) => {
    expect(parseListed({ ...ROW, [field]: value }, 1, NOW)).toMatchObject({
      reason: expect.stringMatching(new RegExp(`^${field}: `)),
    })
  })

  test.each([[null], [[]], ['text'], [1]])('that is %j is refused', (row) => {
    expect(parseListed(row, 9, NOW)).toEqual({ publicationId: null, line: 9, reason: 'not a JSON object' })
  })

  test('never takes a version into the ledger of another', () => {
    for (const algorithmVersion of ['top-year-v2', 'top-year-v3', 'top-year-v4']) {
      expect(parseListed({ ...ROW, ledger: 'v1', algorithmVersion }, 1, NOW)).toHaveProperty('reason')
    }
  })

  test('tells everything that is wrong with it at once', () => {
    expect(parseListed({ ...ROW, kind: '', byteSize: '7' }, 1, NOW)).toMatchObject({
      reason: 'kind: is empty; byteSize: must be an integer',
    })
  })
})

function listed(line: number, ledger: 'v1' | 'versioned', publishedAt: number): ListedPublication {
  const publicationId = `${ledger} ${line}`
  return { line, ledger, file: 'x', manifest: manifest('2025-12-31', { publicationId, publishedAt }) }
}

test('an id that an earlier line of either ledger has is refused, with that line', () => {
  const [a, b] = [listed(2, 'v1', 1), listed(5, 'versioned', 2)]
  const again = { ...b, line: 7, manifest: { ...b.manifest, publicationId: 'v1 2' } }
  expect(repeatedIds([a, b])).toEqual([])
  expect(repeatedIds([a, b, again, { ...a, line: 8 }])).toEqual([
    { publicationId: 'v1 2', line: 7, reason: 'publicationId: line 2 has the same one' },
    { publicationId: 'v1 2', line: 8, reason: 'publicationId: line 2 has the same one' },
  ])
})

describe('a founding', () => {
  const some = fc.array(
    fc.record({ ledger: fc.constantFrom('v1', 'versioned'), at: fc.integer({ min: 0, max: 5 }) }),
    { maxLength: 12 },
  )
  const listOf = (items: readonly { ledger: 'v1' | 'versioned'; at: number }[]): ListedPublication[] =>
    items.map(({ ledger, at }, index) => listed(index + 1, ledger, at))

  test('is a ledger that proves, in order of time and, at equal times, of the list', () => {
    fc.assert(
      fc.property(some, (items) => {
        const list = listOf(items)
        const founding = planFounding(list)
        const rows = [...founding.rows, sealFounding(founding, 3)]
        const { timeline, entries } = proveLedger(
          { rows, legacy: founding.legacy, founding: null },
          headAt(rows, rows.length),
        )
        const expected = list.toSorted(
          (a, b) => a.manifest.publishedAt - b.manifest.publishedAt || a.ledger.localeCompare(b.ledger) * -1,
        )
        const names = expected.map((item) => item.manifest.publicationId)
        expect(timeline.map((item) => item.manifest.publicationId)).toHaveLength(names.length)
        for (const ledger of ['v1', 'versioned']) {
          const own = (all: readonly { ledger: string; manifest: { publicationId: string } }[]): string[] =>
            all.filter((item) => item.ledger === ledger).map((item) => item.manifest.publicationId)
          expect(own(timeline)).toEqual(own(expected))
        }
        expect(entries.at(-1)?.kind).toBe('legacy-seal')
        expect(entries.at(-1)?.recordedAt).toBe(Math.max(3, founding.rows.at(-1)?.recordedAt ?? 3))
        expect(beganWith(entries, founding)).toBe(true)
      }),
    )
  })

  test('is known again whatever followed it, and taken for no other', () => {
    const list = listOf([
      { ledger: 'v1', at: 1 },
      { ledger: 'versioned', at: 1 },
      { ledger: 'versioned', at: 2 },
    ])
    const founding = planFounding(list)
    const seal = sealFounding(founding, 9)
    const rows = [...founding.rows, seal]
    const { entries } = proveLedger({ rows, legacy: founding.legacy, founding: null }, headAt(rows, 3))
    expect(beganWith(entries, planFounding(list.toReversed()))).toBe(true)
    expect(beganWith(entries, planFounding(list.slice(1)))).toBe(false)
    expect(beganWith(entries, planFounding(list.slice(0, 2)))).toBe(false)
    expect(beganWith(entries, planFounding([...list, listed(4, 'versioned', 3)]))).toBe(false)
    expect(beganWith(entries, planFounding([...list, listed(4, 'v1', 0)]))).toBe(false)
    expect(beganWith(entries, planFounding([listed(4, 'v1', 1), ...list.slice(1)]))).toBe(false)
    expect(beganWith(entries, planFounding([...list.slice(0, 2), listed(4, 'versioned', 2)]))).toBe(false)
    expect(
      beganWith(entries, planFounding([...list.slice(0, 1), listed(4, 'versioned', 1), ...list.slice(2)])),
    ).toBe(false)
    expect(beganWith([], planFounding([]))).toBe(false)
    const own = chainOf([gap('2026-01-01')])
    const other = proveLedger({ rows: own, legacy: [], founding: null }, headAt(own, 1))
    expect(beganWith(other.entries, planFounding([]))).toBe(false)
  })
})
