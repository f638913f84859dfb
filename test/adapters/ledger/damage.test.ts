import type { Client } from '@libsql/client'
import { describe, expect, test } from 'vitest'
import { proveLedger } from '../../../src/domain/year/chain.ts'
import { headAt, sampleLedger } from '../../domain/year/ledger-rows.ts'
import { builtModule, runScript } from '../built-modules.ts'
import { DAMAGED } from '../refusals.ts'
import { fill, openLedger, reopenLedger } from './open-ledger.ts'
import type { OpenLedger } from './open-ledger.ts'

/** Bytes and values a damaged disk or a careless hand may leave in the cells of the ledger. */

async function filled(): Promise<OpenLedger> {
  const opened = await openLedger()
  await fill(opened, sampleLedger())
  return opened
}

async function namesIn(client: Client, sql: string): Promise<string[]> {
  const { rows } = await client.execute(sql)
  return rows.map((row) => (typeof row['name'] === 'string' ? row['name'] : ''))
}

async function dropTriggers(client: Client): Promise<void> {
  const names = await namesIn(client, "SELECT name FROM sqlite_schema WHERE type = 'trigger'")
  for (const name of names) await client.execute(`DROP TRIGGER ${name}`)
}

/** Makes the columns of a table take values of any type, as a changed byte in a record's header does. */
async function dropTypes(client: Client, table: string): Promise<void> {
  const columns = await namesIn(client, `PRAGMA table_info(${table})`)
  await client.batch(
    [
      `CREATE TABLE untyped (${columns.join(', ')})`,
      `INSERT INTO untyped SELECT * FROM ${table}`,
      `DROP TABLE ${table}`,
      `ALTER TABLE untyped RENAME TO ${table}`,
    ],
    'write',
  )
}

const DAMAGED_TEXTS: Record<string, string> = {
  'a byte that is not UTF-8': "CAST(x'c328' AS TEXT)",
  'a text cut inside a character': "CAST(x'e282' AS TEXT)",
  'half of a surrogate pair': "CAST(x'eda080' AS TEXT)",
  'a NUL at its end': "leaf || CAST(x'00' AS TEXT)",
  'nothing but a NUL': "CAST(x'00' AS TEXT)",
}

const read = async ({ path }: OpenLedger): Promise<unknown> => {
  // Through a new connection, as a server that starts now would read it.
  const contents = await reopenLedger(path).ledger.read()
  return proveLedger(contents, headAt(sampleLedger().rows, 7))
}

describe('a damaged ledger', () => {
  test('is sound before it is damaged', async () => {
    const opened = await filled()
    await dropTriggers(opened.raw)
    await expect(read(opened)).resolves.toBeDefined()
  })

  test.each(Object.entries(DAMAGED_TEXTS))(
    'is refused for %s in any text of an entry',
    async (_what, text) => {
      const opened = await filled()
      await dropTriggers(opened.raw)
      for (const column of [
        'as_of_day',
        'publication_id',
        'sha256',
        'leaf',
        'previous_leaf',
        'envelope_kind',
      ]) {
        const original = await opened.raw.execute(`SELECT seq, ${column} AS cell FROM entries WHERE seq = 3`)
        await opened.raw.execute(`UPDATE entries SET ${column} = ${text} WHERE seq = 3`)
        await expect(read(opened), column).rejects.toMatchObject(DAMAGED)
        await opened.raw.execute({
          sql: `UPDATE entries SET ${column} = ? WHERE seq = 3`,
          args: [original.rows[0]?.['cell'] ?? null],
        })
        await expect(read(opened), column).resolves.toBeDefined()
      }
    },
  )

  test.each(Object.entries(DAMAGED_TEXTS))('is refused for %s in the legacy ledger', async (_what, text) => {
    const opened = await filled()
    await dropTriggers(opened.raw)
    await opened.raw.execute(
      `UPDATE legacy_publications SET publication_id = ${text.replace('leaf', 'publication_id')} WHERE position = 2`,
    )
    await expect(read(opened)).rejects.toMatchObject(DAMAGED)
  })

  test.each([
    ['a text where a number belongs', 'published_at', "'1772410200000'"],
    ['a text that is no number', 'byte_size', "'many'"],
    ['a fraction', 'recorded_at', '1.5'],
    ['a number too large to be exact', 'generated_at', '9007199254740993'],
    ['a number where a text belongs', 'sha256', '12'],
    ['bytes where a text belongs', 'leaf', "x'616263'"],
    ['bytes that are binary JSON', 'window_end', "x'01'"],
    ['nothing where something belongs', 'leaf', 'NULL'],
    ['an infinite number', 'window_start', '9e999'],
  ])('is refused for %s', async (_what, column, value) => {
    const opened = await filled()
    await dropTriggers(opened.raw)
    await dropTypes(opened.raw, 'entries')
    await expect(read(opened)).resolves.toBeDefined()
    await opened.raw.execute(`UPDATE entries SET ${column} = ${value} WHERE seq = 3`)
    await expect(read(opened)).rejects.toMatchObject(DAMAGED)
  })

  test.each([
    ['an entry is missing', 'DELETE FROM entries WHERE seq = 4'],
    ['its last entry is missing', 'DELETE FROM entries WHERE seq = 7'],
    ['it is empty', 'DELETE FROM entries'],
    [
      'two entries have changed places',
      `UPDATE entries SET seq = 99 WHERE seq = 3; UPDATE entries SET seq = 3 WHERE seq = 4;
       UPDATE entries SET seq = 4 WHERE seq = 99`,
    ],
    ['a time was moved', 'UPDATE entries SET published_at = published_at - 1 WHERE seq = 6'],
    ['a legacy row is missing', 'DELETE FROM legacy_publications WHERE position = 3'],
    ['the legacy ledger is empty', 'DELETE FROM legacy_publications'],
    [
      'a legacy row was edited',
      'UPDATE legacy_publications SET byte_size = byte_size + 1 WHERE position = 1',
    ],
    ['the table of entries is gone', 'DROP TABLE entries'],
    ['the legacy table is gone', 'DROP TABLE legacy_publications'],
    ['a column is gone', 'ALTER TABLE entries DROP COLUMN reason'],
  ])('is refused when %s', async (_what, sql) => {
    const opened = await filled()
    await dropTriggers(opened.raw)
    await opened.raw.executeMultiple(sql)
    await expect(read(opened)).rejects.toMatchObject(DAMAGED)
  })
})

