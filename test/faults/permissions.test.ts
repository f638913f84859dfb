import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lastCompleteDay } from '../../src/domain/year/window.ts'
import { dash, serve, temporaryFolder } from '../support/dash.ts'
import { storiesOf } from '../support/ndjson.ts'

const boundByModes = true

test('an unwritable data folder is a storage error that names the file', async () => {
  const data = join(temporaryFolder(), 'data')
  mkdirSync(join(data, 'objects'), { recursive: true })
  chmodSync(data, 0o555)
  const { code, stderr } = await dash(['publish-year', '--data-dir', data], { boundByModes })
  expect([code, stderr]).toEqual([74, expect.stringContaining('ledger.db')])
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
})

test('a server refuses history while it may not read its stores, and answers again when it may', async () => {
  const data = join(temporaryFolder(), 'data')
  const stdin = storiesOf(lastCompleteDay(Date.now()), 5)
  expect((await dash(['import', 'signals', '-', '--data-dir', data], { stdin })).code).toBe(0)
  expect((await dash(['publish-year', '--data-dir', data])).code).toBe(0)
  const { url } = await serve(['--data-dir', data], { boundByModes })
  const ask = (): Promise<Response> => fetch(`${url}/api/feed/history?sort=year`)
  expect((await ask()).status).toBe(200)
  for (const forbidden of [data, join(data, 'objects'), join(data, 'objects', 'heads')]) {
    chmodSync(forbidden, 0o000)
    const refused = await ask()
    chmodSync(forbidden, 0o755)
    expect([refused.status, await refused.json()]).toEqual([
      503,
      { error: 'year_history_storage_unavailable' },
    ])
    expect((await ask()).status).toBe(200)
  }
})
