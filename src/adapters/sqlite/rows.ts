import type { InArgs, InStatement, InValue, ResultSet, Value } from '@libsql/client'
import { LibsqlError } from '@libsql/client/sqlite3'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core/columns/common'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core/table'
import { getTableConfig } from 'drizzle-orm/sqlite-core/utils'
import { getTableName } from 'drizzle-orm/table'
import { getTableColumns } from 'drizzle-orm/utils'
import type { ImportCounts } from '../../domain/feed/signal.ts'
import { storageDamaged } from '../../domain/refusal.ts'

/**
 * Returns the statement that selects the rows of a query as one cell for {@link decodeJsonRows}, in the query's
 * order. The order comes from a subquery, which SQLite keeps for an aggregate: a server's parser does not support
 * ORDER BY inside an aggregate.
 *
 * @param cells columns of the query in each row
 */
export function asJsonRows(cells: string, query: string): string {
  return `SELECT CAST(json_group_array(json_array(${cells})) AS BLOB) FROM (${query})`
}

/**
 * Decodes the cell of a statement made by {@link asJsonRows}.
 *
 * There are two reasons for this form. The driver ends the process on a TEXT cell that is not valid UTF-8 and
 * truncates one at a NUL, while a BLOB arrives unchanged and is decoded strictly here. And one cell is several
 * times faster than many.
 *
 * @returns one array of columns per row
 * @throws Refusal `storage_damaged` if the text is not valid UTF-8 or not valid JSON
 */
export function decodeJsonRows(cell: Value | undefined, label: string): unknown[][] {
  if (!(cell instanceof ArrayBuffer)) throw storageDamaged(`${label} could not be read`)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(cell)) as unknown[][]
  } catch (cause) {
    throw storageDamaged(`${label} contains text that is not valid UTF-8`, cause)
  }
}

/** Runs a statement made by {@link asJsonRows} and decodes its rows. */
export async function selectJsonRows(
  client: SqlReader,
  statement: string,
  args: InArgs,
  label: string,
): Promise<unknown[][]> {
  const { rows } = await client.execute({ sql: statement, args })
  return decodeJsonRows(rows[0]?.[0], label)
}

/** SQL expression of each property of a query's objects. */
export type ObjectColumns<T> = Readonly<Record<keyof T & string, string>>

/** Returns the columns of a table that are named like properties, but in snake_case. */
export function columnsOf<Name extends string>(table: string, names: readonly Name[]): Record<Name, string> {
  const pairs = names.map((name) => [name, `${table}.${snakeCase(name)}`])
  return Object.fromEntries(pairs) as Record<Name, string>
}

export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/**
 * Selects the rows of a query as objects; see {@link decodeJsonRows}.
 *
 * @param from the query from its FROM clause on, without the word FROM
 */
export async function selectObjects<T>(
  client: SqlReader,
  columns: ObjectColumns<T>,
  from: string,
  args: InArgs,
  label: string,
): Promise<T[]> {
  const selected = Object.entries<string>(columns).map(([name, sql]) => `${sql} AS "${name}"`)
  const cells = Object.keys(columns).map((name) => `'${name}', "${name}"`)
  const query = `SELECT ${selected.join(', ')} FROM ${from}`
  const rows = await selectJsonRows(
    client,
    asJsonRows(`json_object(${cells.join(', ')})`, query),
    args,
    label,
  )
  return rows.map(([row]) => row as T)
}

/** Returns the statement that reads the rows of a table as JSON in a BLOB, ordered by columns. */
export function selectAllAsJson(table: SQLiteTable, orderBy: string, where = 'true'): string {
  const cells = getTableConfig(table).columns.map(({ name }) => name)
  const query = `SELECT * FROM ${getTableName(table)} WHERE ${where} ORDER BY ${orderBy}`
  return asJsonRows(cells.join(', '), query)
}

/** Selects the rows of a table that match a condition, and checks every cell. */
export async function selectRows<T extends SQLiteTable>(
  reader: SqlReader,
  table: T,
  orderBy: string,
  where?: string,
  args: InArgs = [],
): Promise<T['$inferSelect'][]> {
  const statement = selectAllAsJson(table, orderBy, where)
  const rows = await selectJsonRows(reader, statement, args, `the table ${getTableName(table)}`)
  return rows.map(rowDecoder(table))
}

