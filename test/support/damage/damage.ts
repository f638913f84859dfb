import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import { getTableColumns } from 'drizzle-orm'
import { getTableConfig } from 'drizzle-orm/sqlite-core'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { GENESIS_LEAF, leafOf, sealLegacy } from '../../../src/domain/year/chain.ts'
import { objectPath } from '../../../src/domain/year/examine.ts'
import type { FindingCode } from '../../../src/domain/year/finding.ts'
import { formatHead } from '../../../src/domain/year/ledger.ts'
import type { Head, LedgerRow, LegacyRow, Manifest } from '../../../src/domain/year/ledger.ts'
import { ledgerTree } from '../../../src/domain/year/log/log-history.ts'
import { rootAt } from '../../../src/domain/year/log/merkle-tree.ts'
import { checkpointText, signNote, signerKey } from '../../../src/domain/year/log/signed-note.ts'
import { entries, legacyPublications } from '../../../src/adapters/ledger/schema.ts'

/** Building blocks of damage: a copy of the sample, and functions that change its stores without the adapters. */

/** A publication of the sample: its object's bytes and their manifest. */
export interface Publication {
  manifest: Manifest
  bytes: Uint8Array
}

/** Contents of the sample, from which a change chooses its target. */
export interface SampleContents {
  rows: readonly LedgerRow[]
  legacy: readonly LegacyRow[]
  /** All publications by id. */
  publications: ReadonlyMap<string, Publication>
  /** Ascending. */
  heads: readonly Head[]
  /** Earlier states of the ledger file, by the number of the entry they end with. */
  olderLedgers: ReadonlyMap<number, Uint8Array>
}

/** A copy of the sample to damage. */
export interface Copy {
  sample: SampleContents
  folder: string
  ledgerPath: string
  objectsPath: string
}

type FindingCodes = readonly FindingCode[]

/** A change of the sample, and the findings it must cause. */
export interface Damage {
  name: string
  /** Codes of which an audit must report at least one. */
  expects: FindingCodes
  /** True when only a head kept elsewhere can reveal the damage. */
  needsKeptHead: boolean
  apply: (copy: Copy) => void | Promise<void>
}

/** Numbers of the sample's entries. */
export const ENTRY = {
  firstImported: 1,
  lastImported: 2,
  seal: 3,
  firstOwn: 4,
  missedGap: 5,
  spentGap: 6,
  beforePrevious: 7,
  previous: 8,
  newest: 9,
} as const

/** Key of the sample's signed log. */
export const LOG_KEY = signerKey('sample.example/tlog/year', new Uint8Array(32))

/** Signs the checkpoint of a ledger. */
export function noteOf(rows: readonly LedgerRow[], key = LOG_KEY): string {
  const root = rootAt(ledgerTree(rows), rows.length)
  return signNote(checkpointText({ origin: key.name, size: rows.length, root }), key)
}

/** Replaces a file of the signed log; a null text removes it. */
export function damageLog(
  name: string,
  description: string,
  expects: FindingCodes,
  change: (text: string, copy: Copy) => string | null,
): Damage {
  return damage(`tlog/year/${name}: ${description}`, expects, (copy) => {
    const path = join(copy.objectsPath, 'tlog', 'year', name)
    const text = change(readFileSync(path, 'utf8'), copy)
    if (text === null) rmSync(path)
    else overwrite(path, text)
  })
}

/** `kept head`: both stores are consistent, so only a head kept elsewhere reveals the damage. */
type Expected = FindingCodes | 'kept head'

export function damage(name: string, expected: Expected, apply: Damage['apply']): Damage {
  const needsKeptHead = expected === 'kept head'
  return { name, expects: needsKeptHead ? ['head_mismatch'] : expected, needsKeptHead, apply }
}

export function rowAt(rows: readonly LedgerRow[], seq: number): LedgerRow {
  const row = rows[seq - 1]
  if (row?.seq !== seq) throw new Error(`the sample has no entry ${seq}`)
  return row
}

/** Returns the publication in an entry of the sample. */
export function publicationAt({ sample }: Pick<Copy, 'sample'>, seq: number): Publication {
  return publicationNamed(sample, rowAt(sample.rows, seq).publicationId)
}

export function publicationNamed(sample: SampleContents, id: string | null | undefined): Publication {
  const publication = id ? sample.publications.get(id) : undefined
  if (!publication) throw new Error(`the sample has no publication ${id}`)
  return publication
}

export function headAt({ sample }: Pick<Copy, 'sample'>, seq: number): Head {
  const head = sample.heads.find((each) => each.seq === seq)
  if (!head) throw new Error(`the sample has no head ${seq}`)
  return head
}

