import { getTableColumns } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { getTableConfig } from 'drizzle-orm/sqlite-core'
import { storageDamaged } from '../../domain/storage.ts'

/**
 * The statement that reads every row of a table as JSON in a BLOB, ordered by one of its columns.
 * See {@link decodeJsonRows} for why.
 */
export function selectAllAsJson(table: SQLiteTable, orderBy: string): string {
  const { name, columns } = getTableConfig(table)
  const cells = columns.map((column) => column.name).join(', ')
  return `SELECT CAST(json_group_array(json_array(${cells}) ORDER BY ${orderBy}) AS BLOB) FROM ${name}`
}

/**
 * One decoded JSON row as the table's own type, each cell checked against its column: a damaged database may hold a
 * text where a number belongs.
 *
 * @throws Refusal `storage_damaged` naming the column
 */
export function toRow<T extends SQLiteTable>(table: T, cells: readonly unknown[]): T['$inferSelect'] {
  const row: Record<string, unknown> = {}
  for (const [index, [name, column]] of Object.entries(getTableColumns(table)).entries()) {
    const cell = cells[index]
    const fits =
      cell === null
        ? !column.notNull
        : column.dataType === 'number'
          ? Number.isSafeInteger(cell)
          : typeof cell === 'string' && cell.isWellFormed()
    if (!fits) throw storageDamaged(`the ledger column ${column.name} holds a value of another type`)
    row[name] = cell
  }
  return row
}
