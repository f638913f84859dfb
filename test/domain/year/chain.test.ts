import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Refusal } from '../../../src/domain/refusal.ts'
import {
  GENESIS_LEAF,
  headIsBehind,
  latestAt,
  proveLedger,
  sealEntry,
  sealLegacy,
} from '../../../src/domain/year/chain.ts'
import type { TimelineItem } from '../../../src/domain/year/chain.ts'
import type {
  EntryContent,
  Head,
  LedgerContents,
  LedgerRow,
  LegacyRow,
} from '../../../src/domain/year/ledger.ts'
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

/** Every column, so that a new one fails to compile until it is tampered with here. */
const LEDGER_COLUMNS = {
  seq: true,
  kind: true,
  recordedAt: true,
  asOfDay: true,
  publicationId: true,
  algorithmVersion: true,
  schemaVersion: true,
  envelopeKind: true,
  windowStart: true,
  windowEnd: true,
  generatedAt: true,
  publishedAt: true,
  sha256: true,
  byteSize: true,
  reason: true,
  attempts: true,
  legacyRows: true,
  legacyDigest: true,
  previousLeaf: true,
  leaf: true,
} satisfies Record<keyof LedgerRow, true>

const LEGACY_COLUMNS = {
  position: true,
  publicationId: true,
  algorithmVersion: true,
  schemaVersion: true,
  envelopeKind: true,
  asOfDay: true,
  windowStart: true,
  windowEnd: true,
  generatedAt: true,
  publishedAt: true,
  sha256: true,
  byteSize: true,
} satisfies Record<keyof LegacyRow, true>

type Cell = string | number | null

/** Other values that a cell of the same database column could hold. */
function otherValues(value: Cell): Cell[] {
  if (value === null) return [0, 1, 3, '', 'x', '2026-01-01', 'missed']
  if (typeof value === 'number')
    return [value + 1, value - 1, -value - 1, 0, null].filter((other) => other !== value)
  return [`${value} `, value.slice(1), value.toUpperCase(), '', '0'.repeat(64), '2026-01-09', null].filter(
    (other) => other !== value,
  )
}

/** Every way to change one cell of one row. */
function tampered<Row extends object>(rows: readonly Row[]): { change: string; rows: Row[] }[] {
  return rows.flatMap((row, index) =>
    Object.entries(row).flatMap(([column, value]: [string, Cell]) =>
      otherValues(value).map((other) => ({
        change: `row ${index + 1}: ${column} ${JSON.stringify(value)} -> ${JSON.stringify(other)}`,
        rows: rows.with(index, { ...row, [column]: other }),
      })),
    ),
  )
}

const without = <Row>(rows: readonly Row[], index: number): Row[] => rows.toSpliced(index, 1)

/** True when it is refused as damaged. */
function isDamaged(contents: LedgerContents, head: Head | null): boolean {
  try {
    proveLedger(contents, head)
    return false
  } catch (error) {
    if (error instanceof Refusal && error.code === 'storage_damaged') return true
    throw error
  }
}

const SAMPLE = sampleLedger()
const LENGTH = SAMPLE.rows.length
const NEWEST = headAt(SAMPLE.rows, LENGTH)
const ONE_BEHIND = headAt(SAMPLE.rows, LENGTH - 1)

