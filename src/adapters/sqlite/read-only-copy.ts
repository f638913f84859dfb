import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { storageDamaged } from '../../domain/refusal.ts'
import type { DatabaseLocation } from '../../domain/refusal.ts'
import type { Inspection } from '../../domain/inspection.ts'
import { engineOf, requireFolder } from './database.ts'
import { migrationState } from './migrate.ts'
import type { StoreName } from './migrate.ts'
import type { SqlReader, StoreClient } from './rows.ts'
import { translateError } from './guard.ts'

/** Time in milliseconds after which an existing journal counts as left by a crash, not as used by a running process. */
const JOURNAL_SETTLES_MS = 2_000

/** Offsets in the header of a database file: its page size, and the journal it is read with (1 rollback, 2 WAL). */
const PAGE_SIZE_OFFSET = 16
const READ_VERSION_OFFSET = 19

const JOURNAL_SUFFIXES = ['-journal', '-wal']

/** Attempts to copy a database that changes meanwhile. */
const COPY_ATTEMPTS = 5

/**
 * Reads a database without changing it. A missing file is not created and no migration is applied. A file with a crash's
 * journal, which opening would roll back, is read from a copy. So is a file with a write-ahead log, because opening it
 * creates other files.
 *
 * @param busyOptions waiting times as for any database
 * @returns null if the file does not exist
 * @throws Refusals of a store
 */
export async function readUnchanged<T>(
  location: DatabaseLocation,
  busyOptions: { nativeBusyMs: number; retryMs: number },
  work: (client: StoreClient) => Promise<T>,
): Promise<T | null> {
  const readAt = async (url: string): Promise<T> => {
    const client = await engineOf({ ...location, url }, { ...busyOptions, readOnly: true }).open()
    try {
      return await work(client)
    } finally {
      client.close()
    }
  }
  try {
    if (!location.url.startsWith('file:')) return await readAt(location.url)
    const path = fileURLToPath(location.url)
    requireFolder(dirname(path))
    if (!statSync(path, { throwIfNoEntry: false })) return null
    if (!usesWal(path) && (await waitForJournals(path))) {
      const contents = await readAt(location.url)
      requireWholePages(path)
      return contents
    }
    return await readCopy(path, readAt)
  } catch (error) {
    throw translateError(error, engineOf(location, busyOptions).name)
  }
}

/**
 * Waits for a process that is writing.
 *
 * @returns false if a journal is left
 */
async function waitForJournals(path: string): Promise<boolean> {
  const deadline = performance.now() + JOURNAL_SETTLES_MS
  while (JOURNAL_SUFFIXES.some((suffix) => hasContent(path + suffix))) {
    if (performance.now() > deadline) return false
    await sleep(20)
  }
  return true
}

/** Returns true for a file in WAL mode, which cannot be opened without creating other files. */
function usesWal(path: string): boolean {
  return readHeader(path)?.readUInt8(READ_VERSION_OFFSET) === 2
}

/** Detects a truncated file: SQLite reads the missing end of the last page as zeros, so all rows may look intact. */
function requireWholePages(path: string): void {
  const header = readHeader(path)
  if (header === null) return
  const stored = header.readUInt16BE(PAGE_SIZE_OFFSET)
  const pageSize = stored === 1 ? 65_536 : stored
  const { size } = statSync(path)
  if (pageSize > 0 && size % pageSize === 0) return
  // A running process may be in the middle of writing a page.
  if (JOURNAL_SUFFIXES.some((suffix) => hasContent(path + suffix))) return
  throw storageDamaged(
    `the database ${path} has ${size} bytes, not a multiple of the page size ${pageSize}: the file is truncated`,
  )
}

/** Reads the header of a database file; null if the file is too short. */
function readHeader(path: string): Buffer | null {
  if (!statSync(path).isFile()) return null
  const header = Buffer.alloc(20)
  const file = openSync(path, 'r')
  try {
    return readSync(file, header, 0, header.length, 0) === header.length ? header : null
  } finally {
    closeSync(file)
  }
}

/** Returns true if a file exists and is not empty; an empty journal has no effect. */
function hasContent(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0
}

async function readCopy<T>(path: string, read: (url: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'dash-audit-'))
  try {
    const copy = join(folder, 'copy.db')
    for (let attempt = 1; ; attempt += 1) {
      const before = fileState(path)
      for (const suffix of ['', ...JOURNAL_SUFFIXES]) {
        rmSync(copy + suffix, { force: true })
        if (existsSync(path + suffix)) copyFileSync(path + suffix, copy + suffix)
      }
      if (fileState(path) === before) return await read(pathToFileURL(copy).href)
      if (attempt === COPY_ATTEMPTS)
        throw new Error(`the database ${path} keeps changing while it is copied; audit it again`)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function fileState(path: string): string {
  return ['', ...JOURNAL_SUFFIXES]
    .map((suffix) => {
      const stat = statSync(path + suffix, { bigint: true, throwIfNoEntry: false })
      return stat ? `${stat.ino}:${stat.size}:${stat.mtimeNs}` : '-'
    })
    .join('|')
}

const NO_MIGRATIONS = { applied: 0, known: 0, newer: false }

/**
 * Inspects a store's database without changing it.
 *
 * @param busyOptions waiting times as for any database
 * @param readFacts called only if every migration is applied
 * @throws Refusals of a store
 */
export async function inspectDatabase<Facts>(
  location: DatabaseLocation,
  store: StoreName,
  busyOptions: { nativeBusyMs: number; retryMs: number },
  readFacts: (reader: SqlReader) => Promise<Facts>,
): Promise<Inspection<Facts>> {
  const { name } = engineOf(location, busyOptions)
  const isFile = location.url.startsWith('file:')
  const found = await readUnchanged(location, busyOptions, async (client) => {
    const migrations = await migrationState(client, store)
    const isCurrent = !migrations.newer && migrations.applied === migrations.known
    return {
      migrations,
      now: isFile ? null : await serverTime(client),
      facts: isCurrent ? await readFacts(client) : null,
    }
  })
  return found === null
    ? { name, exists: false, migrations: NO_MIGRATIONS, now: null, facts: null }
    : { name, exists: true, ...found }
}

async function serverTime(client: SqlReader): Promise<number> {
  const { rows } = await client.execute("SELECT CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)")
  return Number(rows[0]?.[0])
}
