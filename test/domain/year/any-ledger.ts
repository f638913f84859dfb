import fc from 'fast-check'
import { ENTRY_COLUMNS, LEGACY_COLUMNS } from '../../../src/domain/year/ledger.ts'
import type {
  Columns,
  ColumnType,
  EntryContent,
  FoundingMark,
  LedgerContents,
  LedgerRow,
  LegacyRow,
} from '../../../src/domain/year/ledger.ts'
import { chainOf, legacyRow, publication } from './ledger-rows.ts'
import { naiveLeaf, naiveSeal } from './naive-ledger.ts'

/** Ledgers as they may be, and as somebody or something may have left them. */

/** Both ledgers and the heads beside the objects. */
export interface AnyArchive {
  rows: LedgerRow[]
  legacy: LegacyRow[]
  founding: FoundingMark | null
  heads: { seq: number; leaf: string }[]
}

const HOUR_MS = 3_600_000
const BEGIN = Date.UTC(2025, 11, 1)

const day = (index: number): string => new Date(BEGIN + index * 24 * HOUR_MS).toISOString().slice(0, 10)

/** A founded archive or one that was never founded, with publications and both kinds of gap, its last head written or not. */
const committedArchive: fc.Arbitrary<AnyArchive> = fc
  .record({
    legacy: fc.array(fc.nat(3), { maxLength: 3 }),
    imported: fc.array(fc.nat(2), { maxLength: 3 }),
    own: fc.array(fc.constantFrom('publication' as const, 'missed' as const, 'attempts_spent' as const), {
      maxLength: 5,
    }),
    isFounded: fc.boolean(),
    isMarked: fc.boolean(),
    hasLastHead: fc.boolean(),
  })
  .map(({ legacy: legacyTimes, imported: steps, own, isFounded, isMarked, hasLastHead }) => {
    const legacy = isFounded
      ? legacyTimes.map((time, index) =>
          legacyRow(index + 1, day(index), { publishedAt: BEGIN + time * HOUR_MS }),
        )
      : []
    let time = BEGIN
    const imported = (isFounded ? steps : []).map((step, index) => {
      time += step * HOUR_MS
      const identity = { algorithmVersion: 'top-year-v2', schemaVersion: 2, publicationId: `v2 ${index}` }
      return publication(day(10 + index), { ...identity, publishedAt: time })
    })
    const seal = { kind: 'legacy-seal', rows: legacy.length, digest: naiveSeal(legacy) } as const
    const daily = own.map((kind, index): EntryContent => {
      const asOfDay = day(99 + index)
      if (kind === 'publication')
        return publication(asOfDay, { publishedAt: BEGIN + (100 + index) * 24 * HOUR_MS })
      return { kind: 'gap', asOfDay, reason: kind, attempts: kind === 'missed' ? 0 : 3 }
    })
    const rows = chainOf([...imported, ...(isFounded ? [seal] : []), ...daily])
    const last = rows[imported.length - 1]
    const founding = isFounded && isMarked && last ? { seq: last.seq, leaf: last.leaf, beganAt: time } : null
    const heads = rows
      .slice(isFounded ? Math.max(imported.length - 1, 0) : 0, hasLastHead ? undefined : -1)
      .map(({ seq, leaf }) => ({ seq, leaf }))
    return { rows, legacy, founding, heads }
  })

/** An archive whose founding was begun and not committed, the head before its seal written or not. */
const begunArchive: fc.Arbitrary<AnyArchive> = fc
  .tuple(fc.integer({ min: 1, max: 3 }), fc.boolean())
  .map(([seq, hasHead]) => {
    const leaf = String(seq).repeat(64)
    return {
      rows: [],
      legacy: [],
      founding: { seq, leaf, beganAt: BEGIN },
      heads: hasHead ? [{ seq, leaf }] : [],
    }
  })

export const soundArchive = fc.oneof({ weight: 9, arbitrary: committedArchive }, begunArchive)

const DIGESTS = ['ab'.repeat(32), 'AB'.repeat(32), '0'.repeat(64)]
const TEXTS = [
  '',
  'x',
  '2026-02-30',
  '2026-01-31',
  'missed',
  'attempts_spent',
  'gap',
  'publication',
  'legacy-seal',
]
const TIMES = [BEGIN, BEGIN + HOUR_MS, BEGIN + 101 * 24 * HOUR_MS]

/** A value that a cell of a column may hold. */
function cellOf(type: ColumnType): fc.Arbitrary<string | number | null> {
  const cell: fc.Arbitrary<string | number> = type.startsWith('text')
    ? fc.constantFrom(...TEXTS, ...DIGESTS)
    : fc.oneof(fc.integer({ min: -1, max: 12 }), fc.constantFrom(...TIMES))
  return type.endsWith('?') ? fc.option(cell) : cell
}