describe('a sound ledger', () => {
  test('is empty', () => {
    const proved = proveLedger({ rows: [], legacy: [], founding: null }, null)
    expect(proved).toEqual({ entries: [], timeline: [], lastLeaf: GENESIS_LEAF, unfinished: null })
    expect(headIsBehind(proved.entries, null)).toBe(false)
  })

  test('has one entry and no head yet', () => {
    for (const content of [publication('2026-01-01'), gap('2026-01-01'), legacySeal([])]) {
      const { entries } = proveLedger({ rows: chainOf([content]), legacy: [], founding: null }, null)
      expect(entries).toHaveLength(1)
      expect(headIsBehind(entries, null)).toBe(true)
    }
  })

  test('ends at its head', () => {
    const { entries, lastLeaf } = proveLedger(SAMPLE, NEWEST)
    expect(entries.map(({ kind }) => kind)).toEqual([
      'publication',
      'legacy-seal',
      'publication',
      'gap',
      'gap',
      'publication',
      'publication',
    ])
    expect(lastLeaf).toBe(NEWEST.leaf)
    expect(headIsBehind(entries, NEWEST)).toBe(false)
  })

  test('is one entry ahead of its head', () => {
    const { entries } = proveLedger(SAMPLE, ONE_BEHIND)
    expect(entries).toHaveLength(LENGTH)
    expect(headIsBehind(entries, ONE_BEHIND)).toBe(true)
  })

  test('says what was sealed into it', () => {
    const contents: EntryContent[] = [
      publication('2026-01-01'),
      { kind: 'gap', asOfDay: '2026-01-02', reason: 'attempts_spent', attempts: 3 },
      { kind: 'gap', asOfDay: '2026-01-03', reason: 'missed', attempts: 1 },
    ]
    const rows = chainOf(contents)
    const { entries } = proveLedger({ rows, legacy: [], founding: null }, headAt(rows, 3))
    expect(entries).toEqual(
      contents.map((content, index) => {
        const { seq, recordedAt, previousLeaf, leaf } = rows[index] ?? { seq: 0 }
        return { ...content, seq, recordedAt, previousLeaf, leaf }
      }),
    )
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

  test('may hold imported publications of one and the same time', () => {
    const publishedAt = Date.UTC(2026, 0, 9)
    const rows = chainOf([
      publication('2026-01-07', { publishedAt }),
      publication('2026-01-08', { publishedAt }),
    ])
    expect(proveLedger({ rows, legacy: [], founding: null }, headAt(rows, 2)).entries).toHaveLength(2)
  })

  test('is any chain of any entries with a head at its end or one before', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('publication', 'gap'), { minLength: 2, maxLength: 8 }),
        (kinds) => {
          const rows = chainOf(
            kinds.map((kind, index) => (kind === 'gap' ? gap : publication)(`2026-02-${String(index + 10)}`)),
          )
          for (const seq of [rows.length, rows.length - 1]) {
            expect(proveLedger({ rows, legacy: [], founding: null }, headAt(rows, seq)).entries).toHaveLength(
              rows.length,
            )
          }
        },
      ),
    )
  })
})

