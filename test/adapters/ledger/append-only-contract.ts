import { getTableColumns, getTableName } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { describe, expect, test } from 'vitest'
import { entries, legacyPublications } from '../../../src/adapters/ledger/schema.ts'
import type { LedgerContents } from '../../../src/domain/year/ledger.ts'
import { chainOf, gap, legacyRow, legacySeal, publication } from '../../domain/year/ledger-rows.ts'
import { fill } from './open-ledger.ts'
import type { LedgerOpener, OpenLedger, RawClient } from './open-ledger.ts'

/** Statements that the database itself refuses from any client of its file. */

const LEGACY = [legacyRow(1, '2026-02-27'), legacyRow(2, '2026-02-28')]

const CONTENTS: LedgerContents = {
  founding: null,
  legacy: LEGACY,
  rows: chainOf([
    legacySeal(LEGACY),
    publication('2026-03-01'),
    gap('2026-03-02'),
    publication('2026-03-03'),
  ]),
}

/** Returns an INSERT of a copy of a row with some columns replaced by SQL. */
function copyOf(table: SQLiteTable, where: string, changes: Record<string, string>): string {
  const columns = Object.values(getTableColumns(table)).map(({ name }) => name)
  const cells = columns.map((column) => changes[column] ?? column)
  const name = getTableName(table)
  return `INTO ${name} (${columns.join(', ')}) SELECT ${cells.join(', ')} FROM ${name} WHERE ${where}`
}

/** Differs from every row in everything that must be unique. */
const NEW_ENTRY = { seq: '5', leaf: "'new leaf'", publication_id: "'new id'", as_of_day: "'2026-03-04'" }

const entry = (seq: number, changes: Record<string, string>): string =>
  copyOf(entries, `seq = ${seq}`, { ...NEW_ENTRY, ...changes })

const legacy = (position: number, changes: Record<string, string>): string =>
  copyOf(legacyPublications, `position = ${position}`, changes)

const VERBS = ['INSERT', 'INSERT OR REPLACE', 'INSERT OR IGNORE', 'INSERT OR FAIL', 'REPLACE']

/** Insertions refused for every verb. */
const INSERTIONS: Record<string, string> = {
  'the same sequence number': entry(2, { seq: '2' }),
  'the same leaf': entry(2, { leaf: 'leaf' }),
  'the same publication': entry(2, { publication_id: 'publication_id' }),
  'a publication of the same day': entry(2, { as_of_day: 'as_of_day' }),
  'a gap of a published day': entry(3, { as_of_day: "'2026-03-01'", publication_id: 'NULL' }),
  'a publication of a gap day': entry(2, { as_of_day: "'2026-03-02'" }),
  'a number left out': entry(2, { seq: '6' }),
  'a number before the first': entry(2, { seq: '0' }),
  'a negative number': entry(2, { seq: '-1' }),
  'no number': entry(2, { seq: 'NULL' }),
  'a legacy row beside an entry': legacy(1, { position: '3', publication_id: "'new id'" }),
  'an ended attempt again': "INTO attempts VALUES ('2026-03-04', 1, 1, NULL, NULL)",
  'an open attempt again': "INTO attempts VALUES ('2026-03-04', 2, 1, NULL, NULL)",
}

const STATEMENTS: Record<string, string> = {
  'UPDATE entries': 'UPDATE entries SET published_at = published_at + 1 WHERE seq = 2',
  'UPDATE OR REPLACE entries': 'UPDATE OR REPLACE entries SET seq = 2 WHERE seq = 3',
  'DELETE all entries': 'DELETE FROM entries',
  'an upsert of an entry': `INSERT ${entry(2, { seq: '2' })} ON CONFLICT (seq) DO UPDATE SET published_at = 1`,
  'UPDATE the legacy ledger': "UPDATE legacy_publications SET sha256 = 'x' WHERE position = 1",
  'DELETE from the legacy ledger': 'DELETE FROM legacy_publications WHERE position = 2',
  'UPDATE the number of an attempt': 'UPDATE attempts SET attempt = 3 WHERE failed_at IS NULL',
  'UPDATE the day of an attempt': "UPDATE attempts SET as_of_day = '2026-03-05' WHERE failed_at IS NULL",
  'UPDATE the start of an attempt': 'UPDATE attempts SET started_at = 0 WHERE failed_at IS NULL',
  'end an attempt again': 'UPDATE attempts SET failed_at = 99 WHERE failed_at IS NOT NULL',
  'DELETE an attempt': 'DELETE FROM attempts WHERE failed_at IS NULL',
  'a fourth attempt': "INSERT INTO attempts VALUES ('2026-03-04', 4, 1, NULL, NULL)",
  'an entry of another kind': `INSERT ${entry(2, { kind: "'note'" })}`,
  'an entry without a leaf': `INSERT ${entry(2, { leaf: 'NULL' })}`,
  'an entry with a text for a time': `INSERT ${entry(2, { recorded_at: "'soon'" })}`,
  'an entry with half a byte': `INSERT ${entry(2, { byte_size: '1.5' })}`,
  'a second lease': "INSERT INTO lease VALUES (2, 'token', 'holder', NULL, 1, 2)",
}

