import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { auditLedger, auditSelection } from '../../../src/domain/year/audit.ts'
import { isDamage, objectFindings, READ_ERROR } from '../../../src/domain/year/finding.ts'
import type { AuditedContents, AuditedHead } from '../../../src/domain/year/audit.ts'
import type { FindingCode } from '../../../src/domain/year/finding.ts'
import { latestAt, leafOf, proveLedger, sealLegacy } from '../../../src/domain/year/chain.ts'
import type { LedgerContents, LedgerRow } from '../../../src/domain/year/ledger.ts'
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

function audited({ rows, legacy, founding }: LedgerContents): AuditedContents {
  return { rows: rows.map((row) => ({ row })), legacy: legacy.map((row) => ({ row })), founding }
}

/** The heads that publishers leave: one for every entry from the first one after a founding on. */
function headsOf(rows: readonly LedgerRow[]): AuditedHead[] {
  const sealed = rows.find(({ kind }) => kind === 'legacy-seal')?.seq ?? 1
  return rows
    .filter(({ seq }) => seq >= sealed - 1)
    .map(({ seq }) => ({ path: `heads/${seq}`, seq, head: headAt(rows, seq) }))
}

function found(contents: LedgerContents, heads = headsOf(contents.rows)): [FindingCode, string | null][] {
  return auditLedger(audited(contents), heads, null).findings.map(({ code, path }) => [code, path])
}

/** The sample with one row of the versioned ledger changed. */
function withRow(seq: number, change: (row: LedgerRow) => LedgerRow): LedgerContents {
  const ledger = sampleLedger()
  return { ...ledger, rows: ledger.rows.map((row) => (row.seq === seq ? change(row) : row)) }
}

const resealed = (row: LedgerRow): LedgerRow => ({ ...row, leaf: leafOf(row) })