describe('an edited ledger is damaged', () => {
  test('by a change of any one cell of any entry, used or not', () => {
    const changes = tampered(SAMPLE.rows)
    expect(new Set(SAMPLE.rows.flatMap((row) => Object.keys(row)))).toEqual(
      new Set(Object.keys(LEDGER_COLUMNS)),
    )
    expect(changes.length).toBeGreaterThan(LENGTH * Object.keys(LEDGER_COLUMNS).length * 3)
    for (const { change, rows } of changes) {
      expect(isDamaged({ ...SAMPLE, rows }, NEWEST), change).toBe(true)
      expect(isDamaged({ ...SAMPLE, rows }, ONE_BEHIND), change).toBe(true)
    }
  })

  test('by a change of any one cell of a lone entry without a head', () => {
    for (const content of [publication('2026-01-01'), gap('2026-01-01'), legacySeal([])]) {
      for (const { change, rows } of tampered(chainOf([content]))) {
        expect(isDamaged({ rows, legacy: [], founding: null }, null), change).toBe(true)
      }
    }
  })

  test('by a change of any one cell of any legacy row', () => {
    const changes = tampered(SAMPLE.legacy)
    expect(new Set(SAMPLE.legacy.flatMap((row) => Object.keys(row)))).toEqual(
      new Set(Object.keys(LEGACY_COLUMNS)),
    )
    for (const { change, rows: legacy } of changes) {
      expect(isDamaged({ ...SAMPLE, legacy }, NEWEST), change).toBe(true)
      expect(isDamaged({ ...SAMPLE, legacy }, ONE_BEHIND), change).toBe(true)
    }
  })

  test('by any text or number in any cell', () => {
    const columns = Object.keys(LEDGER_COLUMNS)
    const cells = fc.record({
      index: fc.nat(LENGTH - 1),
      column: fc.constantFrom(...columns),
      value: fc.oneof(fc.string({ unit: 'binary' }), fc.maxSafeInteger()),
    })
    fc.assert(
      fc.property(cells, ({ index, column, value }) => {
        const row = SAMPLE.rows[index]
        if (!row) throw new Error('no such row')
        const changed: LedgerRow = { ...row, [column]: value }
        fc.pre(JSON.stringify(changed) !== JSON.stringify(row))
        expect(
          isDamaged({ ...SAMPLE, rows: SAMPLE.rows.with(index, changed) }, NEWEST),
          `${index} ${column}`,
        ).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('when text moves from one column to the next', () => {
    const rows = chainOf([publication('2026-01-01', { publicationId: 'ab', algorithmVersion: 'c' })])
    const moved = rows.map((row): LedgerRow => ({ ...row, publicationId: 'a', algorithmVersion: 'bc' }))
    expect(isDamaged({ rows: moved, legacy: [], founding: null }, null)).toBe(true)
  })

  test('by the deletion of any entry, renumbered or not', () => {
    for (const index of SAMPLE.rows.keys()) {
      const rows = without(SAMPLE.rows, index)
      const renumbered = rows.map((row, position): LedgerRow => ({ ...row, seq: position + 1 }))
      for (const head of [NEWEST, ONE_BEHIND]) {
        // The last entry alone may be missing, as long as no head ever named it.
        if (head === ONE_BEHIND && index === LENGTH - 1) continue
        expect(isDamaged({ ...SAMPLE, rows }, head), `entry ${index + 1} deleted`).toBe(true)
        expect(
          isDamaged({ ...SAMPLE, rows: renumbered }, head),
          `entry ${index + 1} deleted and renumbered`,
        ).toBe(true)
      }
    }
  })

  test('by the deletion of any legacy row, or of all', () => {
    for (const index of SAMPLE.legacy.keys()) {
      expect(
        isDamaged({ ...SAMPLE, legacy: without(SAMPLE.legacy, index) }, NEWEST),
        `legacy row ${index + 1}`,
      ).toBe(true)
    }
    expect(isDamaged({ ...SAMPLE, legacy: [], founding: null }, NEWEST)).toBe(true)
  })

  test('by an exchange of any two entries, renumbered or not', () => {
    for (let first = 0; first < LENGTH; first += 1) {
      for (let second = first + 1; second < LENGTH; second += 1) {
        const [a, b] = [SAMPLE.rows[first], SAMPLE.rows[second]]
        if (!a || !b) throw new Error('no such rows')
        const rows = SAMPLE.rows.with(first, b).with(second, a)
        expect(isDamaged({ ...SAMPLE, rows }, NEWEST), `${first} <-> ${second}`).toBe(true)
        const renumbered = rows.map((row, index): LedgerRow => ({ ...row, seq: index + 1 }))
        expect(isDamaged({ ...SAMPLE, rows: renumbered }, NEWEST), `${first} <-> ${second}, renumbered`).toBe(
          true,
        )
      }
    }
  })

  test('by an exchange of legacy rows, renumbered or not', () => {
    const legacy = SAMPLE.legacy.toReversed()
    expect(isDamaged({ ...SAMPLE, legacy }, NEWEST)).toBe(true)
    const renumbered = legacy.map((row, index): LegacyRow => ({ ...row, position: index + 1 }))
    expect(isDamaged({ ...SAMPLE, legacy: renumbered }, NEWEST)).toBe(true)
  })

  test('by an insertion anywhere, of a copy or of a new entry that continues the one before', () => {
    for (let index = 0; index <= LENGTH; index += 1) {
      const before = SAMPLE.rows[index - 1]
      const sealed = sealEntry(
        gap('2026-01-05'),
        index + 1,
        before?.recordedAt ?? 0,
        before?.leaf ?? GENESIS_LEAF,
      )
      const copy = SAMPLE.rows[Math.min(index, LENGTH - 1)]
      for (const extra of [sealed, copy]) {
        if (!extra) throw new Error('no such row')
        const rows = SAMPLE.rows.toSpliced(index, 0, extra)
        const renumbered = rows.map((row, position): LedgerRow => ({ ...row, seq: position + 1 }))
        // A sealed entry after the last is no edit but the next entry, unless the head was already behind.
        if (index < LENGTH || extra !== sealed) {
          expect(isDamaged({ ...SAMPLE, rows }, NEWEST), `inserted at ${index}`).toBe(true)
          expect(isDamaged({ ...SAMPLE, rows: renumbered }, NEWEST), `inserted at ${index}, renumbered`).toBe(
            true,
          )
        }
        expect(isDamaged({ ...SAMPLE, rows }, ONE_BEHIND), `inserted at ${index}, head behind`).toBe(true)
      }
    }
  })

  test('by another entry sealed in the place of any but one no head has named', () => {
    for (const [index, row] of SAMPLE.rows.entries()) {
      const other = sealEntry(gap('2026-01-05'), row.seq, row.recordedAt, row.previousLeaf)
      const rows = SAMPLE.rows.with(index, other)
      expect(isDamaged({ ...SAMPLE, rows }, NEWEST), `entry ${row.seq} replaced`).toBe(true)
      if (index < LENGTH - 1)
        expect(isDamaged({ ...SAMPLE, rows }, ONE_BEHIND), `entry ${row.seq} replaced`).toBe(true)
    }
  })

  test('by an added legacy row', () => {
    const legacy = [...SAMPLE.legacy, legacyRow(4, '2026-01-02')]
    expect(isDamaged({ ...SAMPLE, legacy }, NEWEST)).toBe(true)
  })

  test('by a loss of its tail', () => {
    for (let kept = 0; kept < LENGTH; kept += 1) {
      expect(
        isDamaged({ ...SAMPLE, rows: SAMPLE.rows.slice(0, kept) }, NEWEST),
        `only ${kept} entries left`,
      ).toBe(true)
    }
    expect(isDamaged({ rows: [], legacy: [], founding: null }, NEWEST), 'nothing left').toBe(true)
  })

  test('when its history is rewritten and chained anew from any point up to the head', () => {
    for (const index of SAMPLE.rows.keys()) {
      const rows = SAMPLE.rows.slice(0, index)
      for (let seq = index + 1; seq <= LENGTH; seq += 1) {
        const day = `2026-01-${String(seq).padStart(2, '0')}`
        rows.push(sealEntry(gap(day), seq, Date.UTC(2026, 2, seq), rows.at(-1)?.leaf ?? GENESIS_LEAF))
      }
      const legacy = index > 1 ? SAMPLE.legacy : []
      expect(proveLedger({ rows, legacy, founding: null }, headAt(rows, LENGTH)).entries).toHaveLength(LENGTH)
      expect(isDamaged({ rows, legacy, founding: null }, NEWEST), `rewritten from entry ${index + 1}`).toBe(
        true,
      )
    }
  })
})

describe('a ledger and its head disagree', () => {
  test('when the ledger is two or more entries past the head', () => {
    for (let seq = 1; seq <= LENGTH - 2; seq += 1) {
      expect(isDamaged(SAMPLE, headAt(SAMPLE.rows, seq)), `head ${seq} of ${LENGTH}`).toBe(true)
    }
  })

  test('when there is no head and more than one entry', () => {
    const rows = chainOf([gap('2026-01-01'), gap('2026-01-02')])
    expect(isDamaged({ rows, legacy: [], founding: null }, null)).toBe(true)
    expect(isDamaged(SAMPLE, null)).toBe(true)
  })

  test('when the head names another leaf', () => {
    for (const seq of [LENGTH, LENGTH - 1]) {
      expect(
        isDamaged(SAMPLE, { seq, leaf: headAt(SAMPLE.rows, seq - 1).leaf, time: 0 }),
        'the leaf before',
      ).toBe(true)
      expect(isDamaged(SAMPLE, { seq, leaf: GENESIS_LEAF, time: 0 }), 'the first leaf').toBe(true)
      expect(
        isDamaged(SAMPLE, { seq, leaf: headAt(SAMPLE.rows, seq).leaf.toUpperCase(), time: 0 }),
        'upper case',
      ).toBe(true)
    }
  })

  test('when the head is past the ledger, or no place in it', () => {
    for (const seq of [LENGTH + 1, LENGTH + 100, 0, -1, 0.5, Number.NaN]) {
      expect(isDamaged(SAMPLE, { ...NEWEST, seq }), `head ${seq}`).toBe(true)
    }
    expect(isDamaged({ rows: [], legacy: [], founding: null }, { seq: 1, leaf: GENESIS_LEAF, time: 0 })).toBe(
      true,
    )
  })
})

describe('a chained entry is damage all the same', () => {
  test.each([
    ['a publication of no real day', publication('2026-01-01', { asOfDay: '2026-02-30' })],
    ['a publication of a digest in upper case', publication('2026-01-01', { sha256: 'A'.repeat(64) })],
    ['a publication of a digest that is a path', publication('2026-01-01', { sha256: '../../etc/passwd' })],
    ['a gap of no real day', gap('2026-13-01')],
  ])('when it is %s', (_, content) => {
    expect(isDamaged({ rows: chainOf([content]), legacy: [], founding: null }, null)).toBe(true)
  })

  test('when its sequence number is not the next', () => {
    for (const seq of [LENGTH, LENGTH + 2, 1]) {
      const rows = [...SAMPLE.rows, sealEntry(gap('2026-01-08'), seq, NEWEST.time, NEWEST.leaf)]
      expect(isDamaged({ ...SAMPLE, rows }, NEWEST), `sequence number ${seq}`).toBe(true)
    }
  })

  test('when it is back-dated', () => {
    const rows = chainOf([publication('2026-01-02'), gap('2026-01-03')])
    const early = sealEntry(gap('2026-01-03'), 2, (rows[0]?.recordedAt ?? 0) - 1, rows[0]?.leaf ?? '')
    expect(isDamaged({ rows: rows.with(1, early), legacy: [], founding: null }, headAt(rows, 1))).toBe(true)
  })

  test('when it is published before the publication before it', () => {
    const first = sealEntry(publication('2026-01-02'), 1, Date.UTC(2026, 0, 9), GENESIS_LEAF)
    const second = sealEntry(publication('2026-01-01'), 2, Date.UTC(2026, 0, 9), first.leaf)
    expect(isDamaged({ rows: [first, second], legacy: [], founding: null }, headAt([first, second], 2))).toBe(
      true,
    )
  })

  test('when it seals the legacy ledger a second time', () => {
    const rows = chainOf([legacySeal([]), legacySeal([])])
    expect(isDamaged({ rows, legacy: [], founding: null }, headAt(rows, 2))).toBe(true)
  })

  test('when legacy rows have no seal', () => {
    const legacy = [legacyRow(1, '2025-12-30')]
    expect(isDamaged({ rows: [], legacy, founding: null }, null)).toBe(true)
    expect(isDamaged({ rows: chainOf([gap('2026-01-01')]), legacy, founding: null }, null)).toBe(true)
  })

  test('when a sealed legacy row names no real day or digest', () => {
    for (const overrides of [{ asOfDay: '2025-02-29' }, { sha256: 'x' }]) {
      const legacy = [legacyRow(1, '2025-12-30', overrides)]
      expect(isDamaged({ rows: chainOf([legacySeal(legacy)]), legacy, founding: null }, null)).toBe(true)
    }
  })
})

describe('a leaf', () => {
  const content = publication('2026-01-01')

  test('is the same for the same entry and another for any other place, time or predecessor', () => {
    const leaf = (seq: number, at: number, previous: string) => sealEntry(content, seq, at, previous).leaf
    expect(leaf(1, 5, GENESIS_LEAF)).toBe(leaf(1, 5, GENESIS_LEAF))
    const others = [leaf(2, 5, GENESIS_LEAF), leaf(1, 6, GENESIS_LEAF), leaf(1, 5, 'f'.repeat(64))]
    expect(new Set([leaf(1, 5, GENESIS_LEAF), ...others]).size).toBe(4)
  })

  test('leaves the columns of other kinds empty', () => {
    const row = sealEntry(
      { kind: 'gap', asOfDay: '2026-01-01', reason: 'missed', attempts: 2 },
      4,
      99,
      GENESIS_LEAF,
    )
    const used = Object.entries(row).filter(([, value]) => value !== null)
    expect(Object.fromEntries(used)).toEqual({
      seq: 4,
      kind: 'gap',
      recordedAt: 99,
      asOfDay: '2026-01-01',
      reason: 'missed',
      attempts: 2,
      previousLeaf: GENESIS_LEAF,
      leaf: row.leaf,
    })
    expect(Object.keys(row).toSorted()).toEqual(Object.keys(LEDGER_COLUMNS).toSorted())
  })

  test('of the legacy ledger counts its rows and differs for every order of them', () => {
    expect(sealLegacy(SAMPLE.legacy).rows).toBe(3)
    expect(sealLegacy(SAMPLE.legacy.toReversed()).digest).not.toBe(sealLegacy(SAMPLE.legacy).digest)
    expect(sealLegacy([]).rows).toBe(0)
  })
})

describe('the newest publication at a time', () => {
  const times = fc.integer({ min: 0, max: 12 })

  /** Rows of both ledgers: legacy in any order of time, versioned ascending, equal times in both. */
  const timelines = fc.record({
    legacy: fc.array(times, { maxLength: 8 }),
    versioned: fc.array(times, { maxLength: 8 }),
  })

  function timelineOf({ legacy, versioned }: { legacy: number[]; versioned: number[] }): TimelineItem[] {
    const legacyRows = legacy.map((publishedAt, index) => legacyRow(index + 1, '2025-12-30', { publishedAt }))
    const rows = chainOf([
      ...versioned.toSorted((a, b) => a - b).map((publishedAt) => publication('2026-01-01', { publishedAt })),
      legacySeal(legacyRows),
    ])
    return proveLedger({ rows, legacy: legacyRows, founding: null }, headAt(rows, rows.length)).timeline
  }

  /** decisions.md, part 5: the greatest time; the versioned ledger; the greater sequence number. */
  function naiveLatest(timeline: readonly TimelineItem[], at: number): TimelineItem | null {
    let best: TimelineItem | null = null
    for (const item of timeline) {
      if (item.manifest.publishedAt > at) continue
      if (best === null || beats(item, best)) best = item
    }
    return best
  }

  function beats(a: TimelineItem, b: TimelineItem): boolean {
    if (a.manifest.publishedAt !== b.manifest.publishedAt)
      return a.manifest.publishedAt > b.manifest.publishedAt
    if (a.ledger !== b.ledger) return a.ledger === 'versioned'
    return a.seq > b.seq
  }

  test('is the naive maximum, at, before and after every publication', () => {
    fc.assert(
      fc.property(timelines, fc.integer({ min: -1, max: 14 }), (ledgers, at) => {
        const timeline = timelineOf(ledgers)
        expect(timeline).toHaveLength(ledgers.legacy.length + ledgers.versioned.length)
        expect(latestAt(timeline, at)).toEqual(naiveLatest(timeline, at))
      }),
      { numRuns: 500 },
    )
  })

  test('includes the millisecond of publication and not the one before', () => {
    const timeline = timelineOf({ legacy: [5], versioned: [9] })
    expect(latestAt(timeline, 4)).toBeNull()
    expect(latestAt(timeline, 5)?.ledger).toBe('v1')
    expect(latestAt(timeline, 8)?.ledger).toBe('v1')
    expect(latestAt(timeline, 9)?.ledger).toBe('versioned')
    expect(latestAt([], 9)).toBeNull()
  })
})

describe('a ledger that is being founded', () => {
  const legacy = [legacyRow(1, '2025-12-30')]
  const imported = chainOf([publication('2026-01-01'), publication('2026-01-02')])
  const { seq, leaf } = headAt(imported, 2)
  const founding = { seq, leaf, beganAt: 7 }
  const EMPTY: LedgerContents = { rows: [], legacy: [], founding }
  const whole = chainOf([publication('2026-01-01'), publication('2026-01-02'), legacySeal(legacy)])

  test('is sound and empty before the commit, with its head or without, and is known as unfinished', () => {
    for (const head of [null, headAt(imported, 2)]) {
      const proved = proveLedger(EMPTY, head)
      expect(proved).toEqual({ entries: [], timeline: [], lastLeaf: GENESIS_LEAF, unfinished: founding })
    }
  })

  test('is damaged before the commit under any other head', () => {
    const others = [
      headAt(imported, 1),
      headAt(whole, 3),
      { ...headAt(imported, 2), leaf: GENESIS_LEAF },
      { ...headAt(imported, 2), seq: 3 },
    ]
    for (const head of others) expect(isDamaged(EMPTY, head)).toBe(true)
    expect(isDamaged({ ...EMPTY, founding: null }, headAt(imported, 2)), 'without the mark').toBe(true)
    expect(isDamaged({ ...EMPTY, legacy }, headAt(imported, 2)), 'legacy rows without a seal').toBe(true)
  })

  test('is sound after the commit with the head before the seal and with the one after, and is finished', () => {
    for (const head of [headAt(whole, 2), headAt(whole, 3)]) {
      const proved = proveLedger({ rows: whole, legacy, founding }, head)
      expect([proved.entries.length, proved.timeline.length, proved.unfinished]).toEqual([3, 3, null])
    }
  })

  test('is damaged after the commit without a head, and when it does not begin as the mark says', () => {
    expect(isDamaged({ rows: whole, legacy, founding }, null)).toBe(true)
    const head = headAt(whole, 3)
    for (const wrong of [
      { ...founding, leaf: GENESIS_LEAF },
      { ...founding, seq: 1 },
      { ...headAt(whole, 3), beganAt: 7 },
    ]) {
      expect(isDamaged({ rows: whole, legacy, founding: wrong }, head)).toBe(true)
    }
    const other = chainOf([gap('2026-01-01')])
    expect(isDamaged({ rows: other, legacy: [], founding }, null), 'an entry of its own').toBe(true)
  })
})
