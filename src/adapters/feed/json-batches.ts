import type { ImportCounts } from '../../domain/ports.ts'

/** Longest parameter, in characters of at most three bytes each: a server takes none larger than 5 MiB. */
const PARAMETER_MAX_LENGTH = 1_000_000

/** The first and the last row of each key, and what the rows after the first do to the one before. */
export interface FoldedRows {
  first: Map<string, string>
  last: Map<string, string>
  counts: Omit<ImportCounts, 'inserted'>
}

/**
 * Folds the rows of a batch by key.
 *
 * @param rows each its key and its values, as JSON
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
 * Rows as JSON arrays that are each short enough for a parameter; at least one.
 *
 * @param rows each as JSON
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
 * What a batch did, each row counted as if it came alone.
 *
 * @param stored how many of the keys had a row before
 * @param changed how many of those differed from the first row of the batch
 */
export function importCounts({ first, counts }: FoldedRows, stored: number, changed: number): ImportCounts {
  return {
    inserted: first.size - stored,
    replaced: counts.replaced + changed,
    unchanged: counts.unchanged + stored - changed,
  }
}
