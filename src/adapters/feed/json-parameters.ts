/** Longest parameter, in characters of at most three bytes each: a server takes none larger than 5 MiB. */
const PARAMETER_MAX_LENGTH = 1_000_000

/**
 * Rows as JSON arrays that are each short enough for a parameter; at least one.
 *
 * @param rows each as JSON
 */
export function jsonParameters(rows: Iterable<string>): string[] {
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
