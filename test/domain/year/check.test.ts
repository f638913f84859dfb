import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Refusal } from '../../../src/domain/refusal.ts'
import { GENESIS_LEAF, latestAt, leafOf } from '../../../src/domain/year/chain.ts'
import { auditLedger, proveLedger, replaySelection } from '../../../src/domain/year/check.ts'
import type { AuditedHead } from '../../../src/domain/year/check.ts'
import type { Head, LedgerContents, LedgerRow } from '../../../src/domain/year/ledger.ts'
import { applyDamage, archiveDamage, contentsOf, soundArchive } from './any-ledger.ts'
import type { AnyArchive } from './any-ledger.ts'
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
import { brokenRules } from './naive-ledger.ts'

const SAMPLE = sampleLedger()
const NEWEST = headAt(SAMPLE.rows, SAMPLE.rows.length)

/** True when a server refuses to serve from these ledgers. */
function isDamaged(contents: LedgerContents, head: Head | null): boolean {
  try {
    proveLedger(contents, head)
    return false
  } catch (error) {
    if (error instanceof Refusal && error.code === 'storage_damaged') return true
    throw error
  }
}

describe('the check of the ledgers agrees with the rules written a second time', () => {
  function agree(archive: AnyArchive): boolean {
    const contents = contentsOf(archive)
    const heads = archive.heads.map(({ seq, leaf }) => ({
      path: `heads/${seq}`,
      seq,
      head: { seq, leaf, time: 0 },
    }))
    const newest = heads.toSorted((a, b) => b.seq - a.seq).slice(0, 1)
    const broken = brokenRules(contents, { heads: archive.heads, seen: 'all' })
    const brokenForServer = brokenRules(contents, { heads: newest.map(({ head }) => head), seen: 'newest' })
    const { findings } = auditLedger(contents, heads, null)
    const said = findings.map(({ code, path }) => `${code} ${path}`)
    expect({ broken, said, isSound: said.length === 0 }).toEqual({
      broken,
      said,
      isSound: broken.length === 0,
    })
    expect({ brokenForServer, isDamaged: isDamaged(contents, newest[0]?.head ?? null) }).toEqual({
      brokenForServer,
      isDamaged: brokenForServer.length > 0,
    })
    return broken.length === 0
  }

  test('on every sound archive', () => {
    fc.assert(
      fc.property(soundArchive, (archive) => {
        expect(agree(archive)).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  test('on every archive that was damaged once or twice, whatever was made to fit the damage', () => {
    let damaged = 0
    const damages = fc.array(archiveDamage, { minLength: 1, maxLength: 2 })
    fc.assert(
      fc.property(soundArchive, damages, (archive, changes) => {
        if (!agree(changes.reduce(applyDamage, archive))) damaged += 1
      }),
      { numRuns: 2_000 },
    )
    expect(damaged).toBeGreaterThan(500)
  })
})

type Cell = string | number | null

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

test('a server refuses a ledger in which any one cell of any entry or legacy row was changed, used or not', () => {
  const changes = tampered(SAMPLE.rows)
  expect(changes.length).toBeGreaterThan(SAMPLE.rows.length * 20 * 3)
  for (const head of [NEWEST, headAt(SAMPLE.rows, NEWEST.seq - 1)]) {
    for (const { change, rows } of changes) expect(isDamaged({ ...SAMPLE, rows }, head), change).toBe(true)
    for (const { change, rows: legacy } of tampered(SAMPLE.legacy))
      expect(isDamaged({ ...SAMPLE, legacy }, head), change).toBe(true)
  }
})

test.each([8, 107, 0, -1, 0.5, Number.NaN])('a server refuses the head %d of seven entries', (seq) => {
  expect(isDamaged(SAMPLE, { ...NEWEST, seq })).toBe(true)
  expect(isDamaged({ rows: [], legacy: [], founding: null }, { ...NEWEST, seq })).toBe(true)
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
    const rows = chainOf([gap('2026-01-01')])
    expect(isDamaged({ rows, legacy: [], founding }, null)).toBe(true)
  })
})

/** The heads that publishers leave: one for every entry from the first one after a founding on. */
function headsOf(rows: readonly LedgerRow[]): AuditedHead[] {
  const sealed = rows.find(({ kind }) => kind === 'legacy-seal')?.seq ?? 1
  return rows
    .filter(({ seq }) => seq >= sealed - 1)
    .map(({ seq }) => ({ path: `heads/${seq}`, seq, head: headAt(rows, seq) }))
}

const HEADS = headsOf(SAMPLE.rows)

/** What an audit finds, each as its code and path. */
function found(contents: Partial<LedgerContents>, heads = headsOf(contents.rows ?? [])): string[] {
  const whole = { rows: [], legacy: [], founding: null, ...contents }
  return auditLedger(whole, heads, null).findings.map(({ code, path }) => `${code} ${path}`)
}

/** The sample with one row of the versioned ledger changed. */
const withRow = (seq: number, change: (row: LedgerRow) => LedgerRow): LedgerContents => ({
  ...SAMPLE,
  rows: SAMPLE.rows.map((row) => (row.seq === seq ? change(row) : row)),
})

const resealed = (row: LedgerRow): LedgerRow => ({ ...row, leaf: leafOf(row) })

describe('the audit of the ledgers', () => {
  test('finds nothing in a sound archive, and says what it holds', () => {
    const audit = auditLedger(SAMPLE, HEADS, null)
    const { timeline } = proveLedger(SAMPLE, headAt(SAMPLE.rows, 7))
    const head = { seq: 7, leaf: SAMPLE.rows[6]?.leaf }
    expect(audit).toEqual({ findings: [], gaps: 2, head, timeline })
    expect(found({})).toEqual([])
  })

  test.each(Object.keys(SAMPLE.rows[2] ?? {}).filter((column) => column !== 'leaf'))(
    'names the row whose column %s was edited',
    (column) => {
      for (const { seq } of SAMPLE.rows) {
        const edited = withRow(seq, (row) => {
          const value: unknown = row[column as keyof LedgerRow]
          const other = typeof value === 'number' ? value + 1 : `${JSON.stringify(value)}x`
          return { ...row, [column]: other }
        })
        const place = column === 'seq' ? seq + 1 : seq
        expect(found(edited, HEADS), `${column} of ${seq}`).toContain(`row_tampered entries/${place}`)
      }
    },
  )

  const backdated = withRow(3, (row) => resealed({ ...row, publishedAt: Number(row.publishedAt) - 1 }))
  const forged = { rows: chainOf([publication('2026-01-02'), gap('2026-01-03')]) }
  const shuffled = SAMPLE.rows.toSorted((a, b) => ((a.seq * 5) % 7) - ((b.seq * 5) % 7))

  test.each<[string, Partial<LedgerContents>, AuditedHead[], string]>([
    ['was edited and sealed anew', backdated, headsOf(backdated.rows), 'chain_broken entries/4'],
    ['was sealed anew with all behind it', forged, HEADS, 'head_mismatch heads/1'],
    ['was deleted', { ...SAMPLE, rows: SAMPLE.rows.toSpliced(3, 1) }, HEADS, 'chain_broken entries/5'],
    [
      'was repeated',
      { ...SAMPLE, rows: SAMPLE.rows.flatMap((row) => (row.seq === 4 ? [row, row] : [row])) },
      HEADS,
      'chain_broken entries/4',
    ],
    ['was moved', { ...SAMPLE, rows: shuffled }, HEADS, 'chain_broken entries/3'],
  ])('notices an entry that %s', (_how, contents, heads, finding) => {
    expect(found(contents, heads)).toContain(finding)
  })

  test.each<[string, LedgerRow[], AuditedHead[], string[]]>([
    [
      'the tail of the ledger is lost',
      SAMPLE.rows.slice(0, 5),
      HEADS,
      ['head_mismatch heads/6', 'head_mismatch heads/7'],
    ],
    ['the last head is not written yet', SAMPLE.rows, HEADS.slice(0, -1), []],
    ['the two last heads are missing', SAMPLE.rows, HEADS.slice(0, -2), ['head_mismatch heads/6']],
    [
      'a head between others is missing',
      SAMPLE.rows,
      HEADS.filter(({ seq }) => seq !== 4),
      ['head_mismatch heads/4'],
    ],
    [
      'a head is no head file',
      SAMPLE.rows,
      HEADS.map((head) => (head.seq === 4 ? { ...head, head: null } : head)),
      ['head_mismatch heads/4'],
    ],
  ])('holds the ledger against its heads when %s', (_what, rows, heads, findings) => {
    expect(found({ ...SAMPLE, rows }, heads)).toEqual(findings)
  })

  test('notices that a legacy row was edited, deleted, added or moved, or has no seal', () => {
    const { legacy } = SAMPLE
    const edited = legacy.map((row, index) => (index === 0 ? { ...row, byteSize: 1 } : row))
    const added = [...legacy, legacyRow(4, '2026-01-02')]
    for (const changed of [edited, legacy.toSpliced(1, 1), [], added, legacy.toReversed()])
      expect(found({ ...SAMPLE, legacy: changed })).toContain('row_tampered legacy_publications')
    const unsealed = { rows: chainOf([gap('2026-01-01')]), legacy }
    expect(found(unsealed, [])).toEqual(['row_tampered legacy_publications'])
  })

  test('names a row that cannot be read, and goes on with the others', () => {
    const problem = 'kind holds bytes that are not UTF-8'
    const unreadable = [{ table: 'entries' as const, problem, at: 3, publicationId: 'x' }]
    const rows = SAMPLE.rows.toSpliced(2, 1)
    const audit = auditLedger({ ...SAMPLE, rows, unreadable }, HEADS, null)
    const finding = { code: 'row_tampered', publicationId: 'x', path: 'entries/3' }
    expect(audit.findings[0]).toEqual({ ...finding, expected: null, actual: problem })
    expect(audit.timeline).toHaveLength(6)
  })

  test('notices an own publication that is not later than every one before it', () => {
    const legacy = [legacyRow(1, '2025-12-31')]
    const { publishedAt } = manifest('2026-01-03')
    const after = (at: number, old = legacy): string[] => {
      const next = publication('2026-01-04', { publishedAt: at })
      return found({ rows: chainOf([legacySeal(old), publication('2026-01-03'), next]), legacy: old })
    }
    expect(after(publishedAt)).toEqual(['chain_broken entries/3'])
    expect(after(publishedAt + 1)).toEqual([])
    expect(after(publishedAt + 1, [legacyRow(1, '2026-05-01')])).toContain('chain_broken entries/2')
  })

  test('notices imported publications that stand before older ones, and takes equal times', () => {
    const imported = (...times: number[]): string[] => {
      const contents = times.map((publishedAt) => publication('2026-01-01', { publishedAt }))
      return found({ rows: chainOf([...contents, legacySeal([])]) })
    }
    expect(imported(1e12, 1e12, 2e12)).toEqual([])
    expect(imported(2e12, 1e12)).toContain('chain_broken entries/2')
  })

  test('replays the selection, and would notice one that selects anything else', () => {
    const { timeline } = proveLedger(SAMPLE, headAt(SAMPLE.rows, 7))
    expect(replaySelection(timeline, latestAt)).toEqual([])
    const late: typeof latestAt = (items, at) => latestAt(items, at + 1)
    const early: typeof latestAt = (items, at) => latestAt(items, at - 1)
    const first: typeof latestAt = (items) => items[0] ?? null
    for (const wrong of [late, early, first])
      expect(replaySelection(timeline, wrong)[0]?.code).toBe('chain_broken')
  })

  test('stays small, whatever number the last entry claims', () => {
    const last = withRow(7, (row) => ({ ...row, seq: 2 ** 53 - 1 }))
    expect(found(last, HEADS).length).toBeLessThan(5)
  })

  test('holds the ledger against a head kept from before', () => {
    const kept = { ...headAt(SAMPLE.rows, 5), path: 'kept.json' }
    const against = (changes: Partial<typeof kept>): unknown[] =>
      auditLedger(SAMPLE, HEADS, { ...kept, ...changes }).findings
    const mismatch = expect.objectContaining({ code: 'head_mismatch', path: 'kept.json' }) as unknown
    expect(against({})).toEqual([])
    expect(against({ leaf: 'f'.repeat(64) })).toEqual([mismatch])
    expect(against({ seq: 8 })).toEqual([mismatch])
  })

  test('takes an import that has begun for sound, and its mark without its entries for damage', () => {
    const rows = chainOf([publication('2026-01-02')])
    const founding = { seq: 1, leaf: rows[0]?.leaf ?? '', beganAt: 0 }
    expect(found({ founding }, headsOf(rows))).toEqual([])
    expect(found({}, headsOf(rows))).toEqual(['head_mismatch heads/1'])
    expect(found({ founding: { ...founding, leaf: 'x' } }, headsOf(rows))).toHaveLength(1)
    expect(found({ rows, founding })).toEqual(['chain_broken founding'])
  })
})
