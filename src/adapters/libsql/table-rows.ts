import { getTableColumns, getTableName, sql } from 'drizzle-orm'
import type { SQL } from 'drizzle-orm'
import type { LibSQLDatabase } from 'drizzle-orm/libsql'
import { getTableConfig } from 'drizzle-orm/sqlite-core'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Value } from '@libsql/client'
import { storageDamaged } from '../../domain/storage.ts'
import { asJsonRows, decodeJsonRows } from './json-rows.ts'

/** The statement that reads every row of a table as JSON in a BLOB, ordered by one of its columns. */
export function selectAllAsJson(table: SQLiteTable, orderBy: string): string {
  return asJsonRows(columnsOf(table), `SELECT * FROM ${getTableName(table)} ORDER BY ${orderBy}`)
}

function columnsOf(table: SQLiteTable): string {
  const { columns } = getTableConfig(table)
  return columns.map(({ name }) => name).join(', ')
}

/** The rows of a table that fit a condition, every cell checked. */
export async function selectRows<T extends SQLiteTable>(
  orm: Pick<LibSQLDatabase, 'values'>,
  table: T,
  orderBy: string,
  where: SQL | undefined,
): Promise<T['$inferSelect'][]> {
  const query = sql`SELECT * FROM ${table} WHERE ${where ?? sql`true`} ORDER BY ${sql.identifier(orderBy)}`
  const [cells] = await orm.values<[Value]>(
    sql`SELECT CAST(json_group_array(json_array(${sql.raw(columnsOf(table))})) AS BLOB) FROM (${query})`,
  )
  return decodeJsonRows(cells?.[0], `the table ${getTableName(table)}`).map(rowReader(table))
}

/**
 * Makes what turns a decoded JSON row into the table's own type. Each cell is checked against its column: a damaged
 * database may hold a text where a number belongs.
 *
 * @returns a function that throws Refusal `storage_damaged` naming the column
 */
export function rowReader<T extends SQLiteTable>(table: T): (cells: readonly unknown[]) => T['$inferSelect'] {
  const columns = Object.entries(getTableColumns(table))
  const tableName = getTableName(table)
  return (cells) => {
    const row: Record<string, unknown> = {}
    for (const [index, [name, { name: columnName, notNull, dataType }]] of columns.entries()) {
      const cell = cells[index]
      if (!fits(cell, notNull, dataType)) {
        throw storageDamaged(
          `the column ${columnName} of the table ${tableName} holds a value of another type`,
        )
      }
      row[name] = cell
    }
    return row
  }
}

function fits(cell: unknown, notNull: boolean, dataType: string): boolean {
  if (cell === null) return !notNull
  return dataType === 'number' ? Number.isSafeInteger(cell) : typeof cell === 'string' && cell.isWellFormed()
}
