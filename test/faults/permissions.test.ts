import { chmodSync, mkdirSync } from 'node:fs'
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
    ['publish-year'],
    ['publish-year', '--dry-run', '--allow-empty'],
    ['snapshot', '--data-dir', join(data, 'inside')],
    ['chat-key', 'list'],
    ['search', 'x'],
    ['reindex'],
  ]
  chmodSync(data, 0o000)
  const ends = await Promise.all(
    commands.map((command) => dash(['--data-dir', data, ...command], { boundByModes })),
  )
  chmodSync(data, 0o755)
  const told = { code: 74, stderr: expect.stringContaining(`this user cannot open ${data}`) as string }
  expect(ends).toMatchObject(commands.map(() => told))
})

test('a file that this user cannot look at is a bad file, and the other ones are imported', async () => {
  const folder = temporaryFolder()
  const closed = join(folder, 'closed')
  mkdirSync(closed, { mode: 0o000 })
  const stdin = storiesOf(lastCompleteDay(Date.now()), 5)
  const imported = ['import', 'signals', join(closed, 'day.ndjson'), '-', '--data-dir', join(folder, 'data')]
  expect(await dash(imported, { boundByModes, stdin })).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('5 inserted') as string,
    stderr: expect.stringContaining('day.ndjson: EACCES') as string,
  })
})