/** Returns the path of a publication's object. */
export function objectFile({ objectsPath }: Copy, { manifest }: Publication): string {
  return join(objectsPath, objectPath(manifest.sha256))
}

export function headFile({ objectsPath }: Copy, seq: number): string {
  return join(objectsPath, 'heads', String(seq))
}

/** Replaces a file; objects are read-only, so they cannot be overwritten in place. */
export function overwrite(path: string, bytes: Uint8Array | string): void {
  rmSync(path, { force: true, recursive: true })
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, bytes)
}

/** Returns the bytes with some bits of one byte flipped. */
export function withFlippedBits(bytes: Uint8Array, position: number, bits: number): Uint8Array {
  return bytes.with(position, (bytes[position] ?? 0) ^ bits)
}

/** Changes the bytes of an entry's object. */
export function damageObject(
  seq: number,
  description: string,
  expects: FindingCodes,
  change: (bytes: Uint8Array, text: string) => Uint8Array | string,
): Damage {
  return damage(`object of entry ${seq}: ${description}`, expects, (copy) => {
    const { bytes } = publicationAt(copy, seq)
    overwrite(objectFile(copy, publicationAt(copy, seq)), change(bytes, new TextDecoder().decode(bytes)))
  })
}

/** Removes the object of an entry and puts something else in its place. */
export function replaceObject(
  seq: number,
  description: string,
  expects: FindingCodes,
  replace: (path: string, bytes: Uint8Array) => void | Promise<void>,
): Damage {
  return damage(`object of entry ${seq}: ${description}`, expects, (copy) => {
    const publication = publicationAt(copy, seq)
    const path = objectFile(copy, publication)
    rmSync(path)
    return replace(path, publication.bytes)
  })
}

/** Changes the text of an entry's head. */
export function damageHead(
  seq: number,
  description: string,
  change: (head: Head, copy: Copy) => Uint8Array | string,
): Damage {
  return damage(`head ${seq}: ${description}`, ['head_mismatch'], (copy) =>
    overwrite(headFile(copy, seq), change(headAt(copy, seq), copy)),
  )
}

/** Removes the heads of entries. */
export function removeHeads(description: string, seqs: readonly number[]): Damage {
  return damage(`heads: ${description}`, ['head_mismatch'], (copy) => {
    for (const seq of seqs) rmSync(headFile(copy, seq))
  })
}

/** Changes the ledger file itself, as a faulty disk does. */
export function damageLedgerFile(
  description: string,
  expects: FindingCodes,
  change: (bytes: Buffer, copy: Copy) => Uint8Array,
): Damage {
  return damage(`ledger file: ${description}`, expects, (copy) =>
    overwrite(copy.ledgerPath, change(readFileSync(copy.ledgerPath), copy)),
  )
}

/** Runs SQL on the ledger, as an attacker with access to its file could. */
export function damageLedger(
  description: string,
  expects: FindingCodes,
  statements: (copy: Copy) => readonly string[],
): Damage {
  return damage(description, expects, (copy) => changeLedger(copy.ledgerPath, statements(copy)))
}

/** Replaces the rows of the table of entries. */
export function damageEntries(
  description: string,
  expects: FindingCodes,
  change: (rows: readonly LedgerRow[], copy: Copy) => readonly LedgerRow[],
): Damage {
  return damageLedger(`entries: ${description}`, expects, (copy) =>
    replaceRows(entries, change(copy.sample.rows, copy)),
  )
}

/** Replaces the rows of the legacy ledger. */
export function damageLegacy(
  description: string,
  change: (rows: readonly LegacyRow[]) => readonly LegacyRow[],
): Damage {
  return damageLedger(`legacy ledger: ${description}`, ['row_tampered'], ({ sample }) =>
    replaceRows(legacyPublications, change(sample.legacy)),
  )
}

/**
 * Changes one cell to an SQL value.
 *
 * @param preparation statements that are executed first
 */
export function damageCell(
  table: typeof entries | typeof legacyPublications,
  rowNumber: number,
  column: string,
  description: string,
  value: string,
  preparation: readonly string[] = [],
): Damage {
  const { name, columns } = getTableConfig(table)
  const [key] = columns
  return damageLedger(`${name}/${rowNumber}: ${description} in ${column}`, ['row_tampered'], () => [
    ...preparation,
    `UPDATE ${name} SET ${column} = ${value} WHERE ${key?.name} = ${rowNumber}`,
  ])
}

