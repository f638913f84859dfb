import { literal } from './raw-ledger.ts'

/** A value that no cell of its kind can hold, as SQL. */
interface CellDamage {
  what: string
  value: (column: string) => string
  /** True when the table must first be made to take values of any type. */
  needsUntyped: boolean
}

const strict = (what: string, value: (column: string) => string): CellDamage => ({
  what,
  value,
  needsUntyped: false,
})

const loose = (what: string, value: string): CellDamage => ({ what, value: () => value, needsUntyped: true })

/** What may be put where a text, a number or a digest belongs. */
export const CELL_DAMAGE = {
  texts: [
    strict('bytes that are not UTF-8', () => "CAST(x'c328' AS TEXT)"),
    strict('a NUL at the end', (column) => `${column} || CAST(x'00' AS TEXT)`),
    strict('half of a surrogate pair', () => "CAST(x'eda080' AS TEXT)"),
    loose('bytes instead of a text', "x'616263'"),
    loose('a number instead of a text', '12'),
  ],
  numbers: [
    strict('the greatest of all integers', () => '9223372036854775807'),
    strict('a number too large to be exact', () => '9007199254740993'),
    strict('a time that is no date', () => '8640000000000001'),
    strict('a negative number', () => '-1'),
    loose('a text instead of a number', "'1767830400000'"),
    loose('a fraction', '1.5'),
    loose('an infinite number', '9e999'),
    loose('bytes instead of a number', "x'01'"),
  ],
  digests: [
    strict('a path', () => "'../../etc/passwd'"),
    strict('an absolute path', () => "'/etc/passwd'"),
    strict('upper case', (column) => `upper(${column})`),
    strict('nothing', () => 'NULL'),
    strict('an empty text', () => "''"),
  ],
} as const

/** A cell changed as little as its type allows, as SQL. */
export function editedCell(value: unknown, dataType: string): string {
  if (typeof value === 'number') return literal(value + 100)
  if (typeof value === 'string') return literal(`${otherFirst(value)}${value.slice(1)}`)
  return literal(dataType === 'number' ? 1 : 'x')
}

/** The first character with its lowest bit turned over; the last one could make one id into another. */
function otherFirst(text: string): string {
  return String.fromCharCode(text.charCodeAt(0) ^ 1)
}
