import { closeSync, constants, fstatSync, openSync, readSync, readdirSync } from 'node:fs'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core/columns/common'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core/table'
import { getTableName } from 'drizzle-orm/table'
import { getTableColumns } from 'drizzle-orm/utils'
import type { LedgerAuditor, Objects, ObjectsAuditor } from '../domain/year/ports.ts'
import {
  errorCode,
  isDamaged,
  messageOf,
  OBJECT_MAX_BYTES,
  storageDamaged,
  StorageFault,
} from '../domain/refusal.ts'
import type { DatabaseLocation, StoreLocation } from '../domain/refusal.ts'
import { decodeUtf8 } from '../domain/text.ts'
import type { LedgerFacts } from '../domain/inspection.ts'
import type { AuditedContents, UnreadableRow, Manifest } from '../domain/year/ledger.ts'
import { examineWhole } from '../domain/year/envelope.ts'
import { objectPath, summarizeBytes } from '../domain/year/examine.ts'
import type { NoBytes, ObjectOutcome, ReadFile, ReadObject } from '../domain/year/examine.ts'
import { READ_ERROR } from '../domain/year/finding.ts'
import { asJsonRows, columnsOf, matchesColumn, selectJsonRows, selectObjects } from './sqlite/rows.ts'
import type { ObjectColumns, SqlReader } from './sqlite/rows.ts'
import { readUnchanged } from './sqlite/read-only-copy.ts'
import { entries, founding, legacyPublications, toFoundingMark } from './ledger/schema.ts'
import { isFolder, requireRoot } from './objects/file-driver.ts'

/**
 * Creates the auditor of a ledger. It does not change the database.
 *
 * @param busyOptions as for any database
 */
export function ledgerAuditor(
  location: DatabaseLocation,
  busyOptions: { nativeBusyMs: number; retryMs: number },
): LedgerAuditor {
  return { read: () => readUnchanged(location, busyOptions, readForAudit) }
}

/** Rows per query: a server limits a response to some megabytes. */
const PAGE_ROWS = 1_000

const TABLES = asJsonRows('name', "SELECT name FROM sqlite_schema WHERE type = 'table'")

/**
 * Reads both ledgers as stored. Texts are read as hexadecimal digits, so that a cell that is not text, is not UTF-8
 * or contains a NUL damages only its own row. Pages need no transaction: rows are only added.
 *
 * @returns null if the database lists no table of the ledger, because nothing was ever written to it
 */
async function readForAudit(reader: SqlReader): Promise<AuditedContents | null> {
  const listed = await selectJsonRows(reader, TABLES, [], 'the list of tables')
  const tables = new Set(listed.map(([name]) => name))
  if (!tables.has('entries') && !tables.has('legacy_publications')) return null
  // A missing table makes its statement fail.
  const legacy = await readTable(reader, legacyPublications)
  const marks = await readTable(reader, founding)
  const [unreadableMark] = marks.unreadable
  if (unreadableMark) throw storageDamaged(`the founding row of the ledger: ${unreadableMark.problem}`)
  const versioned = await readTable(reader, entries)
  return {
    rows: versioned.rows,
    legacy: legacy.rows,
    founding: toFoundingMark(marks.rows[0]),
    unreadable: [
      ...versioned.unreadable.map((row) => ({ ...row, table: 'entries' as const })),
      ...legacy.unreadable.map((row) => ({ ...row, table: 'legacy_publications' as const })),
    ],
  }
}

interface ReadTable<Row> {
  rows: Row[]
  unreadable: Omit<UnreadableRow, 'table'>[]
}

/**
 * Reads all rows of a table, ordered by its first column. Pages use an offset instead of the last value: a damaged
 * column may hold duplicates, texts, or numbers too large to be exact.
 */
async function readTable<T extends SQLiteTable>(
  reader: SqlReader,
  table: T,
): Promise<ReadTable<T['$inferSelect']>> {
  const columns = Object.entries(getTableColumns(table))
  const [key = 'rowid', ...others] = columns.map(([, { name }]) => name)
  const cells = [key, ...others].map(cellAsHex).join(', ')
  const sql = asJsonRows(
    cells,
    `SELECT * FROM ${getTableName(table)} ORDER BY ${key} LIMIT ${PAGE_ROWS} OFFSET ?`,
  )
  const result: ReadTable<T['$inferSelect']> = { rows: [], unreadable: [] }
  for (let offset = 0; ; offset += PAGE_ROWS) {
    const page = await selectJsonRows(reader, sql, [offset], 'the ledger')
    for (const [index, rowCells] of page.entries()) addRow(result, columns, rowCells, offset + index + 1)
    if (page.length < PAGE_ROWS) return result
  }
}

