import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import fs from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ledgerAuditor } from '../../../src/adapters/auditors.ts'
import { auditLedger } from '../../../src/domain/year/check.ts'
import type { AuditedContents, LedgerRow } from '../../../src/domain/year/ledger.ts'
import { addDays } from '../../../src/domain/time.ts'
import { chainOf, gap, headAt, sampleLedger } from '../../domain/year/ledger-rows.ts'
import { spyOnFiles, stateOfFolder, temporaryFolder } from '../../support/temporary-folder.ts'
import { runScript } from '../script-process.ts'
import { holdLock, rawClient } from '../sqlite/lock-holder.ts'
import { DAMAGED, UNAVAILABLE } from '../../support/refusals.ts'
import { dropTriggers, dropTypes, fill, openLedger, appendNow } from './open-ledger.ts'
import type { RawClient } from './open-ledger.ts'

function auditOf(url: string): Promise<AuditedContents | null> {
  return ledgerAuditor({ url, authToken: null }, { nativeBusyMs: 10, retryMs: 5_000 }).read()
}

async function auditedContents(url: string): Promise<AuditedContents> {
  return (await auditOf(url)) ?? expect.unreachable('there is no ledger')
}

interface Filled {
  path: string
  url: string
  raw: RawClient
}

/** Writes {@link sampleLedger} to a file without its append-only triggers and, optionally, without column types. */
async function openFilled(untyped: readonly string[] = []): Promise<Filled> {
  const { path, url, raw, ...opened } = await openLedger()
  await fill({ ...opened, raw }, sampleLedger())
  opened.close()
  await dropTriggers(raw)
  for (const table of untyped) await dropTypes(raw, table)
  return { path, url, raw }
}

const SAMPLE = sampleLedger()

describe('the auditor of a ledger', () => {
  test('the auditor reads both ledgers and the mark of a founding as they were written, and changes nothing', async () => {
    const { path, url, raw } = await openFilled()
    const leaf = 'a'.repeat(64)
    await raw.execute(`INSERT INTO founding (id, seq, leaf, began_at) VALUES (1, 1, '${leaf}', 5)`)
    const before = stateOfFolder(dirname(path))
    const contents = await auditedContents(url)
    expect(contents).toEqual({ ...SAMPLE, founding: { seq: 1, leaf, beganAt: 5 }, unreadable: [] })
    expect(stateOfFolder(dirname(path))).toEqual(before)
  })

  test('a ledger cut within a page is damaged, even if no row was there', async () => {
    const { path, url, raw } = await openFilled()
    await raw.execute('CREATE TABLE emptied (text)')
    await raw.execute('INSERT INTO emptied VALUES (zeroblob(20000))')
    await raw.execute('DROP TABLE emptied')
    expect((await auditedContents(url)).rows).toEqual(SAMPLE.rows)
    truncateSync(path, statSync(path).size - 100)
    await expect(auditOf(url)).rejects.toMatchObject(DAMAGED)
  })

  test('the auditor leaves no file beside a ledger in WAL mode', async () => {
    const { path, url } = await openFilled()
    const writer = rawClient(url)
    await writer.execute('PRAGMA journal_mode = wal')
    writer.close()
    expect((await auditedContents(url)).rows).toEqual(SAMPLE.rows)
    expect(readdirSync(dirname(path))).toEqual(['ledger.db'])
  })

  test('the auditor reads more rows than one page holds, in order', async () => {
    const { url, rows } = await openLong(2_000)
    const contents = await auditedContents(url)
    expect(contents.rows).toEqual(rows)
    const heads = rows.map(({ seq }) => ({ path: `heads/${seq}`, seq, head: headAt(rows, seq) }))
    expect(auditLedger(contents, heads, null)).toMatchObject({ findings: [], gaps: 2_000 })
  })

  test('the auditor skips no row, for any values in the column of the order', async () => {
    const { url, raw } = await openLong(1_500)
    await dropTriggers(raw)
    await dropTypes(raw, 'entries')
    await raw.executeMultiple(`
      UPDATE entries SET seq = 'a text' WHERE seq > 900 AND seq % 2 = 0;
      UPDATE entries SET seq = 1000 WHERE seq BETWEEN 950 AND 1010;
      UPDATE entries SET seq = -9223372036854775807 WHERE seq = 3`)
    const { rows, unreadable } = await auditedContents(url)
    expect(rows.length + unreadable.length).toBe(1_500)
  })

  test.each<[string, (path: string) => void, object | null]>([
    ['treats a missing file as no ledger', () => undefined, null],
    ['treats a file without tables as no ledger', (path) => writeFileSync(path, ''), null],
    ['refuses a missing folder, as of an unmounted disk', (path) => rmdirSync(dirname(path)), UNAVAILABLE],
    ['refuses a folder in its place', (path) => mkdirSync(path), UNAVAILABLE],
    ['refuses a file that is no database', (path) => writeFileSync(path, 'x'.repeat(5_000)), DAMAGED],
  ])('the auditor %s, and changes nothing', async (_what, put, refusal) => {
    const root = temporaryFolder()
    mkdirSync(join(root, 'disk'))
    const path = join(root, 'disk', 'ledger.db')
    put(path)
    const before = stateOfFolder(root)
    const audit = auditOf(pathToFileURL(path).href)
    if (refusal === null) expect(await audit).toBeNull()
    else await expect(audit).rejects.toMatchObject(refusal)
    expect(stateOfFolder(root)).toEqual(before)
  })

  test.each([
    [
      'has a damaged mark of a founding',
      "INSERT INTO founding (id, seq, leaf, began_at) VALUES (1, 1, x'00', 5)",
    ],
    [
      'has a damaged list of tables',
      "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET name = CAST(x'c328' AS TEXT) WHERE name = 'lease'",
    ],
    ['has no table of foundings, which it does not migrate', 'DROP TABLE founding'],
  ])('the auditor refuses a ledger that %s', async (_what, sql) => {
    const { path, url, raw } = await openFilled(['founding'])
    await raw.executeMultiple(sql)
    const before = stateOfFolder(dirname(path))
    await expect(auditOf(url)).rejects.toMatchObject(DAMAGED)
    expect(stateOfFolder(dirname(path))).toEqual(before)
  })
})

