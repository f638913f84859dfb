import { describe, expect, test } from 'vitest'
import { GENESIS_LEAF, leafOf, sealLegacy } from '../../../src/domain/year/chain.ts'
import { auditLedger, proveLedger } from '../../../src/domain/year/check.ts'
import type { AuditedHead } from '../../../src/domain/year/check.ts'
import type { LedgerContents, LedgerRow, LegacyRow } from '../../../src/domain/year/ledger.ts'
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

const SAMPLE = sampleLedger()

/** Both ledgers and the heads beside the objects, as somebody or something may have left them. */
interface Archive extends LedgerContents {
  heads: { seq: number; leaf: string }[]
}

const pinsOf = (rows: readonly LedgerRow[]): Archive['heads'] => rows.map(({ seq, leaf }) => ({ seq, leaf }))

const withHeads = (contents: LedgerContents): Archive => ({ ...contents, heads: pinsOf(contents.rows) })

/** Whether an audit and a server accept an archive, of which the server sees the newest head alone. */
function verdictsOn(archive: Archive): [audit: boolean, server: boolean] {
  const heads = archive.heads.map((pin) => ({
    path: `heads/${pin.seq}`,
    seq: pin.seq,
    head: { ...pin, time: 0 },
  }))
  const { findings } = auditLedger(archive, heads, null)
  const newest = heads.toSorted((a, b) => b.seq - a.seq)[0]?.head ?? null
  return [findings.length === 0, !isDamaged(() => proveLedger(archive, newest))]
}

const resealed = (row: LedgerRow): LedgerRow => ({ ...row, leaf: leafOf(row) })

/** The rows with leaves that chain again. */
function rechained(rows: readonly LedgerRow[]): LedgerRow[] {
  const chain: LedgerRow[] = []
  for (const row of rows) {
    const next = { ...row, previousLeaf: chain.at(-1)?.leaf ?? GENESIS_LEAF }
    chain.push({ ...next, leaf: leafOf(next) })
  }
  return chain
}

/** The archive with a chain, a seal and heads that agree again, as whoever can write all of it leaves it. */
function resealedWhole(contents: LedgerContents): Archive {
  const { rows: legacyRows, digest: legacyDigest } = sealLegacy(contents.legacy)
  const rows = contents.rows.map((row) =>
    row.kind === 'legacy-seal' ? { ...row, legacyRows, legacyDigest } : row,
  )
  return withHeads({ ...contents, rows: rechained(rows) })
}

const [IMPORTED] = SAMPLE.rows
const MARK = { seq: 1, leaf: IMPORTED?.leaf ?? '', beganAt: IMPORTED?.recordedAt ?? 0 }
const BEGUN = { rows: [], legacy: [], founding: MARK }

const ownAt = (...times: number[]): LedgerContents => ({
  rows: chainOf(times.map((publishedAt) => publication('2026-01-03', { publishedAt }))),
  legacy: [],
  founding: null,
})

const OWN = withHeads(ownAt(6, 7, 8))
const IMPORT = withHeads({
  rows: chainOf([...['2026-01-01', '2026-01-02'].map((day) => publication(day)), legacySeal([])]),
  legacy: [],
  founding: null,
})

/** The archive with these of its heads alone. */
const only = (archive: Archive, ...seqs: number[]): Archive => ({
  ...archive,
  heads: archive.heads.filter(({ seq }) => seqs.includes(seq)),
})

/** A list with each single damage: a row edited in a column, deleted, repeated or moved, or the end cut off. */
function damagedLists<Row extends object>(rows: readonly Row[]): Row[][] {
  return rows.flatMap((row, at) => [
    ...Object.entries(row).flatMap(([column, cell]) =>
      [null, 'x', 3]
        .filter((value) => value !== cell)
        .map((value) => rows.with(at, { ...row, [column]: value })),
    ),
    ...rows.slice(0, at).map((moved, other) => rows.with(at, moved).with(other, row)),
    rows.toSpliced(at, 1),
    rows.toSpliced(at, 0, row),
    rows.slice(0, at),
  ])
}

