import type { Client, InArgs, Value } from '@libsql/client'
import { storageDamaged } from '../../domain/storage.ts'

/**
 * The statement that gives the rows of a query as one cell for {@link decodeJsonRows}, in the query's order. The order
 * is that of a subquery, which SQLite keeps for an aggregate: a server's parser knows no ORDER BY inside one.
 *
 * @param cells what each row holds, of the query's columns
 */
export function asJsonRows(cells: string, query: string): string {
  return `SELECT CAST(json_group_array(json_array(${cells})) AS BLOB) FROM (${query})`
}

/**
 * Decodes the one cell of an {@link asJsonRows}.
 *
 * Rows travel this way for two reasons: the driver ends the process on a TEXT cell that is not valid UTF-8 and
 * cuts one at a NUL, while a BLOB arrives as it is and is decoded strictly here; and one cell is several times
 * faster than many.
 *
 * @returns one array of columns a row
 * @throws Refusal `storage_damaged` when the text is not valid UTF-8 or not what JSON allows
 */
export function decodeJsonRows(cell: Value | undefined, what: string): unknown[][] {
  if (!(cell instanceof ArrayBuffer)) throw storageDamaged(`${what} could not be read`)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(cell)) as unknown[][]
  } catch (cause) {
    throw storageDamaged(`${what} holds text that is not valid UTF-8`, cause)
  }
}

/** Runs a statement of the form {@link decodeJsonRows} reads. */
export async function selectJsonRows(
  client: Pick<Client, 'execute'>,
  sql: string,
  args: InArgs,
  what: string,
): Promise<unknown[][]> {
  const { rows } = await client.execute({ sql, args })
  return decodeJsonRows(rows[0]?.[0], what)
}