/** A ledger of so many gaps in a file. */
async function openLong(length: number): Promise<{ url: string; raw: RawClient; rows: LedgerRow[] }> {
  const { url, raw, ledger, close } = await openLedger()
  await ledger.ping()
  close()
  const rows = chainOf(Array.from({ length }, (_, index) => gap(addDays('2020-01-01', index))))
  const names = Object.keys(rows[0] ?? {})
  const columns = names.map((name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
  const cells = names.map((_, index) => `value ->> ${index}`)
  await raw.execute({
    sql: `INSERT INTO entries (${columns.join(', ')}) SELECT ${cells.join(', ')} FROM json_each(?) ORDER BY key`,
    args: [JSON.stringify(rows.map((row) => Object.values(row)))],
  })
  return { url, raw, rows }
}

const TEXTS: Record<string, string> = {
  'a byte that is not UTF-8': "CAST(x'c328' AS TEXT)",
  'a NUL at its end': "'text' || CAST(x'00' AS TEXT)",
}

describe('one damaged cell', () => {
  test.each(Object.entries(TEXTS))('a cell that holds %s damages only its own row', async (_what, text) => {
    const { url, raw } = await openFilled()
    await raw.execute(`UPDATE entries SET leaf = ${text} WHERE seq = 3`)
    await raw.execute(`UPDATE legacy_publications SET sha256 = ${text} WHERE position = 2`)
    const { rows, legacy, unreadable } = await auditedContents(url)
    const problemOf = (column: string): string => `not what was written: ${column}`
    const { publicationId } = SAMPLE.rows[2] ?? {}
    const { publicationId: legacyId } = SAMPLE.legacy[1] ?? {}
    expect(unreadable).toEqual([
      { table: 'entries', problem: problemOf('leaf'), at: 3, publicationId },
      { table: 'legacy_publications', problem: problemOf('sha256'), at: 2, publicationId: legacyId },
    ])
    expect(rows).toEqual(SAMPLE.rows.toSpliced(2, 1))
    expect(legacy).toEqual(SAMPLE.legacy.toSpliced(1, 1))
  })

  test.each([
    ['a text where a number belongs', "published_at = '1772410200000'", 'published_at', 3],
    ['a number one too large to be exact', 'generated_at = 9007199254740993', 'generated_at', 3],
    ['a fraction', 'recorded_at = 1.5', 'recorded_at', 3],
    ['bytes instead of text', "leaf = x'616263'", 'leaf', 3],
    ['nothing where something belongs', 'leaf = NULL', 'leaf', 3],
    ['something else beside another', "leaf = x'00', publication_id = 7", 'publication_id, leaf', 3],
    ['a text for the number of its row', "seq = 'three'", 'seq', 7],
  ])('a cell that holds %s makes its row unreadable', async (_what, change, cells, at) => {
    const { url, raw } = await openFilled(['entries'])
    await raw.execute(`UPDATE entries SET ${change} WHERE seq = 3`)
    const { rows, unreadable } = await auditedContents(url)
    expect(unreadable).toMatchObject([{ table: 'entries', problem: `not what was written: ${cells}`, at }])
    expect(rows).toHaveLength(6)
  })
})

test('the auditor waits for a running transaction, and reads what it commits', async () => {
  const { url } = await openFilled()
  const commit = await holdLock(url, 'writing', ['DELETE FROM entries WHERE seq = 7'])
  const audited = auditedContents(url)
  await setImmediate()
  await commit()
  expect((await audited).rows).toEqual(SAMPLE.rows.slice(0, -1))
})

/** Changes committed rows in a transaction larger than its cache, and reports it before the end. */
const CUT_SHORT = `
  import Database from 'libsql'
  const database = new Database(process.argv[1])
  database.exec(\`PRAGMA cache_size = 1; BEGIN IMMEDIATE; DELETE FROM entries WHERE seq > 3; CREATE TABLE filler (text);
    INSERT INTO filler SELECT hex(randomblob(2000)) FROM json_each('[\${'1,'.repeat(500)}1]')\`)
  console.log('written')
  process.stdin.resume()`

test('a ledger left by a crash is read as committed, and its journal is not rolled back in place', async () => {
  const { path, url } = await openFilled()
  const committed = readFileSync(path)
  const writer = runScript(CUT_SHORT, [path])
  expect(await writer.line()).toBe('written')
  writer.kill()
  await writer.ended
  const before = stateOfFolder(dirname(path))
  expect(readdirSync(dirname(path)).sort()).toEqual(['ledger.db', 'ledger.db-journal'])
  expect(readFileSync(path).subarray(0, committed.length).equals(committed)).toBe(false)
  expect(await auditedContents(url)).toEqual({ ...SAMPLE, unreadable: [] })
  expect(stateOfFolder(dirname(path))).toEqual(before)
})

const { rows: ROWS, legacy: LEGACY } = sampleLedger()

interface Crashed {
  path: string
  audit: () => Promise<AuditedContents | null>
  /** Completes the work of the crashed writer. */
  proceed: () => void
}

/** A ledger of all but its last two rows with a journal that a crash left, so that an audit reads a copy of it. */
async function openCrashed(): Promise<Crashed> {
  const { path, url, ...opened } = await openLedger()
  const token = await fill(opened, { rows: ROWS.slice(0, -2), legacy: LEGACY })
  const early = fs.readFileSync(path)
  for (const row of ROWS.slice(-2)) await appendNow(opened.ledger, row, token)
  opened.close()
  const late = fs.readFileSync(path)
  fs.writeFileSync(path, early)
  fs.writeFileSync(`${path}-journal`, 'no journal that could be rolled back')
  const auditor = ledgerAuditor({ url, authToken: null }, { nativeBusyMs: 10, retryMs: 5_000 })
  return { path, audit: () => auditor.read(), proceed: () => fs.writeFileSync(path, late) }
}

/** Lets something happen each time right after the ledger itself was copied, before its journal is. */
function afterCopiesOf(path: string, happen: (copies: number) => void): void {
  let copies = 0
  spyOnFiles('copyFileSync').mockImplementation((from, to) => {
    fs.writeFileSync(to, fs.readFileSync(from))
    if (from !== path) return
    copies += 1
    happen(copies)
  })
}

describe('a ledger that changes while it is copied', () => {
  test('a ledger that changes once during the copy is copied again, and read in its new state', async () => {
    const { path, audit, proceed } = await openCrashed()
    afterCopiesOf(path, (copies) => {
      if (copies === 1) proceed()
    })
    expect((await audit())?.rows).toEqual(ROWS)
  })

  test('a ledger that keeps changing is given up without a result', async () => {
    const { path, audit } = await openCrashed()
    let last = 0
    afterCopiesOf(path, (copies) => {
      last = copies
      fs.utimesSync(path, copies, copies)
    })
    await expect(audit()).rejects.toThrow('keeps changing while it is copied; audit it again')
    expect(last).toBe(5)
  })
})
