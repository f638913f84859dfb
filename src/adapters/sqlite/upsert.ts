/** Statements that insert rows, and replace the values of rows with the same keys. */

/** Returns a statement that upserts the rows of a JSON parameter. */
export function upsert(
  table: string,
  keys: readonly string[],
  values: readonly string[],
  where = 'true',
): string {
  const columns = [...keys, ...values]
  return `
    INSERT INTO ${table} (${columns.join(', ')}) ${jsonRows(columns)} WHERE true
    ${onConflictUpdate(keys, values)} WHERE ${where}`
}

/** Returns a statement that upserts one row, with one parameter per column. */
export function upsertRow(table: string, keys: readonly string[], values: readonly string[]): string {
  const columns = [...keys, ...values]
  return `
    INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
    ${onConflictUpdate(keys, values)}`
}

function onConflictUpdate(keys: readonly string[], values: readonly string[]): string {
  const changes = values.map((value) => `${value} = excluded.${value}`)
  return `ON CONFLICT (${keys.join(', ')}) DO UPDATE SET ${changes.join(', ')}`
}

/** Returns a query of the rows of a JSON parameter, an array of the columns per row. */
export function jsonRows(columns: readonly string[]): string {
  const cells = columns.map((column, index) => `value ->> ${index} AS ${column}`)
  return `SELECT ${cells.join(', ')} FROM json_each(?)`
}
