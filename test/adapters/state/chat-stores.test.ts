import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { answerCacheContract } from './answer-cache-contract.ts'
import { admitted, claimOf, DAY, NOW } from './chat-claims.ts'
import { chatKeysContract } from './chat-keys-contract.ts'
import { chatLedgerContract } from './chat-ledger-contract.ts'
import { connectChat, chatInFile, connectEvaluations } from './open-chat.ts'

async function openFile() {
  const folder = temporaryFolder()
  const path = join(folder, 'state.db')
  const opened = connectChat(pathToFileURL(path).href)
  await opened.ledger.ping()
  let cuts = 0
  return {
    ...opened,
    path,
    /** Simulates a power cut that keeps only the first bytes of the log. */
    async cut(logBytes: number) {
      cuts += 1
      const copy = join(folder, `cut-${cuts}.db`)
      copyFileSync(path, copy)
      writeFileSync(`${copy}-wal`, readFileSync(`${path}-wal`).subarray(0, logBytes))
      return connectChat(pathToFileURL(copy).href)
    },
  }
}

test('a power cut within the log leaves whole transactions, correct totals and no damage', async () => {
  const { ledger, path, cut } = await openFile()
  await ledger.sweep(NOW, DAY)
  for (let turn = 1; turn <= 8; turn += 1) await ledger.settle(await admitted(ledger), turn, NOW)
  const size = statSync(`${path}-wal`).size
  const seen = new Set<number>()
  for (let part = 0; part <= 24; part += 1) {
    const { ledger: left, database } = await cut(Math.floor((size * part) / 24))
    const spent = await left.spending(DAY)
    const { rows } = await database.execute(
      `SELECT coalesce(sum(cost), 0) AS settled,
        coalesce(sum(CASE WHEN cost IS NULL THEN reserved END), 0) AS reserved FROM chat_turns`,
    )
    expect(spent).toEqual({ ...rows[0] })
    seen.add(spent.settled)
    expect(await left.admit(claimOf())).toMatchObject({ admitted: true })
  }
  expect(seen.size).toBeGreaterThan(4)
  expect(seen).toContain(36)
})

test('a long log is checkpointed by a sweep, once it has no reader', async () => {
  const { ledger, cache, database, path } = await openFile()
  const log = (): number => statSync(`${path}-wal`).size
  const text = 'x'.repeat(64 * 1024)
  while (log() < 33 * 1024 * 1024) await cache().put(`k${log()}`, { text, storedAt: NOW })
  const reader = createClient({ url: pathToFileURL(path).href })
  onTestFinished(() => reader.close())
  const reading = await reader.transaction('read')
  await reading.execute('SELECT count(*) FROM chat_turns')
  await admitted(ledger, { leaseMs: 1 })
  expect(await ledger.sweep(NOW + 1, DAY)).toBe(1)
  expect(log()).toBeGreaterThan(33 * 1024 * 1024)
  reading.close()
  await ledger.sweep(NOW + 1, DAY)
  expect(log()).toBe(0)
  const { rows } = await database.execute('PRAGMA busy_timeout')
  expect(rows[0]?.[0]).toBe(10)
  expect(await ledger.spending(DAY)).toEqual({ settled: 1_000, reserved: 0 })
})

test("an evaluation's writes beside the chat are durable at once, and visible to both", async () => {
  const { ledger, path, cut } = await openFile()
  await admitted(ledger)
  const { evaluations } = connectEvaluations(pathToFileURL(path).href)
  await evaluations.saveEndpoints([{ model: 'a/b:free', checkedAt: NOW, usable: true, latencyMs: null }])
  const left = await cut(statSync(`${path}-wal`).size)
  expect(await left.ledger.spending(DAY)).toEqual({ settled: 0, reserved: 1_000 })
  const { rows } = await left.database.execute('SELECT model FROM evaluation_endpoints')
  expect(rows).toHaveLength(1)
})

chatLedgerContract('a file', chatInFile)
answerCacheContract('a file', chatInFile)
chatKeysContract('a file', chatInFile)
