import { createClient } from '@libsql/client'
import type { Client } from '@libsql/client'
import { afterAll, onTestFinished } from 'vitest'
import { startScript } from '../../support/compiled-sources.ts'
import type { ScriptProcess } from '../../support/compiled-sources.ts'

/**
 * How a process can hold a database: `reading` lets others read but not commit, `writing` lets others read but not
 * write, `committing` keeps everybody out.
 */
export type Lock = 'reading' | 'writing' | 'committing'

/** Holds one lock after the other: a line of JSON takes one, the next line gives it back. */
const HOLDER = `
  import { createClient } from '@libsql/client'
  import { createInterface } from 'node:readline'
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  for (let line = await lines.next(); !line.done; line = await lines.next()) {
    const { url, lock, statements } = JSON.parse(line.value)
    const client = createClient({ url, timeout: 5000, concurrency: 1 })
    if (lock === 'committing') await client.execute('PRAGMA locking_mode = EXCLUSIVE')
    const transaction = await client.transaction(lock === 'reading' ? 'read' : 'write')
    await transaction.execute('SELECT count(*) FROM sqlite_schema')
    for (const statement of statements) await transaction.execute(statement)
    // In exclusive locking mode the lock of a commit stays with the connection.
    if (lock === 'committing') {
      await transaction.execute('PRAGMA user_version = 1')
      await transaction.commit()
    }
    console.log('held')
    await lines.next()
    if (lock === 'committing') {
      // The lock must not depend on when the driver closes the connection.
      await client.execute('PRAGMA locking_mode = NORMAL')
      await client.execute('SELECT count(*) FROM sqlite_schema')
    } else {
      await transaction.commit()
    }
    client.close()
    console.log('released')
  }`

let holder: ScriptProcess | null = null

afterAll(() => {
  holder?.kill()
  holder = null
})

/** A lock another process holds until `release` is called, at the latest until the test ends. */
export async function holdLock(
  url: string,
  lock: Lock,
  statements: readonly string[] = [],
): Promise<() => Promise<void>> {
  holder ??= startScript(HOLDER, [])
  const process = holder
  const exchange = async (line: string, answer: string): Promise<void> => {
    process.tell(line)
    if ((await process.line()) === answer) return
    holder = null
    process.kill()
    throw new Error(`the lock is not ${answer}: ${(await process.ended).errors}`)
  }
  let held = true
  const release = async (): Promise<void> => {
    if (!held) return
    held = false
    await exchange('release', 'released')
  }
  await exchange(JSON.stringify({ url, lock, statements }), 'held')
  onTestFinished(release)
  return release
}

/** A client of the test's own, past every adapter; closed when the test ends. */
export function rawClient(url: string): Client {
  const client = createClient({ url, timeout: 5_000, concurrency: 1 })
  onTestFinished(() => client.close())
  return client
}
