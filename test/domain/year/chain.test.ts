import fc from 'fast-check'
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
import type { EntryContent, Head, LedgerContents, LedgerRow } from '../../../src/domain/year/ledger.ts'
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

type Cell = string | number | null

const SAMPLE = sampleLedger()
const LENGTH = SAMPLE.rows.length
const NEWEST = headAt(SAMPLE.rows, LENGTH)
const ONE_BEHIND = headAt(SAMPLE.rows, LENGTH - 1)
const HEADS = [NEWEST, ONE_BEHIND]

const versioned = (rows: LedgerRow[]): LedgerContents => ({ rows, legacy: [], founding: null })
const renumbered = (rows: readonly LedgerRow[]): LedgerRow[] =>
  rows.map((row, index) => ({ ...row, seq: index + 1 }))

/** Other values that a cell of the same database column could hold. */
function otherValues(value: Cell): Cell[] {
  if (value === null) return [0, 1, 3, '', 'x', '2026-01-01', 'missed']
  const others =
    typeof value === 'number'
      ? [value + 1, value - 1, -value - 1, 0, null]
      : [`${value} `, value.slice(1), value.toUpperCase(), '', '0'.repeat(64), '2026-01-09', null]
  return others.filter((other) => other !== value)
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

function isDamaged(contents: LedgerContents, head: Head | null): boolean {
  try {
    proveLedger(contents, head)
    return false
  } catch (error) {
    if (error instanceof Refusal && error.code === 'storage_damaged') return true
    throw error
  }
}

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

/** Every order, loss and repetition of the sample's entries, but for the loss of the last one. */
function* rearranged(): Generator<[string, LedgerRow[]]> {
  const { rows } = SAMPLE
  for (let kept = 0; kept < LENGTH - 1; kept += 1) yield [`only ${kept} left`, rows.slice(0, kept)]
  for (const [index, row] of rows.entries()) {
    if (index < LENGTH - 1) yield [`${row.seq} deleted`, rows.toSpliced(index, 1)]
    yield [`${row.seq} repeated`, rows.toSpliced(index, 0, row)]
    for (const [place, other] of rows.entries()) {
      if (place > index)
        yield [`${row.seq} and ${other.seq} exchanged`, rows.with(index, other).with(place, row)]
    }
  }
}

describe('an edited ledger is damaged', () => {
  test('by a change of any one cell of any entry or legacy row, used or not', () => {
    const changes = tampered(SAMPLE.rows)
    expect(changes.length).toBeGreaterThan(LENGTH * 20 * 3)
    for (const head of HEADS) {
      for (const { change, rows } of changes) expect(isDamaged({ ...SAMPLE, rows }, head), change).toBe(true)
      for (const { change, rows: legacy } of tampered(SAMPLE.legacy))
        expect(isDamaged({ ...SAMPLE, legacy }, head), change).toBe(true)
    }
  })

  test('by a change of any one cell of a lone entry without a head', () => {
    for (const content of [publication('2026-01-01'), gap('2026-01-01'), legacySeal([])]) {
      for (const { change, rows } of tampered(chainOf([content])))
        expect(isDamaged(versioned(rows), null), change).toBe(true)
    }
  })

  test('when text moves from one column to the next', () => {
    const rows = chainOf([publication('2026-01-01', { publicationId: 'ab', algorithmVersion: 'c' })])
    const moved = rows.map((row): LedgerRow => ({ ...row, publicationId: 'a', algorithmVersion: 'bc' }))
    expect(isDamaged(versioned(moved), null)).toBe(true)
  })

  test.each([...rearranged()])('with entries %s, renumbered or not', (_how, rows) => {
    for (const head of HEADS) {
      expect(isDamaged({ ...SAMPLE, rows }, head)).toBe(true)
      expect(isDamaged({ ...SAMPLE, rows: renumbered(rows) }, head)).toBe(true)
    }
  })

  test('without its last entry once a head has named it', () => {
    expect(isDamaged({ ...SAMPLE, rows: SAMPLE.rows.slice(0, -1) }, NEWEST)).toBe(true)
  })

  test('by a new entry sealed anywhere before its end, or where a head was named', () => {
    for (const [index, { seq, recordedAt, previousLeaf }] of SAMPLE.rows.entries()) {
      const other = sealEntry(gap('2026-01-05'), seq, recordedAt, previousLeaf)
      const [inserted, replaced] = [SAMPLE.rows.toSpliced(index, 0, other), SAMPLE.rows.with(index, other)]
      for (const rows of [inserted, renumbered(inserted), replaced])
        expect(isDamaged({ ...SAMPLE, rows }, NEWEST), `at ${index}`).toBe(true)
      expect(isDamaged({ ...SAMPLE, rows: inserted }, ONE_BEHIND), `at ${index}`).toBe(true)
      if (index < LENGTH - 1) expect(isDamaged({ ...SAMPLE, rows: replaced }, ONE_BEHIND)).toBe(true)
    }
  })

  test.each([
    ['the first deleted', SAMPLE.legacy.slice(1)],
    ['the last deleted', SAMPLE.legacy.slice(0, -1)],
    ['all deleted', []],
    ['their order turned round', SAMPLE.legacy.toReversed()],
    [
      'their order turned round and renumbered',
      SAMPLE.legacy.toReversed().map((row, index) => ({ ...row, position: index + 1 })),
    ],
    ['one added', [...SAMPLE.legacy, legacyRow(4, '2026-01-02')]],
  ])('with legacy rows that have %s', (_how, legacy) => {
    expect(isDamaged({ ...SAMPLE, legacy }, NEWEST)).toBe(true)
  })

  test('when its history is rewritten and chained anew from any point up to the head', () => {
    for (const index of SAMPLE.rows.keys()) {
      const rows = SAMPLE.rows.slice(0, index)
      for (let seq = index + 1; seq <= LENGTH; seq += 1)
        rows.push(
          sealEntry(gap('2026-01-09'), seq, Date.UTC(2026, 2, seq), rows.at(-1)?.leaf ?? GENESIS_LEAF),
        )
      const contents = { ...versioned(rows), legacy: index > 1 ? SAMPLE.legacy : [] }
      expect(isDamaged(contents, headAt(rows, LENGTH))).toBe(false)
      expect(isDamaged(contents, NEWEST), `rewritten from entry ${index + 1}`).toBe(true)
    }
  })
})

describe('a ledger and its head disagree', () => {
  test('when the ledger is two or more entries past the head', () => {
    for (let seq = 1; seq <= LENGTH - 2; seq += 1)
      expect(isDamaged(SAMPLE, headAt(SAMPLE.rows, seq)), `head ${seq} of ${LENGTH}`).toBe(true)
    expect(isDamaged(versioned(chainOf([gap('2026-01-01'), gap('2026-01-02')])), null)).toBe(true)
  })

  test.each([headAt(SAMPLE.rows, 1).leaf, GENESIS_LEAF, ONE_BEHIND.leaf.toUpperCase()])(
    'when the head names the leaf %s',
    (leaf) => {
      for (const head of HEADS) expect(isDamaged(SAMPLE, { ...head, leaf })).toBe(true)
    },
  )

  test.each([LENGTH + 1, LENGTH + 100, 0, -1, 0.5, Number.NaN])('when the head is %d of seven', (seq) => {
    expect(isDamaged(SAMPLE, { ...NEWEST, seq })).toBe(true)
    expect(isDamaged(versioned([]), { ...NEWEST, seq })).toBe(true)
  })
})

describe('a chained entry is damage all the same', () => {
  const legacy = [legacyRow(1, '2025-12-30')]
  const notADay = [legacyRow(1, '2025-12-30', { asOfDay: '2025-02-29' })]
  const notADigest = [legacyRow(1, '2025-12-30', { sha256: 'x' })]

  test.each([
    ['of no real day', [publication('2026-01-01', { asOfDay: '2026-02-30' })], []],
    ['of a digest in upper case', [publication('2026-01-01', { sha256: 'A'.repeat(64) })], []],
    ['of a digest that is a path', [publication('2026-01-01', { sha256: '../../etc/passwd' })], []],
    ['that is a gap of no real day', [gap('2026-13-01')], []],
    ['that seals a legacy row of no real day', [legacySeal(notADay)], notADay],
    ['that seals a legacy row of no digest', [legacySeal(notADigest)], notADigest],
    ['that seals the legacy ledger a second time', [legacySeal([]), legacySeal([])], []],
    ['that leaves legacy rows without a seal', [gap('2026-01-01')], legacy],
    ['that is not there to seal legacy rows', [], legacy],
  ])('when it is one %s', (_, contents, legacyRows) => {
    const rows = chainOf(contents)
    const head = rows.length === 0 ? null : headAt(rows, rows.length)
    expect(isDamaged({ rows, legacy: legacyRows, founding: null }, head)).toBe(true)
  })

  test.each([LENGTH, LENGTH + 2, 1])('when its sequence number is %i, not the next', (seq) => {
    const rows = [...SAMPLE.rows, sealEntry(gap('2026-01-08'), seq, NEWEST.time, NEWEST.leaf)]
    expect(isDamaged({ ...SAMPLE, rows }, NEWEST)).toBe(true)
  })

  test('when it is recorded before the entry before it, and not at the same time', () => {
    const [first] = chainOf([publication('2026-01-02')])
    if (!first) throw new Error('no entry')
    const after = (at: number) => versioned([first, sealEntry(gap('2026-01-03'), 2, at, first.leaf)])
    expect(isDamaged(after(first.recordedAt - 1), headAt([first], 1))).toBe(true)
    expect(isDamaged(after(first.recordedAt), headAt([first], 1))).toBe(false)
  })

  test('when it is published before the publication before it, and not at the same time', () => {
    const after = (publishedAt: number) => {
      const first = sealEntry(publication('2026-01-02', { publishedAt: 5 }), 1, 9, GENESIS_LEAF)
      return versioned([first, sealEntry(publication('2026-01-01', { publishedAt }), 2, 9, first.leaf)])
    }
    expect(isDamaged(after(4), headAt(after(4).rows, 2))).toBe(true)
    expect(isDamaged(after(5), headAt(after(5).rows, 2))).toBe(false)
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

describe('a ledger that is being founded', () => {
  const legacy = [legacyRow(1, '2025-12-30')]
  const imported = [publication('2026-01-01'), publication('2026-01-02')]
  const whole = chainOf([...imported, legacySeal(legacy)])
  const { seq, leaf } = headAt(whole, 2)
  const founding = { seq, leaf, beganAt: 7 }
  const EMPTY: LedgerContents = { rows: [], legacy: [], founding }

  test.each([null, headAt(whole, 2)])('is sound, empty and unfinished before the commit: head %j', (head) => {
    const proved = proveLedger(EMPTY, head)
    expect(proved).toEqual({ entries: [], timeline: [], lastLeaf: GENESIS_LEAF, unfinished: founding })
  })

  test('is damaged before the commit under any other head', () => {
    const right = headAt(whole, 2)
    const others = [
      headAt(whole, 1),
      headAt(whole, 3),
      { ...right, leaf: GENESIS_LEAF },
      { ...right, seq: 3 },
    ]
    for (const head of others) expect(isDamaged(EMPTY, head)).toBe(true)
    expect(isDamaged({ ...EMPTY, founding: null }, right), 'without the mark').toBe(true)
    expect(isDamaged({ ...EMPTY, legacy }, right), 'legacy rows without a seal').toBe(true)
  })

  test('is sound and finished after the commit with the head before the seal and with the one after', () => {
    for (const head of [headAt(whole, 2), headAt(whole, 3)]) {
      const proved = proveLedger({ rows: whole, legacy, founding }, head)
      expect([proved.entries.length, proved.timeline.length, proved.unfinished]).toEqual([3, 3, null])
    }
  })

  test('is damaged after the commit without a head, and when it does not begin as the mark says', () => {
    expect(isDamaged({ rows: whole, legacy, founding }, null)).toBe(true)
    const marks = [{ leaf: GENESIS_LEAF }, { seq: 1 }, { ...headAt(whole, 3) }, headAt(whole, 1)]
    for (const wrong of marks)
      expect(isDamaged({ rows: whole, legacy, founding: { ...founding, ...wrong } }, headAt(whole, 3))).toBe(
        true,
      )
    expect(isDamaged({ ...versioned(chainOf([gap('2026-01-01')])), founding }, null)).toBe(true)
  })
})