describe('the check of an archive', () => {
  test.each<[string, Archive, audit: boolean, server: boolean]>([
    ['with every kind of entry', withHeads(SAMPLE), true, true],
    ['with the mark of its founding', withHeads({ ...SAMPLE, founding: MARK }), true, true],
    ['without its last head', only(OWN, 1, 2), true, true],
    ['without its two last heads', only(OWN, 1), false, false],
    ['of two entries without a head', only(withHeads(ownAt(6, 7))), false, false],
    ['without its first head', only(OWN, 2, 3), false, true],
    ['imported, with the heads of its last entry and its seal', only(IMPORT, 2, 3), true, true],
    ['imported, without the head of its last entry', only(IMPORT, 3), false, true],
    ['in an import that began', { ...BEGUN, heads: [] }, true, true],
    ['in an import whose first head is written', { ...BEGUN, heads: [MARK] }, true, true],
    ['with a head of another founding', { ...BEGUN, heads: [{ ...MARK, seq: 2 }] }, false, false],
    ['with another head of its founding', { ...BEGUN, heads: [{ ...MARK, leaf: 'x' }] }, false, false],
    ['with two own publications at one time', withHeads(ownAt(6, 6)), false, false],
  ])('an archive %s is sound to an audit: %j, and to a server: %j', (_what, archive, audit, server) => {
    expect(verdictsOn(archive)).toEqual([audit, server])
  })

  test('every single damage to the entries is found, also with leaves or a whole chain sealed anew', () => {
    const archives = damagedLists(SAMPLE.rows).flatMap((damaged) => {
      const numbered = damaged.map((row, index) => ({ ...row, seq: index + 1 }))
      return [damaged, numbered, damaged.map(resealed), rechained(numbered)]
    })
    const accepted = archives.filter((rows) => verdictsOn({ ...withHeads(SAMPLE), rows }).includes(true))
    for (const rows of accepted) expect(rows).toEqual(SAMPLE.rows)
  })

  test('every single damage to the legacy rows is found', () => {
    for (const damaged of damagedLists(SAMPLE.legacy))
      expect(verdictsOn({ ...withHeads(SAMPLE), legacy: damaged })).toEqual([false, false])
  })

  const { rows, legacy } = SAMPLE
  const edited = (seq: number, changes: Partial<LedgerRow>): LedgerContents => ({
    ...SAMPLE,
    rows: rows.map((row) => (row.seq === seq ? { ...row, ...changes } : row)),
  })
  const editedLegacy = (changes: Partial<LegacyRow>): LedgerContents => ({
    ...SAMPLE,
    legacy: legacy.map((row) => (row.position === 2 ? { ...row, ...changes } : row)),
  })
  const unsealed = rows.filter(({ kind }) => kind !== 'legacy-seal')
  const seal = rows[1] as LedgerRow

  test.each<[string, LedgerContents]>([
    ['an entry of another kind', edited(3, { kind: 'note' })],
    ['a publication of no day', edited(3, { asOfDay: '2026-02-30' })],
    ['a publication whose digest is in upper case', edited(3, { sha256: 'AB'.repeat(32) })],
    ['a gap of no day', edited(4, { asOfDay: '2026-1-4' })],
    ['a gap with another reason', edited(4, { reason: 'a holiday' })],
    ['an entry recorded before the last', edited(4, { recordedAt: (rows[2]?.recordedAt ?? 0) - 1 })],
    ['entries that begin with 2', { ...SAMPLE, rows: rows.map((row) => ({ ...row, seq: row.seq + 1 })) }],
    ['a second seal', { ...SAMPLE, rows: [...rows, { ...seal, seq: 8, recordedAt: 9e15 }] }],
    ['legacy rows without a seal', { ...SAMPLE, rows: unsealed.map((row, at) => ({ ...row, seq: at + 1 })) }],
    ['a legacy row out of its place', editedLegacy({ position: 4 })],
    ['a legacy row of no day', editedLegacy({ asOfDay: 'x' })],
    ['a legacy row without a digest', editedLegacy({ sha256: '' })],
  ])('%s is found in an archive that is sealed anew as a whole', (_what, contents) => {
    expect(verdictsOn(resealedWhole(SAMPLE))).toEqual([true, true])
    expect(verdictsOn(resealedWhole(contents))).toEqual([false, false])
  })

  test.each([
    ['another entry', { seq: 3 }],
    ['another leaf', { leaf: 'x' }],
    ['an entry that no seal follows', { seq: 3, leaf: rows[2]?.leaf ?? '' }],
  ])('a founding that names %s is found', (_what, changes) => {
    expect(verdictsOn(withHeads({ ...SAMPLE, founding: { ...MARK, ...changes } }))).toEqual([false, false])
  })

  test('an entry without a column of its kind is found, also when it is sealed with all behind it', () => {
    for (const row of rows)
      for (const [column, value] of Object.entries(row)) {
        if (value === null || ['seq', 'kind', 'recordedAt', 'previousLeaf', 'leaf'].includes(column)) continue
        const without = rechained(rows.with(row.seq - 1, { ...row, [column]: null }))
        const verdicts = verdictsOn(withHeads({ ...SAMPLE, rows: without }))
        expect(verdicts, `${column} of ${row.seq}`).toEqual([false, false])
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
    const one = [legacyRow(1, '2025-12-30', { publishedAt: 5 })]
    const chain = chainOf([...imported.map(at), legacySeal(one), ...own.map(at)])
    expect(verdictsOn(withHeads({ rows: chain, legacy: one, founding: null }))).toEqual([sound, sound])
  })
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

describe('the audit of the ledgers', () => {
  test('a sound archive has no finding, and its counts are reported', () => {
    const audit = auditLedger(SAMPLE, HEADS, null)
    const { timeline } = proveLedger(SAMPLE, headAt(SAMPLE.rows, 7))
    const head = { seq: 7, leaf: SAMPLE.rows[6]?.leaf }
    expect(audit).toEqual({ findings: [], gaps: 2, head, timeline })
    expect(found({})).toEqual([])
  })

  const { rows } = SAMPLE
  const backdated = withRow(3, (row) => resealed({ ...row, publishedAt: Number(row.publishedAt) - 1 })).rows
  const forged = chainOf([publication('2026-01-02'), gap('2026-01-03')])
  const repeated = rows.flatMap((row) => (row.seq === 4 ? [row, row] : [row]))
  const shuffled = rows.toSorted((a, b) => ((a.seq * 5) % 7) - ((b.seq * 5) % 7))

  test.each<[string, LedgerRow[], AuditedHead[], string]>([
    ['was edited', withRow(3, (row) => ({ ...row, byteSize: 1 })).rows, HEADS, 'row_tampered entries/3'],
    ['was edited and sealed anew', backdated, headsOf(backdated), 'chain_broken entries/4'],
    ['was sealed anew with all behind it', forged, HEADS, 'head_mismatch heads/1'],
    ['was repeated', repeated, HEADS, 'chain_broken entries/4'],
    ['was moved', shuffled, HEADS, 'chain_broken entries/3'],
  ])('the audit detects an entry that %s', (_how, damaged, heads, finding) => {
    expect(found({ ...SAMPLE, rows: damaged }, heads)).toContain(finding)
  })

  test('the audit of a ledger without an entry compares the others with their heads', () => {
    expect(found({ ...SAMPLE, rows: rows.toSpliced(3, 1) }, HEADS)).toEqual([
      'chain_broken entries/5',
      'head_mismatch heads/4',
    ])
  })

  const unreadable = HEADS.map((head) => (head.seq === 4 ? { ...head, head: null } : head))

  test.each<[string, LedgerRow[], AuditedHead[], number[]]>([
    ['the tail of the ledger is lost', rows.slice(0, 5), HEADS, [6, 7]],
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
