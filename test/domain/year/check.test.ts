import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GENESIS_LEAF, leafOf } from '../../../src/domain/year/chain.ts'
import { auditLedger, proveLedger } from '../../../src/domain/year/check.ts'
import type { AuditedHead } from '../../../src/domain/year/check.ts'
import type { LedgerContents, LedgerRow } from '../../../src/domain/year/ledger.ts'
import { anyArchive, rechained } from './any-ledger.ts'
import type { AnyArchive } from './any-ledger.ts'
import {
  chainOf,
  gap,
  headAt,
  isDamaged,
  legacyRow,
  legacySeal,
  publication,
  sampleLedger,
} from './ledger-rows.ts'
import { brokenRules } from './naive-ledger.ts'

const SAMPLE = sampleLedger()

/** Returns true for a sound archive; the audit, the server and the second implementation must agree. */
function isSound(archive: AnyArchive): boolean {
  const heads = archive.heads.map(({ seq, leaf }) => ({
    path: `heads/${seq}`,
    seq,
    head: { seq, leaf, time: 0 },
  }))
  const newest = heads.toSorted((a, b) => b.seq - a.seq).slice(0, 1)
  const broken = brokenRules(archive, { heads: archive.heads, seen: 'all' })
  const brokenForServer = brokenRules(archive, { heads: newest.map(({ head }) => head), seen: 'newest' })
  const findings = auditLedger(archive, heads, null).findings.map(({ code, path }) => `${code} ${path}`)
  expect({ broken, findings, isSound: findings.length === 0 }).toMatchObject({ isSound: broken.length === 0 })
  const refused = isDamaged(() => proveLedger(archive, newest[0]?.head ?? null))
  expect({ brokenForServer, refused }).toMatchObject({ refused: brokenForServer.length > 0 })
  return broken.length === 0
}

test('the check agrees with the second implementation on every archive, sound or damaged once or twice', () => {
  const counts = { sound: 0, damaged: 0 }
  fc.assert(
    fc.property(anyArchive, (archive) => {
      counts[isSound(archive) ? 'sound' : 'damaged'] += 1
    }),
    { numRuns: 1_000 },
  )
  expect(Math.min(counts.sound, counts.damaged)).toBeGreaterThan(150)
})

test('the check refuses an entry without a column of its kind, also when it is sealed with all behind it', () => {
  for (const row of SAMPLE.rows)
    for (const [column, value] of Object.entries(row)) {
      if (value === null || ['seq', 'kind', 'recordedAt', 'previousLeaf', 'leaf'].includes(column)) continue
      const rows = rechained(SAMPLE.rows.with(row.seq - 1, { ...row, [column]: null }))
      const heads = rows.map(({ seq, leaf }) => ({ seq, leaf }))
      expect(isSound({ ...SAMPLE, rows, heads }), `${column} of ${row.seq}`).toBe(false)
    }
})

// Times of the imported publications, and of those made here; the legacy one is of 5.
test.each([
  [[5, 5], [6, 7], true],
  [[6, 5], [], false],
  [[], [5], false],
  [[7], [7], false],
  [[], [6, 6], false],
])('a ledger with publications of %j and %j is sound: %s', (imported, own, sound) => {
  const at = (publishedAt: number) => publication('2026-01-03', { publishedAt })
  const legacy = [legacyRow(1, '2025-12-30', { publishedAt: 5 })]
  const rows = chainOf([...imported.map(at), legacySeal(legacy), ...own.map(at)])
  const heads = rows.map(({ seq, leaf }) => ({ seq, leaf }))
  expect(isSound({ rows, legacy, founding: null, heads })).toBe(sound)
})

test('a ledger whose founding was started and not committed is empty, and reports it', () => {
  const founding = { seq: 2, leaf: 'ab'.repeat(32), beganAt: 7 }
  const proved = proveLedger({ rows: [], legacy: [], founding }, null)
  expect(proved).toEqual({ entries: [], timeline: [], lastLeaf: GENESIS_LEAF, unfinished: founding })
})

/** The heads that publishers leave: one for every entry from the first one after a founding on. */
function headsOf(rows: readonly LedgerRow[]): AuditedHead[] {
  const sealed = rows.find(({ kind }) => kind === 'legacy-seal')?.seq ?? 1
  return rows
    .filter(({ seq }) => seq >= sealed - 1)
    .map(({ seq }) => ({ path: `heads/${seq}`, seq, head: headAt(rows, seq) }))
}

