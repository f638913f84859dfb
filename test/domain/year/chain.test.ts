import { describe, expect, test } from 'vitest'
import { GENESIS_LEAF, headIsBehind, latestAt } from '../../../src/domain/year/chain.ts'
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

test('the newest publication at a time has the greatest time, is versioned, or has the greater number', () => {
  const legacy = [5, 3, 5, 8].map((publishedAt, index) => legacyRow(index + 1, '2025-12-30', { publishedAt }))
  const own = [1, 3, 3, 8].map((publishedAt) => publication('2026-01-01', { publishedAt }))
  const rows = chainOf([...own, legacySeal(legacy)])
  const { timeline } = proveLedger({ rows, legacy, founding: null }, headAt(rows, rows.length))
  expect(timeline).toHaveLength(8)
  const newest = [0, 1, 2, 3, 4, 5, 7, 8, 99].map((at) => {
    const item = latestAt(timeline, at)
    return item && `${item.ledger} ${item.seq}`
  })
  expect(newest.join()).toBe(
    [
      null,
      'versioned 1',
      'versioned 1',
      'versioned 3',
      'versioned 3',
      'v1 3',
      'v1 3',
      'versioned 4',
      'versioned 4',
    ].join(),
  )
})
