import { describe, expect, test } from 'vitest'
import { sampleLedger } from '../../domain/year/ledger-rows.ts'
import { LAST, next } from './ledger-contract.ts'
import { holdLock } from '../sqlite/lock-holder.ts'
import { appendNow, fill, openLedger, dropTriggers } from './open-ledger.ts'
import { builtModule, runScript } from '../../support/compiled-sources.ts'

describe('a ledger file locked by another process', () => {
  test('an append is given up if a reader delays the commit past the deadline', async () => {
    const opened = await openLedger()
    const token = await fill(opened, { legacy: [], rows: [LAST] })
    const release = await holdLock(opened.url, 'reading')
    const row = next()
    const clock = (): number => row.recordedAt
    expect(await opened.ledger.append(row, { token, clock, withinMs: 200 })).toBe('too-late')
    await release()
    expect((await opened.ledger.read()).rows).toEqual([LAST])
    expect(await appendNow(opened.ledger, row, token)).toBeNull()
  })
})

describe('a byte that is not UTF-8', () => {
  /** The driver ends the process on such a text, without an error or an exit code of this program. */
  const QUERY_SCRIPT = `
    const [, base, url, question] = process.argv
    const { database } = await import(base + 'adapters/sqlite/database.js')
    const { libsqlLedger } = await import(base + 'adapters/ledger/ledger.js')
    const store = database({ location: { url, authToken: null }, store: 'ledger', nativeBusyMs: 10, retryMs: 1000 })
    const ledger = libsqlLedger(store)
    const questions = {
      read: () => ledger.read(),
      attempts: () => ledger.attempts(),
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
    ['in the day of an attempt', 'attempts', `UPDATE attempts SET as_of_day = ${TEXT}`],
    ['in the holder of the lease', 'takeLease', `UPDATE lease SET holder = ${TEXT}`],
    ['in the process that holds the lease', 'takeLease', `UPDATE lease SET process = ${TEXT}`],
  ])('invalid UTF-8 %s is refused and does not end the process', async (_where, question, sql) => {
    const opened = await openLedger()
    const token = await fill(opened, sampleLedger())
    await opened.ledger.countAttempt('2026-03-01', 1, 1, token)
    await dropTriggers(opened.raw)
    await opened.raw.executeMultiple(sql)
    opened.close()
    const base = builtModule('adapters/sqlite/database.js').replace('adapters/sqlite/database.js', '')
    const query = runScript(QUERY_SCRIPT, [base, opened.url, question])
    expect(await query.line()).toBe('storage_damaged')
    expect(await query.ended).toMatchObject({ code: 0, signal: null })
  })
})