/**
 * Returns a function that converts a decoded JSON row to the table's type. Each cell is checked against its column:
 * a damaged database may hold a text in a numeric column.
 *
 * @returns a function that throws Refusal `storage_damaged` with the name of the column
 */
export function rowDecoder<T extends SQLiteTable>(
  table: T,
): (cells: readonly unknown[]) => T['$inferSelect'] {
  const columns = Object.entries(getTableColumns(table))
  const tableName = getTableName(table)
  return (cells) => {
    const row: Record<string, unknown> = {}
    for (const [index, [name, column]] of columns.entries()) {
      const cell = cells[index]
      if (!matchesColumn(cell, column)) {
        throw storageDamaged(
          `the column ${column.name} of the table ${tableName} contains a value of the wrong type`,
        )
      }
      row[name] = cell
    }
    return row
  }
}

/** True if a cell can be what was written to a column. */
export function matchesColumn(
  cell: unknown,
  { notNull, dataType }: Pick<SQLiteColumn, 'notNull' | 'dataType'>,
): boolean {
  if (cell === null) return !notNull
  return dataType === 'number' ? Number.isSafeInteger(cell) : typeof cell === 'string' && cell.isWellFormed()
}

/** Maximum length of a parameter in characters of at most three bytes each: a server rejects more than 5 MiB. */
const PARAMETER_MAX_LENGTH = 1_000_000

/** The first and the last row of each key, and the number of later rows that replace or repeat the row before. */
export interface FoldedRows {
  first: Map<string, string>
  last: Map<string, string>
  counts: Omit<ImportCounts, 'inserted'>
}

/**
 * Folds the rows of a batch by key.
 *
 * @param rows key and values of each row, as JSON
 */
export function foldRows(rows: Iterable<readonly [key: string, row: string]>): FoldedRows {
  const first = new Map<string, string>()
  const last = new Map<string, string>()
  const counts = { replaced: 0, unchanged: 0 }
  for (const [key, row] of rows) {
    const before = last.get(key)
    if (before === undefined) first.set(key, row)
    else counts[before === row ? 'unchanged' : 'replaced'] += 1
    last.set(key, row)
  }
  return { first, last, counts }
}

/**
 * Groups rows into JSON arrays that fit into a parameter; returns at least one array.
 *
 * @param rows each row as JSON
 */
export function toJsonArrays(rows: Iterable<string>): string[] {
  const arrays: string[] = []
  let part: string[] = []
  let length = 0
  for (const row of rows) {
    if (part.length > 0 && length + row.length > PARAMETER_MAX_LENGTH) {
      arrays.push(`[${part.join(',')}]`)
      part = []
      length = 0
    }
    part.push(row)
    length += row.length + 1
  }
  return [...arrays, `[${part.join(',')}]`]
}

/**
 * Returns the counts of an imported batch. Each row counts as if it were imported alone.
 *
 * @param stored number of keys that had a row before
 * @param changed number of those whose row differed from the first row of the batch
 */
export function importCounts({ first, counts }: FoldedRows, stored: number, changed: number): ImportCounts {
  return {
    inserted: first.size - stored,
    replaced: counts.replaced + changed,
    unchanged: counts.unchanged + stored - changed,
  }
}

/** The client of a store, for all engines. */
export interface StoreClient {
  execute(statement: InStatement): Promise<ResultSet>
  batch(statements: InStatement[], mode?: 'read' | 'write'): Promise<ResultSet[]>
  /**
   * Runs `work` as one write transaction, which commits when it resolves. It must be short: other writers wait, and a
   * server ends it after five seconds. Use a batch where nothing is decided between its statements.
   */
  transact<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T>
  /**
   * Runs statements as one write transaction that commits within `ms` milliseconds of the call or not at all.
   *
   * @throws DeadlineExceeded if the time ended before the commit; nothing was written. After any other error the
   *   commit may have happened although its response was lost, but it cannot happen later
   */
  batchWithin(statements: readonly InStatement[], ms: number): Promise<ResultSet[]>
  /**
   * Runs several statements as one consistent read. `read` may run more than once.
   *
   * @param revision a query for a number that changes with all data that `read` uses
   */
  snapshot<T>(revision: string, read: (reader: SqlReader) => Promise<T>): Promise<T>
  /** Resolves when a power cut cannot lose anything written before the call. */
  makeDurable(): Promise<void>
  close(): void
}