/** Runs statements on a ledger file without its protection: triggers are dropped, checks ignored. */
async function changeLedger(path: string, statements: readonly string[]): Promise<void> {
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

/** Returns statements that replace all rows of a table. */
function replaceRows(table: SQLiteTable, rows: readonly object[]): string[] {
  const { name } = getTableConfig(table)
  const properties = Object.keys(getTableColumns(table))
  const inserts = rows.map((row) => {
    const cells = new Map<string, unknown>(Object.entries(row))
    return `INSERT INTO ${name} VALUES (${properties.map((property) => sqlLiteral(cells.get(property))).join(', ')})`
  })
  return [`DELETE FROM ${name}`, ...inserts]
}

/** Returns a value as an SQL literal. */
export function sqlLiteral(value: unknown): string {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : 'NULL'
}

/** Returns the rows with one of them changed. */
export function changeRow(
  rows: readonly LedgerRow[],
  seq: number,
  change: (row: LedgerRow) => Partial<LedgerRow>,
): LedgerRow[] {
  return rows.map((row) => (row.seq === seq ? { ...row, ...change(row) } : row))
}

export function withoutRow(rows: readonly LedgerRow[], seq: number): LedgerRow[] {
  return rows.filter((row) => row.seq !== seq)
}

/** Returns the row with a recomputed leaf. */
export function reseal(row: LedgerRow): LedgerRow {
  return { ...row, leaf: leafOf(row) }
}

/** Renumbers all entries and recomputes a consistent chain. */
export function rechain(rows: readonly LedgerRow[]): LedgerRow[] {
  const chained: LedgerRow[] = []
  for (const [index, row] of rows.entries())
    chained.push(reseal({ ...row, seq: index + 1, previousLeaf: chained.at(-1)?.leaf ?? GENESIS_LEAF }))
  return chained
}

interface Ledgers {
  rows: readonly LedgerRow[]
  legacy: readonly LegacyRow[]
}

type ForgeLedgers = (ledgers: Ledgers, copy: Copy) => Partial<Ledgers>

/** Simulates a forger who controls both stores and recomputes chain, seal and heads after the change. */
export function forge(description: string, expected: Expected, change: ForgeLedgers): Damage {
  return damage(`forger of both stores: ${description}`, expected, (copy) =>
    writeForgery(copy, change(copy.sample, copy)),
  )
}

/** Writes forged ledgers with matching seal, chain and heads. */
async function writeForgery(copy: Copy, forgery: Partial<Ledgers>): Promise<void> {
  const { rows: before, legacy } = { ...copy.sample, ...forgery }
  const { rows: legacyRows, digest: legacyDigest } = sealLegacy(legacy)
  const rows = rechain(
    before.map((row) => (row.kind === 'legacy-seal' ? { ...row, legacyRows, legacyDigest } : row)),
  )
  await changeLedger(copy.ledgerPath, [
    ...replaceRows(entries, rows),
    ...replaceRows(legacyPublications, legacy),
  ])
  for (const { seq, leaf, recordedAt } of rows)
    if (seq > 1) overwrite(headFile(copy, seq), formatHead({ seq, leaf, time: recordedAt }))
  for (let seq = rows.length + 1; existsSync(headFile(copy, seq)); seq += 1) rmSync(headFile(copy, seq))
}

type ChangeText = (text: string, manifest: Manifest) => string

/** Simulates a forger who replaces the newest publication's object and all references to it. */
export function forgeNewestObject(description: string, expected: Expected, change: ChangeText): Damage {
  return damage(`forger of both stores: ${description}`, expected, (copy) => forgeObject(copy, change))
}

async function forgeObject(copy: Copy, change: ChangeText): Promise<void> {
  const { manifest, bytes } = publicationAt(copy, ENTRY.newest)
  const text = change(new TextDecoder().decode(bytes), manifest)
  const forgedBytes = new TextEncoder().encode(text)
  const archivedAt = /"archivedAt":"([^"]+)"/.exec(text)?.[1]
  const publishedAt = archivedAt === undefined ? manifest.publishedAt : Date.parse(archivedAt)
  const identity = { sha256: sha256Hex(forgedBytes), byteSize: forgedBytes.byteLength, publishedAt }
  rmSync(objectFile(copy, { manifest, bytes }))
  overwrite(objectFile(copy, { manifest: { ...manifest, ...identity }, bytes: forgedBytes }), forgedBytes)
  const columns = { ...identity, recordedAt: publishedAt }
  await writeForgery(copy, { rows: changeRow(copy.sample.rows, ENTRY.newest, () => columns) })
}
