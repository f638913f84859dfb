import { describe, expect, test } from 'vitest'
import { sampleLedger } from '../../domain/year/ledger-rows.ts'
import { builtModule, runScript } from '../../support/compiled-sources.ts'
import { dropTriggers, fill, openLedger } from './open-ledger.ts'

describe('a byte that is not UTF-8', () => {
  /** The driver ends the process on such a text: no error, no exit code of ours. */
  const ASK = `
    const [, base, url, question] = process.argv
    const { database } = await import(base + 'adapters/sqlite/database.js')
    const { migrationsOf } = await import(base + 'adapters/sqlite/migrate.js')
    const { libsqlLedger } = await import(base + 'adapters/ledger/ledger.js')
    const store = database({ location: { url, authToken: null }, store: 'ledger', migrationsFolder: migrationsOf('ledger'), nativeBusyMs: 10, retryMs: 1000 })
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
    ['in the list of migrations', 'read', `UPDATE migrations_ledger SET hash = ${TEXT}`],
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
    const base = builtModule('adapters/sqlite/database.js').replace('adapters/sqlite/database.js', '')
    const asking = runScript(ASK, [base, opened.url, question])
    expect(await asking.line()).toBe('storage_damaged')
    expect(await asking.ended).toMatchObject({ code: 0, signal: null })
  })
})
