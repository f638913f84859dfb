import { getTableColumns } from 'drizzle-orm'
import { getTableConfig } from 'drizzle-orm/sqlite-core'
import { entries, legacyPublications } from '../../../src/adapters/ledger/schema.ts'
import { ENTRY, rowAt, damageCell, sqlLiteral } from './damage.ts'
import type { Damage, SampleContents } from './damage.ts'

/** Damage of single cells of the ledger, as a faulty disk or an attacker with access to its file makes it. */
export function cellDamage(sample: SampleContents): Damage[] {
  return [...editedCells(sample), ...impossibleCells(sample)]
}

/** Every column of a row of every kind, changed as little as its type allows. */
function editedCells({ rows, legacy }: SampleContents): Damage[] {
  const edits = (table: typeof entries | typeof legacyPublications, row: object, place: number): Damage[] => {
    const cells = new Map<string, unknown>(Object.entries(row))
    return Object.entries(getTableColumns(table)).map(([property, { name, dataType }]) =>
      damageCell(table, place, name, 'another value', editedCell(cells.get(property), dataType)),
    )
  }
  const seqs = [ENTRY.firstImported, ENTRY.seal, ENTRY.missedGap, ENTRY.newest]
  return [
    damageCell(entries, ENTRY.spentGap, 'reason', 'another text', "'missed'"),
    damageCell(legacyPublications, 2, 'as_of_day', 'another text', "'2025-11-11'"),
    ...seqs.flatMap((seq) => edits(entries, rowAt(rows, seq), seq)),
    ...edits(legacyPublications, legacy[1] ?? {}, 2),
  ]
}

function editedCell(value: unknown, dataType: string): string {
  if (typeof value === 'number') return sqlLiteral(value + 100)
  // The first character with its lowest bit turned over; the last one could make one id into another.
  if (typeof value === 'string')
    return sqlLiteral(`${String.fromCharCode(value.charCodeAt(0) ^ 1)}${value.slice(1)}`)
  return sqlLiteral(dataType === 'number' ? 1 : 'x')
}

type Values = Record<string, string | ((column: string) => string)>

/** Values that no cell of a type can hold: the driver ends the process on some and truncates others. */
const IMPOSSIBLE: Record<'texts' | 'numbers' | 'digests', { strict: Values; loose: Values }> = {
  texts: {
    strict: {
      'bytes that are not UTF-8': "CAST(x'c328' AS TEXT)",
      'a NUL at the end': (column) => `${column} || CAST(x'00' AS TEXT)`,
      'half of a surrogate pair': "CAST(x'eda080' AS TEXT)",
    },
    loose: { 'bytes instead of a text': "x'616263'", 'a number instead of a text': '12' },
  },
  numbers: {
    strict: {
      'the greatest of all integers': '9223372036854775807',
      'a number too large to be exact': '9007199254740993',
      'a time that is no date': '8640000000000001',
      'a negative number': '-1',
    },
    loose: {
      'a text instead of a number': "'1767830400000'",
      'a fraction': '1.5',
      'an infinite number': '9e999',
      'bytes instead of a number': "x'01'",
    },
  },
  digests: {
    strict: {
      'a path': "'../../etc/passwd'",
      'an absolute path': "'/etc/passwd'",
      'upper case': (column) => `upper(${column})`,
      'an empty text': "''",
    },
    loose: { nothing: 'NULL' },
  },
}

/** Each of those values in every cell of a publication that it does not fit, but for the number of the row. */
function impossibleCells({ rows, legacy }: SampleContents): Damage[] {
  const inRow = (table: typeof entries | typeof legacyPublications, row: object, place: number): Damage[] => {
    const cells = new Map<string, unknown>(Object.entries(row))
    const columns = Object.entries(getTableColumns(table)).slice(1)
    return columns.flatMap(([property, { name, dataType }]) => {
      if (cells.get(property) === null) return []
      const kinds = dataType === 'number' ? (['numbers'] as const) : (['texts'] as const)
      return [...kinds, ...(name === 'sha256' ? (['digests'] as const) : [])].flatMap((kind) =>
        (['strict', 'loose'] as const).flatMap((typing) =>
          Object.entries(IMPOSSIBLE[kind][typing]).map(([what, value]) => {
            const sql = typeof value === 'string' ? value : value(name)
            return damageCell(
              table,
              place,
              name,
              `${what} (${typing})`,
              sql,
              typing === 'loose' ? withoutTypes(table) : [],
            )
          }),
        ),
      )
    })
  }
  return [
    ...inRow(entries, rowAt(rows, ENTRY.previous), ENTRY.previous),
    ...inRow(legacyPublications, legacy[1] ?? {}, 2),
  ]
}

/** Statements that make a table accept values of any type. */
function withoutTypes(table: typeof entries | typeof legacyPublications): string[] {
  const { name: tableName, columns } = getTableConfig(table)
  return [
    `CREATE TABLE untyped (${columns.map(({ name }) => name).join(', ')})`,
    `INSERT INTO untyped SELECT * FROM ${tableName}`,
    `DROP TABLE ${tableName}`,
    `ALTER TABLE untyped RENAME TO ${tableName}`,
  ]
}
