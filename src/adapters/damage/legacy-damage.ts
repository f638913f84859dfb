import { getTableColumns } from 'drizzle-orm'
import type { Mutation } from '../../domain/ports.ts'
import type { LegacyRow } from '../../domain/year/ledger.ts'
import { legacyPublications } from '../ledger/schema.ts'
import { CELL_DAMAGE, editedCell } from './cell-damage.ts'
import { damage } from './damage.ts'
import type { Damage, SampleContents } from './damage.ts'
import { changeLedger, replaceLegacy, untyped } from './raw-ledger.ts'

/** Damage to the legacy ledger, which the seal covers row by row. */
export function legacyDamage({ legacy }: SampleContents): Damage[] {
  const [first, middle, last] = legacy
  if (!first || !middle || !last) throw new Error('the sample has too few legacy rows')
  return [
    ...columnEdits(middle),
    ...impossibleCells(),
    legacyRows('the first one deleted', ['row_tampered'], () => [middle, last]),
    legacyRows('the middle one deleted', ['row_tampered'], () => [first, last]),
    legacyRows('the last one deleted', ['row_tampered'], () => [first, middle]),
    legacyRows('all deleted', ['row_tampered'], () => []),
    legacyRows('one inserted', ['row_tampered'], (rows) => [...rows, another(last)]),
    legacyRows('two in each other’s place', ['row_tampered'], () => [
      first,
      { ...last, position: middle.position },
      { ...middle, position: last.position },
    ]),
    legacyRows('one replaced by another', ['row_tampered'], () => [first, middle, another(middle)]),
    legacyRows('one back-dated', ['row_tampered'], () => [
      first,
      middle,
      { ...last, publishedAt: first.publishedAt - 1 },
    ]),
    damage('legacy ledger: its table dropped', ['row_tampered'], ({ ledgerPath }) =>
      changeLedger(ledgerPath, ['DROP TABLE legacy_publications']),
    ),
  ]
}

function columnEdits(row: LegacyRow): Damage[] {
  return Object.entries(getTableColumns(legacyPublications)).map(([property, { name, dataType }]) => {
    const value = editedCell(new Map<string, unknown>(Object.entries(row)).get(property), dataType)
    return damage(`legacy row ${row.position}: ${name} edited`, ['row_tampered'], ({ ledgerPath }) =>
      changeLedger(ledgerPath, [
        `UPDATE legacy_publications SET ${name} = ${value} WHERE position = ${row.position}`,
      ]),
    )
  })
}

function impossibleCells(): Damage[] {
  const cells = [
    ...CELL_DAMAGE.texts.map((cell) => ({ ...cell, column: 'publication_id' })),
    ...CELL_DAMAGE.numbers.map((cell) => ({ ...cell, column: 'published_at' })),
    ...CELL_DAMAGE.digests
      .filter(({ what }) => what !== 'nothing')
      .map((cell) => ({ ...cell, column: 'sha256' })),
  ]
  return cells.map(({ what, column, value, needsUntyped }) =>
    damage(`legacy row 2: ${what} in ${column}`, ['row_tampered'], ({ ledgerPath }) =>
      changeLedger(ledgerPath, [
        ...(needsUntyped ? untyped('legacy_publications') : []),
        `UPDATE legacy_publications SET ${column} = ${value(column)} WHERE position = 2`,
      ]),
    ),
  )
}

function legacyRows(
  what: string,
  expects: Mutation['expects'],
  change: (rows: readonly LegacyRow[]) => readonly LegacyRow[],
): Damage {
  return damage(`legacy ledger: ${what}`, expects, ({ ledgerPath, sample }) =>
    changeLedger(ledgerPath, replaceLegacy(change(sample.legacy))),
  )
}

function another(row: LegacyRow): LegacyRow {
  return { ...row, position: row.position + 1, publicationId: `${row.publicationId}-again` }
}