/** Returns an expression for a cell: integers and NULL unchanged, anything else as `<type>:<hexadecimal digits>`. */
function cellAsHex(column: string): string {
  return `CASE typeof(${column}) WHEN 'integer' THEN ${column} WHEN 'null' THEN NULL ELSE typeof(${column}) || ':' || hex(${column}) END`
}

/** @param rowNumber number of the row in its table, from 1 */
function addRow(
  result: ReadTable<object>,
  columns: readonly [property: string, Pick<SQLiteColumn, 'name' | 'notNull' | 'dataType'>][],
  cells: readonly unknown[],
  rowNumber: number,
): void {
  const values = cells.map(decodeCell)
  const row: Record<string, unknown> = Object.fromEntries(
    columns.map(([property], index) => [property, values[index]]),
  )
  const damaged = columns.filter(([, column], index) => !matchesColumn(values[index], column))
  if (damaged.length === 0) {
    result.rows.push(row)
    return
  }
  const { publicationId, seq = row['position'] } = row
  result.unreadable.push({
    at: Number.isSafeInteger(seq) ? Number(seq) : rowNumber,
    publicationId: typeof publicationId === 'string' ? publicationId : null,
    problem: `not what was written: ${damaged.map(([, { name }]) => name).join(', ')}`,
  })
}

/** The value of a cell; undefined if no ledger can have it. */
function decodeCell(cell: unknown): unknown {
  if (typeof cell !== 'string') return cell
  const [type, hex = ''] = cell.split(':')
  const text = type === 'text' ? decodeUtf8(Buffer.from(hex, 'hex')) : null
  return text === null || text.includes('\0') ? undefined : text
}

/** Reads the state of a ledger for an operator; it proves nothing. A time that is no number does not count. */
export async function ledgerFacts(reader: SqlReader): Promise<LedgerFacts> {
  const select = <T>(columns: ObjectColumns<T>, from: string): Promise<T[]> =>
    selectObjects(reader, columns, from, [], 'the ledger')
  const [counts] = await select<Pick<LedgerFacts, 'publications' | 'recordedAt'>>(COUNTS, 'entries')
  const [newest] = await select<NonNullable<LedgerFacts['newest']>>(
    columnsOf('entries', ['asOfDay', 'publishedAt']),
    "entries WHERE kind = 'publication' AND typeof(published_at) = 'integer' ORDER BY published_at DESC LIMIT 1",
  )
  const gaps = await select<LedgerFacts['gaps'][number]>(
    columnsOf('entries', ['asOfDay', 'reason']),
    "entries WHERE kind = 'gap' ORDER BY as_of_day DESC LIMIT 30",
  )
  return { publications: 0, recordedAt: null, ...counts, newest: newest ?? null, gaps }
}

const COUNTS = {
  publications: "count(*) FILTER (WHERE kind = 'publication')",
  recordedAt: "max(recorded_at) FILTER (WHERE typeof(recorded_at) = 'integer')",
}

/** Opens the auditor of an object store. It writes nothing, and does not access the store before its first use. */
export function openObjectsAuditor(location: StoreLocation, objects: Objects): ObjectsAuditor {
  return location.kind === 'file' ? fileAuditor(location.path, objects) : storeAuditor(objects)
}

/** The auditor of a store whose objects are read over the network or from memory. */
export function storeAuditor(
  objects: Pick<Objects, 'keys' | 'headFile' | 'get' | 'logFiles'>,
): ObjectsAuditor {
  const readObject = async (sha256: string): Promise<ReadFile> => {
    try {
      const bytes = await objects.get(sha256)
      return bytes === null ? { found: 'nothing' } : { found: 'bytes', bytes }
    } catch (error) {
      return unreadable(error)
    }
  }
  return {
    keys: objects.keys,
    logFiles: objects.logFiles,
    async headFile(key) {
      try {
        const bytes = await objects.headFile(Number(key.slice('heads/'.length)))
        return bytes === null ? { found: 'nothing' } : { found: 'bytes', bytes }
      } catch (error) {
        if (isDamaged(error) || error instanceof StorageFault) return unreadable(error)
        throw error
      }
    },
    summarize: async (key) => summarize(await readObject(key.slice(-SHA256_DIGITS))),
    prove: async (manifest) => prove(manifest, await readObject(manifest.sha256)),
  }
}