describe('a byte that is not UTF-8', () => {
  /** The driver ends the process on such a text: no error, no exit code of ours. */
  const ASK = `
    const [, base, url, question] = process.argv
    const { database } = await import(base + 'adapters/libsql/database.js')
    const { migrationsOf } = await import(base + 'adapters/libsql/migrations.js')
    const { libsqlLedger } = await import(base + 'adapters/ledger/ledger.js')
    const store = database({ url, migrationsFolder: migrationsOf('ledger'), nativeBusyMs: 10, retryMs: 1000 })
    const ledger = libsqlLedger(store)
    const questions = {
      read: () => ledger.read(),
      attempts: () => ledger.attempts('2026-03-01'),
      firstAttemptDay: () => ledger.firstAttemptDay(),
      takeLease: () => ledger.takeLease({ name: 'x', process: null }, 1, 1, () => false),
    }
    const code = await questions[question]().then(() => 'answered', (error) => error.code ?? error.message)
    console.log(code)
    process.exit()`

  const TEXT = "CAST(x'c328' AS TEXT)"

  test.each([
    ['in an entry', 'read', `UPDATE entries SET leaf = ${TEXT} WHERE seq = 7`],
    [
      'in the schema',
      'read',
      `PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = ${TEXT} WHERE name = 'lease'`,
    ],
    ['in the list of migrations', 'read', `UPDATE __drizzle_migrations SET hash = ${TEXT}`],
    ['in the reason of an attempt', 'attempts', `UPDATE attempts SET reason = ${TEXT}`],
    ['in the day of an attempt', 'firstAttemptDay', `UPDATE attempts SET as_of_day = ${TEXT}`],
    ['in the holder of the lease', 'takeLease', `UPDATE lease SET holder = ${TEXT}`],
    ['in the process that holds the lease', 'takeLease', `UPDATE lease SET process = ${TEXT}`],
  ])('%s is refused and does not end the process', async (_where, question, sql) => {
    const opened = await openLedger()
    const token = await fill(opened, sampleLedger())
    await opened.ledger.countAttempt('2026-03-01', 1, 1, token)
    await dropTriggers(opened.raw)
    await opened.raw.executeMultiple(sql)
    opened.close()
    const base = builtModule('adapters/libsql/database.js').replace('adapters/libsql/database.js', '')
    const asking = runScript(ASK, [base, opened.url, question])
    expect(await asking.line()).toBe('storage_damaged')
    expect(await asking.ended).toMatchObject({ code: 0, signal: null })
  })
})