async function fillNew(open: LedgerOpener): Promise<OpenLedger> {
  const opened = await open()
  const token = await fill(opened, CONTENTS)
  await opened.ledger.countAttempt('2026-03-04', 1, 10, token)
  await opened.ledger.countAttempt('2026-03-04', 2, 20, token)
  await opened.ledger.failAttempt('2026-03-04', 1, 15, 'the first reason')
  return opened
}

async function everything(client: RawClient): Promise<unknown[]> {
  const tables = ['entries', 'legacy_publications', 'attempts', 'lease']
  const results = await client.batch(
    tables.map((table) => `SELECT * FROM ${table}`),
    'read',
  )
  return results.map((result) => result.rows)
}

/** Returns the effect of a statement on the database, which must be none. */
async function effectOf({ raw }: OpenLedger, sql: string): Promise<string> {
  const before = JSON.stringify(await everything(raw))
  const outcome = await raw.execute(sql).then(
    () => 'accepted',
    (error: unknown) => (String(error).includes('SQLITE_CONSTRAINT') ? 'refused' : String(error)),
  )
  const after = JSON.stringify(await everything(raw))
  return before === after ? outcome : `${outcome}, and changed the ledger`
}

/** Returns the distinct effects of an insertion by all verbs. */
async function effectsOf(opened: OpenLedger, insertion: string): Promise<string[]> {
  const effects = new Set<string>()
  for (const verb of VERBS) effects.add(await effectOf(opened, `${verb} ${insertion}`))
  return [...effects]
}

/** Contract of every ledger engine: statements refused even without the adapter. */
export function appendOnlyContract(engine: string, open: LedgerOpener): void {
  const filled = (): Promise<OpenLedger> => fillNew(open)

  describe(`the rules of the ledger database in ${engine}`, () => {
    test.each(Object.entries(STATEMENTS))('the database refuses: %s', async (_what, sql) => {
      expect(await effectOf(await filled(), sql)).toBe('refused')
    })

    test.each(Object.entries(INSERTIONS))(
      'the database refuses to insert %s, by every verb',
      async (_what, insertion) => {
        expect(await effectsOf(await filled(), insertion)).toEqual(['refused'])
      },
    )

    test('the database refuses to replace a legacy row, by every verb, while the legacy ledger is still open', async () => {
      const opened = await open()
      await opened.addLegacy(LEGACY)
      expect(await effectsOf(opened, legacy(1, { publication_id: "'new id'" }))).toEqual(['refused'])
      expect(await effectsOf(opened, legacy(1, { position: '3' }))).toEqual(['refused'])
      await opened.raw.execute(`INSERT ${legacy(1, { position: '3', publication_id: "'new id'" })}`)
      expect((await opened.ledger.read()).legacy).toHaveLength(3)
    })

    test('the database accepts rows that follow the rules', async () => {
      const { raw } = await filled()
      await raw.execute(`INSERT ${entry(2, {})}`)
      expect((await raw.execute('SELECT count(*) AS n FROM entries')).rows).toEqual([{ n: 5 }])
    })
  })

  describe(`imported publications in ${engine}`, () => {
    test('imported publications of older versions may share a day with each other and with an own one', async () => {
      const opened = await open()
      const old = { algorithmVersion: 'top-year-v2', schemaVersion: 2 }
      const rows = chainOf([
        publication('2026-03-01', { ...old, publicationId: 'one' }),
        publication('2026-03-01', { ...old, publicationId: 'two', publishedAt: Date.UTC(2026, 2, 2, 1) }),
        publication('2026-03-01', { publishedAt: Date.UTC(2026, 2, 2, 2) }),
      ])
      await fill(opened, { legacy: [], rows })
      expect((await opened.ledger.read()).rows).toEqual(rows)
    })
  })
}
