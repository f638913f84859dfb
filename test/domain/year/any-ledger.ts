import fc from 'fast-check'
import { ENTRY_COLUMNS, LEGACY_COLUMNS } from '../../../src/domain/year/ledger.ts'
import type { Columns, FoundingMark, LedgerRow, LegacyRow } from '../../../src/domain/year/ledger.ts'
import { chainOf, gap, legacySeal, publication, sampleLedger } from './ledger-rows.ts'
import { naiveLeaf, naiveSeal } from './naive-ledger.ts'

/** Both ledgers and the heads beside the objects, as somebody or something may have left them. */
export interface AnyArchive {
  rows: LedgerRow[]
  legacy: LegacyRow[]
  founding: FoundingMark | null
  heads: { seq: number; leaf: string }[]
}

/** Archives that publishers leave: founded or not, the last head written or not, and a founding begun alone. */
function soundArchives(): AnyArchive[] {
  const { rows, legacy } = sampleLedger()
  const own = chainOf([publication('2026-01-02'), gap('2026-01-03'), publication('2026-01-04')])
  const [imported] = rows
  const mark = { seq: 1, leaf: imported?.leaf ?? '', beganAt: imported?.recordedAt ?? 0 }
  const heads = headsOf(rows)
  const one = legacy.slice(0, 1)
  const sealed = chainOf([legacySeal(one), publication('2026-01-02')])
  const begun = { rows: [], legacy: [], founding: mark }
  return [
    { rows: [...rows], legacy: [...legacy], founding: null, heads },
    { rows: [...rows], legacy: [...legacy], founding: mark, heads: heads.slice(0, -1) },
    { rows: own, legacy: [], founding: null, heads: headsOf(own) },
    { rows: sealed, legacy: one, founding: null, heads: headsOf(sealed) },
    { ...begun, heads: [] },
    { ...begun, heads: heads.slice(0, 1) },
  ]
}

const headsOf = (rows: readonly LedgerRow[]): AnyArchive['heads'] =>
  rows.map(({ seq, leaf }) => ({ seq, leaf }))

const TEXTS = [
  '',
  'x',
  '2026-02-30',
  '2026-01-31',
  'missed',
  'gap',
  'publication',
  'legacy-seal',
  'AB'.repeat(32),
]
const NUMBERS = [-1, 0, 1, 2, 3, 7, 12, Date.UTC(2025, 11, 1), Date.UTC(2026, 0, 4, 0, 5)]

/** One damage to a list, and how much was recomputed to hide it. */
interface Damage {
  of: 'rows' | 'legacy' | 'heads' | 'founding'
  do: 'edit' | 'delete' | 'repeat' | 'swap' | 'cut'
  at: number
  other: number
  column: number
  repair: 'nothing' | 'numbers' | 'leaves' | 'chain' | 'seal and heads'
}

const damage: fc.Arbitrary<Damage> = fc.record({
  of: fc.constantFrom(
    'rows' as const,
    'rows' as const,
    'legacy' as const,
    'heads' as const,
    'founding' as const,
  ),
  do: fc.constantFrom(
    'edit' as const,
    'edit' as const,
    'edit' as const,
    'delete' as const,
    'repeat' as const,
    'swap' as const,
    'cut' as const,
  ),
  at: fc.nat(9),
  other: fc.nat(99),
  column: fc.nat(99),
  repair: fc.constantFrom(
    'nothing' as const,
    'numbers' as const,
    'leaves' as const,
    'chain' as const,
    'seal and heads' as const,
  ),
})

/** A sound archive after up to two damages. */
export const anyArchive = fc
  .tuple(fc.constantFrom(...soundArchives()), fc.array(damage, { maxLength: 2 }))
  .map(([archive, damages]) => damages.reduce(damagedArchive, archive))

function damagedArchive(archive: AnyArchive, change: Damage): AnyArchive {
  const heads = { seq: 'integer', leaf: 'text' } as const
  switch (change.of) {
    case 'rows':
      return repaired({ ...archive, rows: damagedList(archive.rows, ENTRY_COLUMNS, change) }, change)
    case 'legacy':
      return repaired({ ...archive, legacy: damagedList(archive.legacy, LEGACY_COLUMNS, change) }, change)
    case 'heads': {
      // The store has one file for each number.
      const files = damagedList(archive.heads, heads, change).map((head) => [head.seq, head] as const)
      return repaired({ ...archive, heads: [...new Map(files).values()] }, change)
    }
    case 'founding': {
      const mark = archive.founding ?? { seq: 1, leaf: archive.rows[0]?.leaf ?? '', beganAt: 0 }
      return repaired({ ...archive, founding: damagedList([mark], heads, change)[0] ?? null }, change)
    }
  }
}

function damagedList<Row extends object>(rows: readonly Row[], columns: Columns, change: Damage): Row[] {
  if (rows.length === 0) return []
  const [at, other] = [change.at % rows.length, change.other % rows.length]
  const row = rows[at] as Row
  const [column = '', type = 'text'] =
    Object.entries(columns)[change.column % Object.keys(columns).length] ?? []
  const cells = [...(type.startsWith('text') ? TEXTS : NUMBERS), ...(type.endsWith('?') ? [null] : [])]
  const damaged = {
    edit: rows.with(at, { ...row, [column]: cells[change.other % cells.length] }),
    delete: rows.toSpliced(at, 1),
    repeat: rows.toSpliced(other, 0, row),
    swap: rows.with(at, rows[other] as Row).with(other, row),
    cut: rows.slice(0, at),
  }
  return damaged[change.do]
}

function repaired(archive: AnyArchive, { repair }: Damage): AnyArchive {
  const { rows, legacy } = archive
  const numbered = rows.map((row, index) => ({ ...row, seq: index + 1 }))
  if (repair === 'nothing') return archive
  if (repair === 'numbers') return { ...archive, rows: numbered }
  if (repair === 'leaves') return { ...archive, rows: rows.map((row) => ({ ...row, leaf: naiveLeaf(row) })) }
  if (repair === 'chain') return { ...archive, rows: rechained(numbered) }
  const seal = { legacyRows: legacy.length, legacyDigest: naiveSeal(legacy) }
  const sealed = rechained(numbered.map((row) => (row.kind === 'legacy-seal' ? { ...row, ...seal } : row)))
  return { ...archive, rows: sealed, heads: headsOf(sealed) }
}

/** The rows with leaves that chain again. */
export function rechained(rows: readonly LedgerRow[]): LedgerRow[] {
  const chain: LedgerRow[] = []
  for (const row of rows) {
    const next = { ...row, previousLeaf: chain.at(-1)?.leaf ?? '0'.repeat(64) }
    chain.push({ ...next, leaf: naiveLeaf(next) })
  }
  return chain
}