/** Generates damage to a list of rows: to one cell of one row, or to whole rows. */
function listDamage(columns: Columns) {
  const [at, other] = [fc.nat(9), fc.nat(9)]
  const edits = Object.entries(columns).map(([column, type]) =>
    fc.record({ do: fc.constant('edit' as const), at, column: fc.constant(column), value: cellOf(type) }),
  )
  return fc.oneof(
    { weight: 4, arbitrary: fc.oneof(...edits) },
    fc.record({ do: fc.constant('delete' as const), at }),
    fc.record({ do: fc.constant('repeat' as const), at, other }),
    fc.record({ do: fc.constant('swap' as const), at, other }),
    fc.record({ do: fc.constant('cut' as const), at }),
  )
}

type ListDamage = ReturnType<typeof listDamage> extends fc.Arbitrary<infer Change> ? Change : never

function damaged<Row extends object>(rows: readonly Row[], change: ListDamage): Row[] {
  if (rows.length === 0) return []
  const at = change.at % rows.length
  const row = rows[at] as Row
  switch (change.do) {
    case 'edit':
      return rows.with(at, { ...row, [change.column]: change.value })
    case 'delete':
      return rows.toSpliced(at, 1)
    case 'repeat':
      return rows.toSpliced(change.other % (rows.length + 1), 0, row)
    case 'swap': {
      const other = change.other % rows.length
      return rows.with(at, rows[other] as Row).with(other, row)
    }
    case 'cut':
      return rows.slice(0, at)
  }
}

/** Generates the parts recomputed after the damage: nothing, numbers, leaves, the whole chain, or also seal and heads. */
const repair = fc.constantFrom(
  'nothing' as const,
  'numbers' as const,
  'leaves' as const,
  'chain' as const,
  'seal and heads' as const,
)

const HEAD_COLUMNS = { seq: 'integer', leaf: 'text' } as const

const damageOf = <Of extends string>(of: Of, columns: Columns) =>
  fc.record({ of: fc.constant(of), change: listDamage(columns), repair })

export const archiveDamage = fc.oneof(
  { weight: 3, arbitrary: damageOf('rows', ENTRY_COLUMNS) },
  damageOf('legacy', LEGACY_COLUMNS),
  damageOf('heads', HEAD_COLUMNS),
  damageOf('founding', HEAD_COLUMNS),
)

type ArchiveDamage = typeof archiveDamage extends fc.Arbitrary<infer Damage> ? Damage : never

/** The archive after one damage, and after what was made to fit it. */
export function applyDamage(
  archive: AnyArchive,
  { of, change, repair: repaired }: ArchiveDamage,
): AnyArchive {
  const changed = {
    ...archive,
    ...(of === 'rows' ? { rows: damaged(archive.rows, change) } : {}),
    ...(of === 'legacy' ? { legacy: damaged(archive.legacy, change) } : {}),
    ...(of === 'heads' ? { heads: oneFileEach(damaged(archive.heads, change)) } : {}),
    ...(of === 'founding' ? { founding: damagedMark(archive, change) } : {}),
  }
  const numbered = changed.rows.map((row, index) => ({ ...row, seq: index + 1 }))
  switch (repaired) {
    case 'numbers':
      return { ...changed, rows: numbered }
    case 'leaves':
      return { ...changed, rows: changed.rows.map((row) => ({ ...row, leaf: naiveLeaf(row) })) }
    case 'chain':
      return { ...changed, rows: rechained(numbered) }
    case 'seal and heads': {
      const { legacy } = changed
      const sealed = { legacyRows: legacy.length, legacyDigest: naiveSeal(legacy) }
      const rows = rechained(
        numbered.map((row) => (row.kind === 'legacy-seal' ? { ...row, ...sealed } : row)),
      )
      return { ...changed, rows, heads: rows.map(({ seq, leaf }) => ({ seq, leaf })) }
    }
    case 'nothing':
      return changed
  }
}

/** The store has one file for each number. */
function oneFileEach(heads: AnyArchive['heads']): AnyArchive['heads'] {
  return [...new Map(heads.map((head) => [head.seq, head])).values()]
}

function damagedMark({ founding, rows }: AnyArchive, change: ListDamage): FoundingMark | null {
  const mark = founding ?? { seq: 1, leaf: rows[0]?.leaf ?? '0'.repeat(64), beganAt: 0 }
  return damaged([mark], change)[0] ?? null
}

function rechained(rows: readonly LedgerRow[]): LedgerRow[] {
  const chain: LedgerRow[] = []
  for (const row of rows) {
    const next = { ...row, previousLeaf: chain.at(-1)?.leaf ?? '0'.repeat(64) }
    chain.push({ ...next, leaf: naiveLeaf(next) })
  }
  return chain
}

/** The ledgers of an archive. */
export function contentsOf({ rows, legacy, founding }: AnyArchive): LedgerContents {
  return { rows, legacy, founding }
}
