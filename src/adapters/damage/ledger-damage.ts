import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import { getTableColumns } from 'drizzle-orm'
import { getTableConfig } from 'drizzle-orm/sqlite-core'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Mutation } from '../../domain/year/finding.ts'
import { GENESIS_LEAF, leafOf, sealEntry } from '../../domain/year/chain.ts'
import type { LedgerRow, LegacyRow } from '../../domain/year/ledger.ts'
import { entries, legacyPublications } from '../ledger/schema.ts'
import { ENTRY, damage, publicationAt, rowAt } from './damage.ts'
import type { Copy, Damage, SampleContents } from './damage.ts'

/** Damage to the versioned ledger alone, by somebody who has its file or by a disk that changes a cell. */
export function entryDamage(sample: SampleContents): Damage[] {
  return [
    ...(['firstImported', 'seal', 'missedGap', 'newest'] as const).flatMap((which) =>
      columnEdits(rowAt(sample.rows, ENTRY[which])),
    ),
    ...impossibleCells(),
    ...deletions(),
    ...insertions(),
    ...reorderings(),
    ...backdatings(),
  ]
}

/** Every column, one at a time: the leaf covers all of them. */
function columnEdits(row: LedgerRow): Damage[] {
  return Object.entries(getTableColumns(entries)).map(([property, { name, dataType }]) => {
    const value = editedCell(new Map<string, unknown>(Object.entries(row)).get(property), dataType)
    return damage(`entry ${row.seq} (${row.kind}): ${name} edited`, ['row_tampered'], ({ ledgerPath }) =>
      changeLedger(ledgerPath, [`UPDATE entries SET ${name} = ${value} WHERE seq = ${row.seq}`]),
    )
  })
}

/** Values no entry can hold: the driver ends the process on some, and cuts others. */
function impossibleCells(): Damage[] {
  const texts = ['kind', 'as_of_day', 'publication_id', 'envelope_kind', 'sha256', 'previous_leaf', 'leaf']
  const numbers = ['recorded_at', 'published_at', 'byte_size']
  const cells = [
    ...CELL_DAMAGE.texts.flatMap((cell) => texts.map((column) => ({ ...cell, column }))),
    ...CELL_DAMAGE.numbers.flatMap((cell) => numbers.map((column) => ({ ...cell, column }))),
    ...CELL_DAMAGE.digests.map((cell) => ({ ...cell, column: 'sha256' })),
  ]
  return cells.map(({ what, column, value, needsUntyped }) =>
    damage(`entry ${ENTRY.previous}: ${what} in ${column}`, ['row_tampered'], ({ ledgerPath }) =>
      changeLedger(ledgerPath, [
        ...(needsUntyped ? untyped('entries') : []),
        `UPDATE entries SET ${column} = ${value(column)} WHERE seq = ${ENTRY.previous}`,
      ]),
    ),
  )
}

function deletions(): Damage[] {
  const places = { first: ENTRY.firstImported, seal: ENTRY.seal, middle: ENTRY.spentGap }
  return [
    ...Object.entries(places).flatMap(([place, seq]) => [
      entriesDamage(`the ${place} one deleted`, ['chain_broken'], (rows) => without(rows, seq)),
      entriesDamage(
        `the ${place} one deleted, the others numbered and chained anew`,
        ['head_mismatch', 'row_tampered'],
        (rows) => rechained(without(rows, seq)),
      ),
    ]),
    entriesDamage('the last one deleted', ['head_mismatch'], (rows) => without(rows, ENTRY.newest)),
    entriesDamage('all deleted', ['head_mismatch'], () => []),
  ]
}