/** The part of a client that runs queries. */
export type SqlReader = Pick<StoreClient, 'execute'>

/** A write transaction. */
export interface SqlTransaction extends SqlReader {
  batch(statements: InStatement[]): Promise<ResultSet[]>
}

/** Thrown when the deadline of a write has passed; nothing was written. */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded'
}

/** Returns true if a response exceeds the server's size limit; the caller then requests fewer rows. */
export function isTooLarge(error: unknown): boolean {
  return error instanceof LibsqlError && /^(SQLITE_TOOBIG|RESPONSE_TOO_LARGE)$/.test(error.code)
}

/** Statements that write rows; every column is named like a property, in camelCase. */

/** Returns a statement that upserts the rows of a JSON parameter. */
export function upsert(
  table: string,
  keys: readonly string[],
  values: readonly string[],
  where = 'true',
): string {
  const columns = [...keys, ...values]
  return `
    INSERT INTO ${table} (${listColumns(columns)}) ${jsonRows(columns)} WHERE true
    ${onConflictUpdate(keys, columns)} WHERE ${where}`
}

/** Returns a statement that inserts one row. @param ending clauses that follow the values */
export function insertRow(table: string, row: Readonly<Record<string, InValue>>, ending = ''): InStatement {
  const columns = Object.keys(row)
  const values = columns.map(() => '?').join(', ')
  const sql = `INSERT INTO ${table} (${listColumns(columns)}) VALUES (${values}) ${ending}`
  return { sql, args: Object.values(row) }
}

/** Returns a statement that upserts one row. */
export function upsertRow(
  table: string,
  keys: readonly string[],
  row: Readonly<Record<string, InValue>>,
): InStatement {
  return insertRow(table, row, onConflictUpdate(keys, Object.keys(row)))
}

export function listColumns(names: readonly string[]): string {
  return names.map(snakeCase).join(', ')
}

function onConflictUpdate(keys: readonly string[], columns: readonly string[]): string {
  const changes = columns
    .filter((column) => !keys.includes(column))
    .map((column) => `${snakeCase(column)} = excluded.${snakeCase(column)}`)
  return `ON CONFLICT (${listColumns(keys)}) DO UPDATE SET ${changes.join(', ')}`
}

/** Returns statements that pass rows to a statement with a JSON parameter; none without rows. */
export function writesOf(sql: string, rows: readonly unknown[][]): InStatement[] {
  if (rows.length === 0) return []
  return toJsonArrays(rows.map((row) => JSON.stringify(row))).map((json) => ({ sql, args: [json] }))
}

/** Returns a query of the rows of a JSON parameter, an array of the columns per row. */
export function jsonRows(columns: readonly string[]): string {
  const cells = columns.map((column, index) => `value ->> ${index} AS ${snakeCase(column)}`)
  return `SELECT ${cells.join(', ')} FROM json_each(?)`
}

/** Returns one statement that inserts the rows for which the condition holds, in order. */
export function insertAll(
  table: SQLiteTable,
  rows: readonly object[],
  condition = 'true',
  args: readonly InValue[] = [],
): InStatement {
  const columns = Object.entries(getTableColumns(table))
  const cells = rows.map((row) => {
    const values = new Map<string, unknown>(Object.entries(row))
    return columns.map(([property]) => values.get(property) ?? null)
  })
  const names = columns.map(([, { name }]) => name).join(', ')
  const values = columns.map((_, index) => `json_extract(value, '$[${index}]')`).join(', ')
  return {
    sql: `INSERT INTO ${getTableName(table)} (${names})
      SELECT ${values} FROM json_each(?) WHERE ${condition} ORDER BY key`,
    args: [JSON.stringify(cells), ...args],
  }
}
