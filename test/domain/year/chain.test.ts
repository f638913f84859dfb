import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  GENESIS_LEAF,
  headIsBehind,
  latestAt,
  sealEntry,
  sealLegacy,
} from '../../../src/domain/year/chain.ts'
import type { TimelineItem } from '../../../src/domain/year/chain.ts'
import { proveLedger } from '../../../src/domain/year/check.ts'
import type { EntryContent, LedgerContents, LedgerRow } from '../../../src/domain/year/ledger.ts'
import {
  chainOf,
  gap,
  headAt,
  legacyRow,
  legacySeal,
  manifest,
  publication,
  sampleLedger,
} from './ledger-rows.ts'

const SAMPLE = sampleLedger()
const LENGTH = SAMPLE.rows.length
const NEWEST = headAt(SAMPLE.rows, LENGTH)
const ONE_BEHIND = headAt(SAMPLE.rows, LENGTH - 1)

const versioned = (rows: LedgerRow[]): LedgerContents => ({ rows, legacy: [], founding: null })

describe('a sound ledger', () => {
  test('is empty', () => {
    const proved = proveLedger(versioned([]), null)
    expect(proved).toEqual({ entries: [], timeline: [], lastLeaf: GENESIS_LEAF, unfinished: null })
    expect(headIsBehind(proved.entries, null)).toBe(false)
  })

  test.each([publication('2026-01-01'), gap('2026-01-01'), legacySeal([])])(
    'has one entry and no head yet: a $kind',
    (content) => {
      const { entries } = proveLedger(versioned(chainOf([content])), null)
      expect(entries).toHaveLength(1)
      expect(headIsBehind(entries, null)).toBe(true)
    },
  )

  test('ends at its head or is one entry ahead of it', () => {
    const { entries, lastLeaf } = proveLedger(SAMPLE, NEWEST)
    expect(entries).toHaveLength(LENGTH)
    expect(lastLeaf).toBe(NEWEST.leaf)
    expect(headIsBehind(entries, NEWEST)).toBe(false)
    expect(headIsBehind(proveLedger(SAMPLE, ONE_BEHIND).entries, ONE_BEHIND)).toBe(true)
  })

  test('says what was sealed into it, and leaves the columns of other kinds empty', () => {
    const contents: EntryContent[] = [
      publication('2026-01-01'),
      { kind: 'gap', asOfDay: '2026-01-02', reason: 'attempts_spent', attempts: 3 },
      { kind: 'gap', asOfDay: '2026-01-03', reason: 'missed', attempts: 1 },
    ]
    const rows = chainOf(contents)
    const sealed = rows.map(({ seq, recordedAt, previousLeaf, leaf }) => ({
      seq,
      recordedAt,
      previousLeaf,
      leaf,
    }))
    const { entries } = proveLedger(versioned(rows), headAt(rows, 3))
    expect(entries).toEqual(contents.map((content, index) => ({ ...content, ...sealed[index] })))
    const used = Object.entries(rows[1] ?? {}).filter(([, value]) => value !== null)
    expect(Object.fromEntries(used)).toEqual({ ...contents[1], ...sealed[1] })
  })

  test('tells the publications of both ledgers in order of time', () => {
    const { timeline } = proveLedger(SAMPLE, NEWEST)
    expect(timeline.map(({ ledger, seq, manifest: named }) => [ledger, seq, named.asOfDay])).toEqual([
      ['v1', 1, '2025-12-30'],
      ['v1', 2, '2025-12-31'],
      ['v1', 3, '2026-01-01'],
      ['versioned', 1, '2026-01-02'],
      ['versioned', 3, '2026-01-03'],
      ['versioned', 6, '2026-01-06'],
      ['versioned', 7, '2026-01-07'],
    ])
    expect(timeline.at(-1)?.manifest).toEqual(manifest('2026-01-07'))
  })
})

test('a leaf is another for any other place, time or predecessor', () => {
  const content = publication('2026-01-01')
  const leaf = (seq: number, at: number, previous: string) => sealEntry(content, seq, at, previous).leaf
  expect(leaf(1, 5, GENESIS_LEAF)).toBe(leaf(1, 5, GENESIS_LEAF))
  const others = [leaf(2, 5, GENESIS_LEAF), leaf(1, 6, GENESIS_LEAF), leaf(1, 5, 'f'.repeat(64))]
  expect(new Set([leaf(1, 5, GENESIS_LEAF), ...others]).size).toBe(4)
  expect(sealLegacy(SAMPLE.legacy).rows).toBe(3)
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

  test('is the naive maximum, at, before and after every publication', () => {
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