const SHA256_DIGITS = 64

function summarize(read: ReadFile): ReadObject {
  return read.found === 'bytes' ? { found: 'bytes', ...summarizeBytes(read.bytes) } : read
}

function prove(manifest: Manifest, read: ReadFile): ObjectOutcome {
  if (read.found !== 'bytes') return read
  return { found: 'bytes', byteSize: read.bytes.byteLength, problems: examineWhole(manifest, read.bytes) }
}

function unreadable(error: unknown): NoBytes {
  const why = messageOf(error)
  return { found: 'something else', why: isDamaged(error) ? why : READ_ERROR + why }
}

/** The auditor of a store in a folder. Files are read synchronously, which takes far less time. */
function fileAuditor(root: string, { keys, logFiles }: Pick<Objects, 'keys' | 'logFiles'>): ObjectsAuditor {
  const readFile = fileReader(root)
  const read = (key: string): ReadFile => {
    const file = readFile(key)
    // Absence proves nothing in a missing store.
    if (file.found === 'nothing') requireRoot(root)
    return file
  }
  return {
    keys: async (area) => [...(await keys(area)), ...(area === 'heads' ? foldersAmongHeads(root) : [])],
    logFiles,
    async headFile(key) {
      const file = read(key)
      return file.found === 'bytes' ? { ...file, bytes: file.bytes.slice() } : file
    },
    summarize: async (key) => summarize(read(key)),
    prove: async (manifest) => prove(manifest, read(objectPath(manifest.sha256))),
  }
}
/** Returns the keys of folders in place of head files, which the store does not list. */
function foldersAmongHeads(root: string): string[] {
  const folder = `${root}/heads`
  if (!isFolder(folder)) return []
  const files = readdirSync(folder, { withFileTypes: true })
  return files.flatMap((entry) => (entry.isDirectory() ? [`heads/${entry.name}`] : []))
}

/**
 * Returns a function that reads files into one shared buffer, which grows as needed. It follows no link, does not block
 * on a pipe and does not throw. The bytes are valid until the next file is read.
 *
 * @param root folder of the keys
 */
function fileReader(root: string): (key: string) => ReadFile {
  let buffer = new Uint8Array(1024 * 1024)
  const readAll = (file: number, size: number): Uint8Array => {
    // One byte more than the file has, so that reading ends at the end of the file, not of the buffer.
    if (buffer.byteLength <= size) buffer = new Uint8Array(size * 2)
    let length = 0
    for (;;) {
      const count = readSync(file, buffer, length, buffer.byteLength - length, null)
      length += count
      if (count === 0) return buffer.subarray(0, length)
      if (length === buffer.byteLength) throw new Error('it grew while it was being read')
    }
  }
  return (key) => {
    let file
    try {
      file = openSync(`${root}/${key}`, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
      const stat = fstatSync(file)
      if (!stat.isFile()) return { found: 'something else', why: 'not a regular file' }
      if (stat.size > OBJECT_MAX_BYTES) {
        return { found: 'something else', why: `a file of ${stat.size} bytes, larger than any object` }
      }
      return { found: 'bytes', bytes: readAll(file, stat.size) }
    } catch (error) {
      return failedRead(error)
    } finally {
      if (file !== undefined) closeSync(file)
    }
  }
}

function failedRead(error: unknown): ReadFile {
  const code = errorCode(error) ?? ''
  switch (code) {
    case 'ENOENT':
      return { found: 'nothing' }
    case 'ELOOP':
      return { found: 'something else', why: 'a symbolic link' }
    case 'ENOTDIR':
    case 'ENXIO':
      return { found: 'something else', why: `not a regular file (${code})` }
    default:
      return { found: 'something else', why: READ_ERROR + messageOf(error) }
  }
}