function insertions(): Damage[] {
  const gap = { kind: 'gap', asOfDay: '2026-01-20', reason: 'missed', attempts: 0 } as const
  const gapAfter = (rows: readonly LedgerRow[]): LedgerRow => {
    const last = rows.at(-1)
    return sealEntry(gap, rows.length + 1, last?.recordedAt ?? 0, last?.leaf ?? GENESIS_LEAF)
  }
  const publicationAfter = (
    rows: readonly LedgerRow[],
    copy: Pick<Copy, 'sample'>,
    sha256: string,
  ): LedgerRow => {
    const { manifest } = publicationAt(copy, ENTRY.newest)
    const later = { ...manifest, publicationId: 'top-year-v3-2026-01-08', asOfDay: '2026-01-08', sha256 }
    const publishedAt = manifest.publishedAt + 1
    const content = { kind: 'publication', manifest: { ...later, publishedAt } } as const
    return sealEntry(content, rows.length + 1, publishedAt, rows.at(-1)?.leaf ?? GENESIS_LEAF)
  }
  return [
    entriesDamage('one inserted in the middle', ['chain_broken'], (rows) =>
      renumbered([...rows.slice(0, ENTRY.firstOwn), gapAfter(rows), ...rows.slice(ENTRY.firstOwn)]),
    ),
    entriesDamage('one inserted in the middle, the chain made anew', ['head_mismatch'], (rows) =>
      rechained([...rows.slice(0, ENTRY.firstOwn), gapAfter(rows), ...rows.slice(ENTRY.firstOwn)]),
    ),
    entriesDamage('one inserted at the end without its leaf', ['row_tampered'], (rows) => [
      ...rows,
      { ...gapAfter(rows), leaf: 'ab'.repeat(32) },
    ]),
    entriesDamage('one inserted at the end that does not continue the chain', ['chain_broken'], (rows) => [
      ...rows,
      sealEntry(gap, rows.length + 1, rows.at(-1)?.recordedAt ?? 0, rowAt(rows, ENTRY.previous).leaf),
    ]),
    entriesDamage('two inserted at the end, chained', ['head_mismatch'], (rows) => {
      const longer = [...rows, gapAfter(rows)]
      return [...longer, { ...rechainedRow({ ...gapAfter(longer), asOfDay: '2026-01-21' }) }]
    }),
    entriesDamage('one inserted at the end whose object is not there', ['object_missing'], (rows, copy) => [
      ...rows,
      publicationAfter(rows, copy, 'cd'.repeat(32)),
    ]),
    entriesDamage('one inserted at the end over another’s object', ['identity_mismatch'], (rows, copy) => [
      ...rows,
      publicationAfter(rows, copy, publicationAt(copy, ENTRY.newest).manifest.sha256),
    ]),
    entriesDamage('a second seal at the end', ['chain_broken'], (rows) => {
      const { legacyRows, legacyDigest, leaf } = rowAt(rows, ENTRY.seal)
      const content = { kind: 'legacy-seal', rows: legacyRows ?? 0, digest: legacyDigest ?? leaf } as const
      const last = rowAt(rows, ENTRY.newest)
      return [...rows, sealEntry(content, rows.length + 1, last.recordedAt, last.leaf)]
    }),
  ]
}

function reorderings(): Damage[] {
  const swapped = (rows: readonly LedgerRow[], one: number, other: number): LedgerRow[] =>
    rows.map((row) => (row.seq === one ? rowAt(rows, other) : row.seq === other ? rowAt(rows, one) : row))
  const pairs = { 'two gaps': [5, 6], 'two publications': [7, 8], 'the first two': [1, 2] } as const
  return Object.entries(pairs).flatMap(([what, [one, other]]) => [
    entriesDamage(`${what} in each other’s place`, ['chain_broken'], (rows) =>
      renumbered(swapped(rows, one, other)),
    ),
    entriesDamage(`${what} in each other’s place, the chain made anew`, ['head_mismatch'], (rows) =>
      rechained(swapped(rows, one, other)),
    ),
  ])
}

function backdatings(): Damage[] {
  const hour = 3_600_000
  const earlier: Record<string, (row: LedgerRow) => LedgerRow> = {
    published_at: (row) => ({ ...row, publishedAt: (row.publishedAt ?? 0) - hour }),
    recorded_at: (row) => ({ ...row, recordedAt: row.recordedAt - hour }),
    'published_at and recorded_at': (row) => ({
      ...row,
      publishedAt: (row.publishedAt ?? 0) - hour,
      recordedAt: row.recordedAt - hour,
    }),
  }
  const at = (rows: readonly LedgerRow[], seq: number, change: (row: LedgerRow) => LedgerRow): LedgerRow[] =>
    rows.map((row) => (row.seq === seq ? change(row) : row))
  return Object.entries(earlier).flatMap(([what, change]) =>
    ([ENTRY.previous, ENTRY.newest] as const).flatMap((seq) => [
      entriesDamage(`entry ${seq} back-dated by its ${what}`, ['row_tampered'], (rows) =>
        at(rows, seq, change),
      ),
      entriesDamage(`entry ${seq} back-dated by its ${what}, its leaf made anew`, ['head_mismatch'], (rows) =>
        at(rows, seq, (row) => rechainedRow(change(row))),
      ),
      entriesDamage(
        `entry ${seq} back-dated by its ${what}, the chain made anew`,
        ['head_mismatch'],
        (rows) => rechained(at(rows, seq, change)),
      ),
    ]),
  )
}

