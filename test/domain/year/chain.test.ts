import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GENESIS_LEAF, headIsBehind, latestAt } from '../../../src/domain/year/chain.ts'
import type { TimelineItem } from '../../../src/domain/year/chain.ts'
import { proveLedger } from '../../../src/domain/year/check.ts'
import type { LedgerContents, LedgerRow } from '../../../src/domain/year/ledger.ts'
import { leafText } from '../../../src/domain/year/ledger.ts'
import { ENTRY_MAX_BYTES } from '../../../src/domain/year/log/tiles.ts'
import { chainOf, gap, headAt, legacyRow, legacySeal, publication } from './ledger-rows.ts'

const versioned = (rows: LedgerRow[]): LedgerContents => ({ rows, legacy: [], founding: null })

describe('a sound ledger', () => {
  test('an empty ledger is sound', () => {
    const proved = proveLedger(versioned([]), null)
    expect(proved).toEqual({ entries: [], timeline: [], lastLeaf: GENESIS_LEAF, unfinished: null })
    expect(headIsBehind(proved.entries, null)).toBe(false)
  })

  test.each([publication('2026-01-01'), gap('2026-01-01'), legacySeal([])])(
    'a ledger with one entry and no head yet is sound: a $kind',
    (content) => {
      const { entries } = proveLedger(versioned(chainOf([content])), null)
      expect(entries).toHaveLength(1)
      expect(headIsBehind(entries, null)).toBe(true)
    },
  )

  test('an entry whose line is too long for a signed log is not sealed', () => {
    const [row] = chainOf([publication('2026-01-01', { kind: '' })])
    const length = row ? ENTRY_MAX_BYTES - Buffer.byteLength(leafText(row)) : 0
    const withKind = (kind: string) => chainOf([publication('2026-01-01', { kind })])
    expect(Buffer.byteLength(leafText(withKind('k'.repeat(length))[0] as LedgerRow))).toBe(ENTRY_MAX_BYTES)
    expect(() => withKind('k'.repeat(length + 1))).toThrow('entry 1 has 65536 bytes; at most 65535')
  })
})

describe('the newest publication at a time', () => {
  const times = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 8 })

  /** Both ledgers: legacy in any order of time, versioned ascending, equal times in both. */
  function timelineOf(legacyTimes: number[], ownTimes: number[]): TimelineItem[] {
    const legacy = legacyTimes.map((publishedAt, index) =>
      legacyRow(index + 1, '2025-12-30', { publishedAt }),
    )
    const ascending = ownTimes.toSorted((a, b) => a - b)
    const rows = chainOf([
      ...ascending.map((publishedAt) => publication('2026-01-01', { publishedAt })),
      legacySeal(legacy),
    ])
    return proveLedger({ rows, legacy, founding: null }, headAt(rows, rows.length)).timeline
  }

  /** decisions.md, part 5: the greatest time; the versioned ledger; the greater sequence number. */
  function beats(a: TimelineItem, b: TimelineItem): boolean {
    const later = a.manifest.publishedAt - b.manifest.publishedAt
    if (later !== 0) return later > 0
    return a.ledger === b.ledger ? a.seq > b.seq : a.ledger === 'versioned'
  }

  test('the newest publication is the naive maximum, at, before and after every publication', () => {
    fc.assert(
      fc.property(times, times, fc.integer({ min: -1, max: 14 }), (legacy, own, at) => {
        const timeline = timelineOf(legacy, own)
        expect(timeline).toHaveLength(legacy.length + own.length)
        const past = timeline.filter((item) => item.manifest.publishedAt <= at)
        const best = past.find((item) => past.every((other) => other === item || beats(item, other)))
        expect(latestAt(timeline, at)).toEqual(best ?? null)
      }),
      { numRuns: 500 },
    )
  })
})
