import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { sampleLedger } from '../../domain/year/ledger-rows.ts'
import { fileSystemClockMovedOn, laterClock } from '../../support/temporary-folder.ts'
import { LAST, LEDGER_CONTRACTS, next } from './ledger-contract.ts'
import { anyLease, appendNow, dropTriggers, fill, leaseOf, openLedger } from './open-ledger.ts'
import { holdLock } from '../sqlite/lock-holder.ts'
import type { Ledger } from '../../../src/domain/year/ports.ts'
import { DAMAGED } from '../../support/refusals.ts'

for (const contract of LEDGER_CONTRACTS) contract('a file', openLedger)

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

const TEXT = "CAST(x'c328' AS TEXT)"

// The driver would end the process on such a text, without an error.
test.each<[string, string, (ledger: Ledger) => Promise<unknown>]>([
  ['schema', `sqlite_schema SET sql = ${TEXT} WHERE name = 'lease'`, (ledger) => ledger.read()],
  ['list of migrations', `migrations_ledger SET hash = ${TEXT}`, (ledger) => ledger.read()],
  ['reason of an attempt', `attempts SET reason = ${TEXT}`, (ledger) => ledger.attempts()],
  ['day of an attempt', `attempts SET as_of_day = ${TEXT}`, (ledger) => ledger.attempts()],
  ['holder of the lease', `lease SET holder = ${TEXT}`, (ledger) => leaseOf(ledger, 1, 1)],
  ['process that holds the lease', `lease SET process = ${TEXT}`, (ledger) => leaseOf(ledger, 1, 1)],
])('invalid UTF-8 in the %s is refused', async (_where, change, use) => {
  const opened = await openLedger()
  const token = await fill(opened, sampleLedger())
  await opened.ledger.countAttempt('2026-03-01', 1, 1, token)
  await dropTriggers(opened.raw)
  await opened.raw.executeMultiple(`PRAGMA writable_schema = ON; UPDATE ${change}`)
  opened.close()
  await expect(use(opened.another().ledger)).rejects.toMatchObject(DAMAGED)
})

test('the change token changes after every kind of write, by any writer, and after no read', async () => {
  const opened = await openLedger(laterClock)
  const { ledger, path } = opened
  let token = await fill(opened, { legacy: [], rows: [LAST] })
  const other = opened.another().ledger
  const writes: [string, () => Promise<unknown>][] = [
    ['a lease given back', () => ledger.releaseLease(token)],
    ['a lease taken', async () => (token = await anyLease(other))],
    ['a lease renewed', () => ledger.renewLease(token, 10, 1_000_000_000_000_000)],
    ['an attempt counted', () => other.countAttempt('2026-03-02', 1, 20, token)],
    ['an attempt ended', () => ledger.failAttempt('2026-03-02', 1, 30, 'x')],
    ['an entry appended', () => appendNow(other, next(), token)],
  ]
  for (const [what, write] of writes) {
    const before = await ledger.changeToken()
    await fileSystemClockMovedOn(path)
    await write()
    expect(before, what).not.toBeNull()
    const after = await ledger.changeToken()
    expect(after, what).not.toBe(before)
    await Promise.all([ledger.read(), ledger.ping(), ledger.attempts('2026-03-01'), other.read()])
    expect(await ledger.changeToken(), what).toBe(after)
  }
  expect((await ledger.read()).rows).toHaveLength(2)
})

test.each(['-journal', '-wal'])('the change token is null while a file %s is left', async (suffix) => {
  const opened = await openLedger(laterClock)
  await fill(opened, { legacy: [], rows: [LAST] })
  writeFileSync(`${opened.path}${suffix}`, '')
  expect(await opened.ledger.changeToken()).toBeNull()
})
