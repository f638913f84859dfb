import { chmodSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import type { VerifyReport } from '../../src/jobs/archive/audit.ts'
import { dash, serve, temporaryFolder } from '../support/dash.ts'
import { stateOfFolder } from '../support/temporary-folder.ts'
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

/** Sets the modes of everything in a folder. */
function setModes(folder: string, file: number, directory: number): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? directory : file)
  chmodSync(folder, directory)
}

async function verify(data: string): Promise<{ code: number | null; report: VerifyReport; stderr: string }> {
  const { code, stdout, stderr } = await dash(['verify-archive', '--data-dir', data, '--json'], {
    boundByModes,
  })
  return { code, stderr, report: JSON.parse(stdout) as VerifyReport }
}

test('an audit needs no write permission, and changes nothing', async () => {
  const data = await publishedFolder()
  setModes(data, 0o444, 0o555)
  onTestFinished(() => setModes(data, 0o644, 0o755))
  const before = stateOfFolder(data)
  expect(await verify(data)).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^this audit was not recorded: .*\n$/) as string,
    report: { ok: true, complete: true, publications: 1, objects: 1, findings: [], recorded: false },
  })
  expect(stateOfFolder(data)).toEqual(before)
})