describe('the audit of the ledgers', () => {
  test('finds nothing in a sound archive, and says what it holds', () => {
    const ledger = sampleLedger()
    const audit = auditLedger(audited(ledger), headsOf(ledger.rows), null)
    expect(audit.findings).toEqual([])
    expect(audit.gaps).toBe(2)
    expect(audit.head).toEqual({ seq: 7, leaf: ledger.rows[6]?.leaf })
    expect(audit.timeline).toEqual(proveLedger(ledger, headAt(ledger.rows, 7)).timeline)
  })

  test('takes an empty archive for sound', () => {
    expect(found({ rows: [], legacy: [], founding: null }, [])).toEqual([])
  })

  test.each(Object.keys(sampleLedger().rows[2] ?? {}).filter((column) => column !== 'leaf'))(
    'names the row whose column %s was edited',
    (column) => {
      for (const { seq } of sampleLedger().rows) {
        const edited = withRow(seq, (row) => {
          const value: unknown = row[column as keyof LedgerRow]
          const other = typeof value === 'number' ? value + 1 : `${JSON.stringify(value)}x`
          return { ...row, [column]: other }
        })
        expect(found(edited, headsOf(sampleLedger().rows)), `${column} of ${seq}`).toContainEqual([
          'row_tampered',
          column === 'seq' ? `entries/${seq + 1}` : `entries/${seq}`,
        ])
      }
    },
  )

  test('names the break behind a row that was edited and sealed anew', () => {
    const edited = withRow(3, (row) => resealed({ ...row, publishedAt: Number(row.publishedAt) - 1 }))
    expect(found(edited)).toEqual([['chain_broken', 'entries/4']])
  })

  test('names the heads when everything behind an edit was sealed anew', () => {
    const original = sampleLedger()
    const forged = chainOf([publication('2026-01-02'), gap('2026-01-03')])
    const contents = { rows: forged, legacy: [], founding: null }
    expect(found(contents, headsOf(original.rows))).toContainEqual(['head_mismatch', 'heads/1'])
    expect(found(contents, headsOf(forged))).toEqual([])
  })

  test.each([
    ['deleted', (rows: LedgerRow[]) => rows.filter(({ seq }) => seq !== 4), 'entries/5'],
    [
      'repeated',
      (rows: LedgerRow[]) => rows.flatMap((row) => (row.seq === 4 ? [row, row] : [row])),
      'entries/4',
    ],
    [
      'put in another order',
      (rows: LedgerRow[]) => rows.toSorted((a, b) => ((a.seq * 5) % 7) - ((b.seq * 5) % 7)),
      'entries/3',
    ],
  ])('notices an entry that was %s', (_how, change, path) => {
    const ledger = sampleLedger()
    const findings = found({ ...ledger, rows: change(ledger.rows) }, headsOf(ledger.rows))
    expect(findings).toContainEqual(['chain_broken', path])
  })

  test('notices a lost tail by the heads', () => {
    const ledger = sampleLedger()
    const findings = found({ ...ledger, rows: ledger.rows.slice(0, 5) }, headsOf(ledger.rows))
    expect(findings).toEqual([
      ['head_mismatch', 'heads/6'],
      ['head_mismatch', 'heads/7'],
    ])
  })

  test('takes a ledger one entry ahead of its heads for sound, and no more', () => {
    const ledger = sampleLedger()
    const heads = headsOf(ledger.rows)
    expect(found(ledger, heads.slice(0, -1))).toEqual([])
    expect(found(ledger, heads.slice(0, -2))).toEqual([['head_mismatch', 'heads/6']])
    expect(found(ledger, [])).toHaveLength(6)
    const [only] = chainOf([gap('2026-01-01')])
    expect(found({ rows: only ? [only] : [], legacy: [], founding: null }, [])).toEqual([])
  })

  test('notices a head that is missing between others, and one that is no head', () => {
    const ledger = sampleLedger()
    const heads = headsOf(ledger.rows)
    expect(
      found(
        ledger,
        heads.filter(({ seq }) => seq !== 4),
      ),
    ).toEqual([['head_mismatch', 'heads/4']])
    const broken = heads.map((head) => (head.seq === 4 ? { ...head, head: null } : head))
    expect(found(ledger, broken)).toEqual([['head_mismatch', 'heads/4']])
  })

  test('notices that a legacy row was edited, deleted, added or moved', () => {
    const ledger = sampleLedger()
    const [first, second, third] = ledger.legacy
    if (!first || !second || !third) throw new Error('the sample has three legacy rows')
    const variants = [
      [{ ...first, byteSize: 1 }, second, third],
      [first, third],
      [],
      [...ledger.legacy, legacyRow(4, '2026-01-02')],
      [second, first, third],
    ]
    for (const legacy of variants) {
      expect(found({ ...ledger, legacy })).toContainEqual(['row_tampered', 'legacy_publications'])
    }
    const unsealed = { rows: chainOf([gap('2026-01-01')]), legacy: ledger.legacy, founding: null }
    expect(found(unsealed, [])).toEqual([['row_tampered', 'legacy_publications']])
  })

  test('names a row that cannot be read, and goes on with the others', () => {
    const ledger = sampleLedger()
    const contents = audited(ledger)
    contents.rows[2] = { problem: 'kind holds bytes that are not UTF-8', at: 3, publicationId: 'x' }
    const audit = auditLedger(contents, headsOf(ledger.rows), null)
    expect(audit.findings[0]).toEqual({
      code: 'row_tampered',
      publicationId: 'x',
      path: 'entries/3',
      expected: null,
      actual: 'kind holds bytes that are not UTF-8',
    })
    expect(audit.timeline).toHaveLength(6)
  })

  test('notices an own publication that is not later than the legacy ones', () => {
    const legacy = [legacyRow(1, '2026-05-01')]
    const seal = sampleLedger().rows[1]
    const rows = chainOf([{ kind: 'legacy-seal', rows: 0, digest: '' }, publication('2026-01-03')])
    expect(seal?.kind).toBe('legacy-seal')
    const findings = found({ rows, legacy, founding: null })
    expect(findings).toContainEqual(['chain_broken', 'entries/2'])
  })

  test('notices imported publications that stand before older ones, and takes equal times', () => {
    const imported = (times: readonly number[]): LedgerContents => {
      const contents = times.map((publishedAt, index) =>
        publication(`2026-01-0${index + 1}`, {
          algorithmVersion: 'top-year-v2',
          schemaVersion: 2,
          publicationId: `v2 number ${index + 1}`,
          publishedAt,
        }),
      )
      const rows = chainOf([...contents, { kind: 'legacy-seal', ...sealLegacy([]) }])
      return { rows, legacy: [], founding: null }
    }
    const codes = (times: readonly number[]): string[] =>
      found(imported(times)).map(([code, path]) => `${code} ${path}`)
    expect(codes([1e12, 1e12, 2e12])).toEqual([])
    expect(codes([2e12, 1e12])).toContain('chain_broken entries/2')
  })

  test('reports whatever the proof of a server refuses', () => {
    const { rows, legacy } = sampleLedger()
    const column = fc.constantFrom(...(Object.keys(rows[0] ?? {}) as (keyof LedgerRow)[]))
    const isNumber = (name: keyof LedgerRow): boolean => rows.some((row) => typeof row[name] === 'number')
    const change = fc.record({
      seq: fc.integer({ min: 1, max: rows.length }),
      column,
      number: fc.option(fc.integer()),
      text: fc.option(fc.string()),
      sealed: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), fc.nat({ max: 2 }), (changes, cut) => {
        let changed: LedgerRow[] = rows.slice(0, rows.length - cut)
        for (const { seq, column: name, number, text, sealed } of changes) {
          changed = changed.map((row) => {
            if (row.seq !== seq) return row
            const edited = { ...row, [name]: isNumber(name) ? number : text }
            return sealed ? resealed(edited) : edited
          })
        }
        const contents = { rows: changed, legacy, founding: null }
        const heads = headsOf(rows)
        try {
          proveLedger(contents, heads.at(-1)?.head ?? null)
        } catch {
          expect(found(contents, heads)).not.toEqual([])
        }
      }),
      { numRuns: 300 },
    )
  })

  test('replays the selection, and would notice one that selects anything else', () => {
    const ledger = sampleLedger()
    const { timeline } = proveLedger(ledger, headAt(ledger.rows, 7))
    expect(auditSelection(timeline, latestAt)).toEqual([])
    const late: typeof latestAt = (items, at) => latestAt(items, at + 1)
    const early: typeof latestAt = (items, at) => latestAt(items, at - 1)
    const first: typeof latestAt = (items) => items[0] ?? null
    for (const wrong of [late, early, first]) {
      expect(auditSelection(timeline, wrong)[0]?.code).toBe('chain_broken')
    }
  })

  test('stays small, whatever number the last entry claims', () => {
    const last = withRow(7, (row) => ({ ...row, seq: 2 ** 53 - 1 }))
    expect(found(last, headsOf(sampleLedger().rows)).length).toBeLessThan(5)
  })

  test('notices an own publication of the same millisecond as the one before it', () => {
    const legacy = [legacyRow(1, '2025-12-31')]
    const { publishedAt } = manifest('2026-01-03')
    const contents = [
      legacySeal(legacy),
      publication('2026-01-03'),
      publication('2026-01-04', { publishedAt }),
    ]
    expect(found({ rows: chainOf(contents), legacy, founding: null })).toEqual([
      ['chain_broken', 'entries/3'],
    ])
    const later = [...contents.slice(0, 2), publication('2026-01-04', { publishedAt: publishedAt + 1 })]
    expect(found({ rows: chainOf(later), legacy, founding: null })).toEqual([])
  })

  test('holds the ledger against a head kept from before', () => {
    const ledger = sampleLedger()
    const heads = headsOf(ledger.rows)
    const kept = { ...headAt(ledger.rows, 5), path: 'kept.json' }
    const against = (expected: typeof kept) =>
      auditLedger(audited(ledger), heads, expected).findings.map(({ code, path }) => [code, path])
    expect(against(kept)).toEqual([])
    expect(against({ ...kept, leaf: 'f'.repeat(64) })).toEqual([['head_mismatch', 'kept.json']])
    expect(against({ ...kept, seq: 8 })).toEqual([['head_mismatch', 'kept.json']])
  })

  test('takes an import that has begun for sound, and its mark without its entries for damage', () => {
    const rows = chainOf([publication('2026-01-02')])
    const founding = { seq: 1, leaf: rows[0]?.leaf ?? '', beganAt: 0 }
    const heads = headsOf(rows)
    expect(found({ rows: [], legacy: [], founding }, heads)).toEqual([])
    expect(found({ rows: [], legacy: [], founding: null }, heads)).toEqual([['head_mismatch', 'heads/1']])
    expect(found({ rows: [], legacy: [], founding: { ...founding, leaf: 'x' } }, heads)).toHaveLength(1)
    expect(found({ rows, legacy: [], founding }, heads)).toEqual([['chain_broken', 'founding']])
  })
})

describe('what became of an object', () => {
  const one = manifest('2026-01-03')

  test.each([
    [{ found: 'nothing' }, 'object_missing', true],
    [{ found: 'something else', why: 'a symbolic link' }, 'object_unreadable', true],
    [{ found: 'something else', why: `${READ_ERROR}EIO` }, 'object_unreadable', false],
  ] as const)('%j is %s', (outcome, code, damage) => {
    const [finding] = objectFindings(one, outcome)
    expect(finding).toMatchObject({
      code,
      publicationId: one.publicationId,
      path: `sha256/${one.sha256.slice(0, 2)}/${one.sha256}`,
    })
    expect(finding && isDamage(finding)).toBe(damage)
  })

  test('is nothing to report when its bytes are what was sealed', () => {
    expect(objectFindings(one, { found: 'bytes', byteSize: 1, problems: [] })).toEqual([])
  })
})
