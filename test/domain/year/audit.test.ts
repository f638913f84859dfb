import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { addDays } from '../../../src/domain/time.ts'
import { auditLedger, auditSelection, chooseManifests, parseSample } from '../../../src/domain/year/audit.ts'
import type { AuditedContents, AuditedHead } from '../../../src/domain/year/audit.ts'
import { latestAt, leafOf, proveLedger } from '../../../src/domain/year/chain.ts'
import { isDamage, objectFindings, READ_ERROR } from '../../../src/domain/year/finding.ts'
import type { LedgerContents, LedgerRow, Manifest } from '../../../src/domain/year/ledger.ts'
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

const HEADS = headsOf(SAMPLE.rows)

/** What an audit finds, each as its code and path. */
function found(contents: Partial<LedgerContents>, heads = headsOf(contents.rows ?? [])): string[] {
  const whole = { rows: [], legacy: [], founding: null, ...contents }
  return auditLedger(audited(whole), heads, null).findings.map(({ code, path }) => `${code} ${path}`)
}

/** The sample with one row of the versioned ledger changed. */
const withRow = (seq: number, change: (row: LedgerRow) => LedgerRow): LedgerContents => ({
  ...SAMPLE,
  rows: SAMPLE.rows.map((row) => (row.seq === seq ? change(row) : row)),
})

const resealed = (row: LedgerRow): LedgerRow => ({ ...row, leaf: leafOf(row) })

describe('the audit of the ledgers', () => {
  test('finds nothing in a sound archive, and says what it holds', () => {
    const audit = auditLedger(audited(SAMPLE), HEADS, null)
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
    const contents = audited(SAMPLE)
    const problem = 'kind holds bytes that are not UTF-8'
    contents.rows[2] = { problem, at: 3, publicationId: 'x' }
    const audit = auditLedger(contents, HEADS, null)
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

  test('reports whatever the proof of a server refuses', () => {
    const { rows, legacy } = SAMPLE
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
        try {
          proveLedger(contents, HEADS.at(-1)?.head ?? null)
        } catch {
          expect(found(contents, HEADS)).not.toEqual([])
        }
      }),
      { numRuns: 300 },
    )
  })

  test('replays the selection, and would notice one that selects anything else', () => {
    const { timeline } = proveLedger(SAMPLE, headAt(SAMPLE.rows, 7))
    expect(auditSelection(timeline, latestAt)).toEqual([])
    const late: typeof latestAt = (items, at) => latestAt(items, at + 1)
    const early: typeof latestAt = (items, at) => latestAt(items, at - 1)
    const first: typeof latestAt = (items) => items[0] ?? null
    for (const wrong of [late, early, first])
      expect(auditSelection(timeline, wrong)[0]?.code).toBe('chain_broken')
  })

  test('stays small, whatever number the last entry claims', () => {
    const last = withRow(7, (row) => ({ ...row, seq: 2 ** 53 - 1 }))
    expect(found(last, HEADS).length).toBeLessThan(5)
  })

  test('holds the ledger against a head kept from before', () => {
    const kept = { ...headAt(SAMPLE.rows, 5), path: 'kept.json' }
    const against = (changes: Partial<typeof kept>): unknown[] =>
      auditLedger(audited(SAMPLE), HEADS, { ...kept, ...changes }).findings
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

describe('what became of an object', () => {
  const one = manifest('2026-01-03')

  test.each([
    [{ found: 'nothing' }, 'object_missing', true],
    [{ found: 'something else', why: 'a symbolic link' }, 'object_unreadable', true],
    [{ found: 'something else', why: `${READ_ERROR}EIO` }, 'object_unreadable', false],
  ] as const)('%j is %s', (outcome, code, damage) => {
    const [finding] = objectFindings(one, outcome)
    const path = `sha256/${one.sha256.slice(0, 2)}/${one.sha256}`
    expect(finding).toMatchObject({ code, publicationId: one.publicationId, path })
    expect(finding && isDamage(finding)).toBe(damage)
  })

  test('is nothing to report when its bytes are what was sealed', () => {
    expect(objectFindings(one, { found: 'bytes', byteSize: 1, problems: [] })).toEqual([])
  })
})

describe('a sample', () => {
  test.each([
    ['5%', { by: 'share', percent: 5 }],
    ['0.5%', { by: 'share', percent: 0.5 }],
    ['100%', { by: 'share', percent: 100 }],
    ['2/7', { by: 'bucket', bucket: 2, buckets: 7 }],
    ['1/1', { by: 'bucket', bucket: 1, buckets: 1 }],
    ['700', { by: 'size', bytes: 700 }],
    ['500M', { by: 'size', bytes: 500 * 1024 * 1024 }],
    ['2gib', { by: 'size', bytes: 2 * 1024 ** 3 }],
  ])('is understood as %s', (text, sample) => {
    expect(parseSample(text)).toEqual(sample)
  })

  const none = ' 0% 101% -5% 5_% 0/7 8/7 1/0 1/ 0 0M 5X 1e3 all'.split(' ')

  test.each(none.map((text) => text.replace('_', ' ')))('is not %j', (text) => {
    expect(parseSample(text)).toBeNull()
  })

  const all = Array.from({ length: 100 }, (_, index) =>
    manifest(addDays('2026-01-01', index), { sha256: sha256Hex(String(index)), byteSize: 1000 }),
  )
  const choose = (sample: string | null, since: string | null = null, random = () => 0.42): Manifest[] =>
    chooseManifests(all, { since, sample: sample === null ? null : parseSample(sample) }, random)

  test('is every publication where none is asked for, or those from a day on', () => {
    expect(choose(null)).toEqual(all)
    expect(choose('100%', '2026-04-01')).toEqual(all.slice(90))
  })

  test('of all buckets is each publication exactly once', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), (buckets) => {
        const chosen = Array.from({ length: buckets }, (_, index) => choose(`${index + 1}/${buckets}`)).flat()
        expect(new Set(chosen).size).toBe(all.length)
        expect(chosen).toHaveLength(all.length)
      }),
    )
  })

  test('of a share is that many, at least one, in their order, and another at each draw', () => {
    const some = choose('7%')
    expect(some).toHaveLength(7)
    expect(some).toEqual(all.filter((each) => some.includes(each)))
    expect(choose('0.001%')).toHaveLength(1)
    const draws = Array.from({ length: 8 }, () => choose('10%', null, Math.random))
    expect(new Set(draws.map((draw) => JSON.stringify(draw))).size).toBeGreaterThan(1)
  })

  test('of a size holds no more than that, but at least one', () => {
    expect([choose('5500').length, choose('1').length]).toEqual([5, 1])
  })
})
