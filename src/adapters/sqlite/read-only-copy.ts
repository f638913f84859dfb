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
import { engineOf, requireFolder } from './engine.ts'
import { migrationState } from './migrate.ts'
import type { StoreName } from './migrate.ts'
import type { Reader, StoreClient } from './rows.ts'
import { translate } from './vendor-errors.ts'

/** How long a journal may belong to a process at work before it is taken for one that a crash left. */
const JOURNAL_SETTLES_MS = 2_000

/** Where a database file says how long its pages are, and by which journal it is read: 1 rollback, 2 WAL. */
const PAGE_SIZE_OFFSET = 16
const READ_VERSION_OFFSET = 19

const JOURNAL_SUFFIXES = ['-journal', '-wal']

/** How often a database that changes while it is copied is copied again. */
const COPIES = 5

/** A database that is only looked at. */
interface UntouchedDatabase {
  /** As errors name it. */
  name: string
  /**
   * Runs `work` on it: a file that is not there is not created, no migration is applied, and a journal that a crash left,
   * which the database would roll back when it opens the file, is rolled back in a copy. So is a file with a write-ahead
   * log read, since it cannot be opened without files beside it.
   *
   * @returns null when there is no file
   * @throws Refusals of a store
   */
  read<T>(work: (client: StoreClient) => Promise<T>): Promise<T | null>
}

/** @param waiting as for any database */
export function openReadOnlyCopy(
  location: DatabaseLocation,
  waiting: { nativeBusyMs: number; retryMs: number },
): UntouchedDatabase {
  const options = { ...waiting, readOnly: true }
  const { name } = engineOf(location, options)
  const readAt = async <T>(url: string, work: (client: StoreClient) => Promise<T>): Promise<T> => {
    const client = await engineOf({ ...location, url }, options).open()
    try {
      return await work(client)
    } finally {
      client.close()
    }
  }
  return {
    name,
    async read(work) {
      try {
        if (!location.url.startsWith('file:')) return await readAt(location.url, work)
        const path = fileURLToPath(location.url)
        requireFolder(dirname(path))
        if (!statSync(path, { throwIfNoEntry: false })) return null
        if (!isInWalMode(path) && (await journalsAreGone(path))) {
          const contents = await readAt(location.url, work)
          requireWholePages(path)
          return contents
        }
        return await readCopy(path, (url) => readAt(url, work))
      } catch (error) {
        throw translate(error, name)
      }
    },
  }
}

/** Waits for a process that is writing. */
async function journalsAreGone(path: string): Promise<boolean> {
  const deadline = performance.now() + JOURNAL_SETTLES_MS
  while (JOURNAL_SUFFIXES.some((suffix) => isThere(path + suffix))) {
    if (performance.now() > deadline) return false
    await sleep(20)
  }
  return true
}

/** A file in WAL mode cannot be opened without files beside it. */
function isInWalMode(path: string): boolean {
  return readHeader(path)?.readUInt8(READ_VERSION_OFFSET) === 2
}

/** SQLite reads the missing end of a last page as zeros, so that a file that was cut short need not change a row. */
function requireWholePages(path: string): void {
  const header = readHeader(path)
  if (header === null) return
  const stored = header.readUInt16BE(PAGE_SIZE_OFFSET)
  const pageSize = stored === 1 ? 65_536 : stored
  const { size } = statSync(path)
  if (pageSize > 0 && size % pageSize === 0) return
  // A process at work may be in the middle of a page.
  if (JOURNAL_SUFFIXES.some((suffix) => isThere(path + suffix))) return
  throw storageDamaged(
    `the database ${path} has ${size} bytes, which are no whole pages of ${pageSize}: it was cut`,
  )
}

/** The beginning of a database file; null for one that is too short to have any. */
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

/** An empty journal asks for nothing. */
function isThere(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0
}

async function readCopy<T>(path: string, read: (url: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'dash-audit-'))
  try {
    const copy = join(folder, 'copy.db')
    for (let tries = 1; ; tries += 1) {
      const before = stateOf(path)
      for (const suffix of ['', ...JOURNAL_SUFFIXES]) {
        rmSync(copy + suffix, { force: true })
        if (existsSync(path + suffix)) copyFileSync(path + suffix, copy + suffix)
      }
      if (stateOf(path) === before) return await read(pathToFileURL(copy).href)
      if (tries === COPIES)
        throw new Error(`the database ${path} keeps changing while it is copied; audit it again`)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function stateOf(path: string): string {
  return ['', ...JOURNAL_SUFFIXES]
    .map((suffix) => {
      const stat = statSync(path + suffix, { bigint: true, throwIfNoEntry: false })
      return stat ? `${stat.ino}:${stat.size}:${stat.mtimeNs}` : '-'
    })
    .join('|')
}

const NONE = { applied: 0, known: 0, newer: false }

/**
 * Looks at a store's database and leaves it as it is.
 *
 * @param waiting as for any database
 * @param readFacts asked only when every migration is applied
 * @throws Refusals of a store
 */
export async function inspectDatabase<Facts>(
  location: DatabaseLocation,
  store: StoreName,
  waiting: { nativeBusyMs: number; retryMs: number },
  readFacts: (reader: Reader) => Promise<Facts>,
): Promise<Inspection<Facts>> {
  const database = openReadOnlyCopy(location, waiting)
  const isFile = location.url.startsWith('file:')
  const found = await database.read(async (client) => {
    const migrations = await migrationState(client, store)
    const isCurrent = !migrations.newer && migrations.applied === migrations.known
    return {
      migrations,
      now: isFile ? null : await serverTime(client),
      facts: isCurrent ? await readFacts(client) : null,
    }
  })
  const { name } = database
  return found === null
    ? { name, exists: false, migrations: NONE, now: null, facts: null }
    : { name, exists: true, ...found }
}

async function serverTime(client: Reader): Promise<number> {
  const { rows } = await client.execute("SELECT CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)")
  return Number(rows[0]?.[0])
}