function entriesDamage(
  what: string,
  expects: Mutation['expects'],
  change: (rows: readonly LedgerRow[], copy: Copy) => readonly LedgerRow[],
): Damage {
  return damage(`entries: ${what}`, expects, (copy) =>
    changeLedger(copy.ledgerPath, replaceEntries(change(copy.sample.rows, copy))),
  )
}

function without(rows: readonly LedgerRow[], seq: number): LedgerRow[] {
  return rows.filter((row) => row.seq !== seq)
}

function renumbered(rows: readonly LedgerRow[]): LedgerRow[] {
  return rows.map((row, index) => ({ ...row, seq: index + 1 }))
}

function rechainedRow(row: LedgerRow): LedgerRow {
  return { ...row, leaf: leafOf(row) }
}

/** Numbers, previous leaves and leaves made anew: a chain that holds in itself. */
export function rechained(rows: readonly LedgerRow[]): LedgerRow[] {
  const chained: LedgerRow[] = []
  for (const row of renumbered(rows)) {
    chained.push(rechainedRow({ ...row, previousLeaf: chained.at(-1)?.leaf ?? GENESIS_LEAF }))
  }
  return chained
}

/** Ledger files as somebody changes them who has their password to nothing but the file itself. */

/**
 * Runs statements on a ledger file past everything that guards it: triggers and what they
 * lean on are dropped, checks ignored.
 *
 * @param path of the database, which no other connection has open
 */
export async function changeLedger(path: string, statements: readonly string[]): Promise<void> {
  const client = createClient({ url: pathToFileURL(path).href, concurrency: 1 })
  try {
    const { rows } = await client.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    const script = [
      'PRAGMA journal_mode = MEMORY',
      'PRAGMA synchronous = OFF',
      'PRAGMA ignore_check_constraints = ON',
      'BEGIN IMMEDIATE',
      ...rows.flatMap(({ name }) => (typeof name === 'string' ? [`DROP TRIGGER ${name}`] : [])),
      'DROP INDEX entries_own_day',
      ...statements,
      'COMMIT',
    ]
    await client.executeMultiple(script.join(';\n'))
  } finally {
    client.close()
  }
}

/** Statements that leave these rows, and no other, in the table of entries. */
export function replaceEntries(rows: readonly LedgerRow[]): string[] {
  return ['DELETE FROM entries', ...rows.map((row) => insert(entries, row))]
}

/** Statements that leave these rows, and no other, in the legacy ledger. */
export function replaceLegacy(rows: readonly LegacyRow[]): string[] {
  return ['DELETE FROM legacy_publications', ...rows.map((row) => insert(legacyPublications, row))]
}

/** Statements after which the columns of a table take values of any type. */
export function untyped(table: 'entries' | 'legacy_publications'): string[] {
  const { columns } = getTableConfig(table === 'entries' ? entries : legacyPublications)
  return [
    `CREATE TABLE untyped (${columns.map(({ name }) => name).join(', ')})`,
    `INSERT INTO untyped SELECT * FROM ${table}`,
    `DROP TABLE ${table}`,
    `ALTER TABLE untyped RENAME TO ${table}`,
  ]
}

/** A value as SQL writes it. */
function literal(value: number | string | null): string {
  if (value === null) return 'NULL'
  return typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`
}

function insert(table: SQLiteTable, row: LedgerRow | LegacyRow): string {
  const values = new Map<string, number | string | null>(Object.entries(row))
  const cells = Object.keys(getTableColumns(table)).map((property) => literal(values.get(property) ?? null))
  return `INSERT INTO ${getTableConfig(table).name} VALUES (${cells.join(', ')})`
}

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