const HEADS = headsOf(SAMPLE.rows)

/** Returns the findings of an audit, each as its code and path. */
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
  test('a sound archive has no finding, and its counts are reported', () => {
    const audit = auditLedger(SAMPLE, HEADS, null)
    const { timeline } = proveLedger(SAMPLE, headAt(SAMPLE.rows, 7))
    const head = { seq: 7, leaf: SAMPLE.rows[6]?.leaf }
    expect(audit).toEqual({ findings: [], gaps: 2, head, timeline })
    expect(found({})).toEqual([])
  })

  test.each(Object.keys(SAMPLE.rows[2] ?? {}).filter((column) => column !== 'leaf'))(
    'the audit names the row whose column %s was edited',
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

  const { rows } = SAMPLE
  const backdated = withRow(3, (row) => resealed({ ...row, publishedAt: Number(row.publishedAt) - 1 })).rows
  const forged = chainOf([publication('2026-01-02'), gap('2026-01-03')])
  const repeated = rows.flatMap((row) => (row.seq === 4 ? [row, row] : [row]))
  const shuffled = rows.toSorted((a, b) => ((a.seq * 5) % 7) - ((b.seq * 5) % 7))

  test.each<[string, LedgerRow[], AuditedHead[], string]>([
    ['was edited and sealed anew', backdated, headsOf(backdated), 'chain_broken entries/4'],
    ['was sealed anew with all behind it', forged, HEADS, 'head_mismatch heads/1'],
    ['was deleted', rows.toSpliced(3, 1), HEADS, 'chain_broken entries/5'],
    ['was repeated', repeated, HEADS, 'chain_broken entries/4'],
    ['was moved', shuffled, HEADS, 'chain_broken entries/3'],
  ])('the audit detects an entry that %s', (_how, damaged, heads, finding) => {
    expect(found({ ...SAMPLE, rows: damaged }, heads)).toContain(finding)
  })

  const unreadable = HEADS.map((head) => (head.seq === 4 ? { ...head, head: null } : head))

  test.each<[string, LedgerRow[], AuditedHead[], number[]]>([
    ['the tail of the ledger is lost', rows.slice(0, 5), HEADS, [6, 7]],
    ['the last head is not written yet', rows, HEADS.slice(0, -1), []],
    ['the two last heads are missing', rows, HEADS.slice(0, -2), [6]],
    ['a head between others is missing', rows, unreadable.filter(({ head }) => head), [4]],
    ['a head is no head file', rows, unreadable, [4]],
  ])('the audit compares the ledger with its heads when %s', (_what, stored, heads, wrong) => {
    expect(found({ ...SAMPLE, rows: stored }, heads)).toEqual(
      wrong.map((seq) => `head_mismatch heads/${seq}`),
    )
  })

  test('the audit names an unreadable row, and checks the others', () => {
    const problem = 'kind contains bytes that are not UTF-8'
    const row = { table: 'entries' as const, problem, at: 3, publicationId: 'x' }
    const audit = auditLedger({ ...SAMPLE, rows: rows.toSpliced(2, 1), unreadable: [row] }, HEADS, null)
    const finding = { code: 'row_tampered', publicationId: 'x', path: 'entries/3' }
    expect(audit.findings[0]).toEqual({ ...finding, expected: null, actual: problem })
    expect(audit.timeline).toHaveLength(6)
  })

  test('the audit stays small, whatever number the last entry claims', () => {
    const last = withRow(7, (row) => ({ ...row, seq: 2 ** 53 - 1 }))
    expect(found(last, HEADS).length).toBeLessThan(5)
  })

  test('the audit compares the ledger with a head that was kept elsewhere', () => {
    const kept = { ...headAt(SAMPLE.rows, 5), path: 'kept.json' }
    const against = (changes: Partial<typeof kept>): unknown[] =>
      auditLedger(SAMPLE, HEADS, { ...kept, ...changes }).findings
    const mismatch = expect.objectContaining({ code: 'head_mismatch', path: 'kept.json' }) as unknown
    expect(against({})).toEqual([])
    expect(against({ leaf: 'f'.repeat(64) })).toEqual([mismatch])
    expect(against({ seq: 8 })).toEqual([mismatch])
  })
})
