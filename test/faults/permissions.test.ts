import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import { dash, serve, temporaryFolder } from '../support/dash.ts'
import { storiesOf } from '../support/signals.ts'

const boundByModes = true

async function publishedFolder(): Promise<string> {
  const data = join(temporaryFolder(), 'data')
  const stdin = storiesOf(lastCompleteDay(Date.now()), 5)
  expect((await dash(['import', 'signals', '-', '--data-dir', data], { stdin })).code).toBe(0)
  expect((await dash(['publish-year', '--data-dir', data])).code).toBe(0)
  return data
}

test('a server refuses history while it cannot read its stores, and serves it again when it can', async () => {
  const data = await publishedFolder()
  const { url } = await serve(['--data-dir', data], { boundByModes })
  const ask = (): Promise<Response> => fetch(`${url}/api/feed/history?sort=year`)
  expect((await ask()).status).toBe(200)
  for (const forbidden of [data, join(data, 'objects'), join(data, 'objects', 'heads')]) {
    chmodSync(forbidden, 0o000)
    const refused = await ask()
    chmodSync(forbidden, 0o755)
    expect([refused.status, await refused.json()]).toMatchObject([
      503,
      { error: 'year_history_storage_unavailable' },
    ])
    expect((await ask()).status).toBe(200)
  }
})

test('a folder that this user cannot open does not count as empty', async () => {
  const data = await publishedFolder()
  const commands = [
    ['publish-year', '--dry-run', '--allow-empty'],
    ['chat-key', 'list'],
    ['search', 'x'],
    ['reindex'],
  ]
  chmodSync(data, 0o000)
  const ends = await Promise.all(
    commands.map((command) => dash([...command, '--data-dir', data], { boundByModes })),
  )
  chmodSync(data, 0o755)
  const told = { code: 74, stderr: expect.stringContaining(`this user cannot open ${data}`) as string }
  expect(ends).toMatchObject(commands.map(() => told))
})
