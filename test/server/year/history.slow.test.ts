import { chmodSync, copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@libsql/client'
import { describe, expect, test } from 'vitest'
import { addDays } from '../../../src/domain/time.ts'
import { openApp } from '../../support/api-client.ts'
import { requestHistory } from '../../support/contract-client.ts'
import type { ContractResponse } from '../../support/contract-client.ts'
import { changeFile } from '../../support/temporary-folder.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

const SECOND_DAY = addDays(AS_OF, 1)

/** A file clock ahead of the real one makes every proof settle at once, so that each test meets the memory. */
const settledClock = (): number => Date.now() + 60_000

async function settledWorkspace(): Promise<Workspace> {
  const workspace = await openWorkspace(settledClock)
  await workspace.feed.importSignals([...sampleSignals(), ...sampleSignals(SECOND_DAY)])
  return workspace
}

interface Scene {
  workspace: Workspace
  ask: () => Promise<ContractResponse>
  newestObject: string
}

/** Two publications, and an app that has already proved and kept the newest. */
async function warmScene(): Promise<Scene> {
  const workspace = await settledWorkspace()
  await publishDays(workspace, [AS_OF, SECOND_DAY])
  const app = openApp(workspace)
  const ask = (): Promise<ContractResponse> => requestHistory(app, '?sort=year')
  expect((await ask()).status).toBe(200)
  expect((await ask()).status).toBe(200)
  const sha256 = (await workspace.year.read()).proved.timeline.at(-1)?.manifest.sha256 ?? ''
  return { workspace, ask, newestObject: join(workspace.objectsPath, 'sha256', sha256.slice(0, 2), sha256) }
}

async function sql(path: string, ...statements: string[]): Promise<void> {
  const client = createClient({ url: `file:${path}` })
  for (const statement of statements) await client.execute(statement)
  client.close()
}

function rewrite(path: string, change: (bytes: Buffer) => Buffer): void {
  chmodSync(path, 0o644)
  changeFile(path, () => writeFileSync(path, change(readFileSync(path))))
}

const flipByte = (path: string, position: number): void =>
  rewrite(path, (bytes) => bytes.fill((bytes[position] ?? 0) ^ 1, position, position + 1))

describe('the next request notices that the object', () => {
  const damages: Record<string, (path: string) => void> = {
    'has a flipped bit': (path) => flipByte(path, 100),
    'is gone': (path) => rmSync(path),
  }
  test.each(Object.entries(damages))(
    'the next request notices that the object %s, and never gets the older publication',
    async (_name, damage) => {
      const { ask, newestObject } = await warmScene()
      damage(newestObject)
      expect((await ask()).error).toBe('year_history_archive_corrupt')
      expect((await ask()).error).toBe('year_history_archive_corrupt')
    },
  )

  test('the next request notices that the object was restored', async () => {
    const { ask, newestObject } = await warmScene()
    renameSync(newestObject, `${newestObject}.away`)
    expect((await ask()).error).toBe('year_history_archive_corrupt')
    renameSync(`${newestObject}.away`, newestObject)
    expect((await ask()).status).toBe(200)
  })
})

describe('the next request notices that the ledger', () => {
  const unlocked = ['DROP TRIGGER entries_no_update', 'DROP TRIGGER entries_no_delete']
  const changes: Record<string, string[]> = {
    'has an edited column': ['UPDATE entries SET generated_at = generated_at + 1 WHERE seq = 2'],
    'lost its last entry': ['DELETE FROM entries WHERE seq = 2'],
    'lacks its table': ['DROP TABLE entries'],
  }
  test.each(Object.entries(changes))('%s', async (_name, statements) => {
    const { ask, workspace } = await warmScene()
    await sql(workspace.ledgerPath, ...unlocked)
    expect((await ask()).status).toBe(200)
    await sql(workspace.ledgerPath, ...statements)
    expect((await ask()).error).toBe('year_history_archive_corrupt')
  })

  test('the next request notices that the ledger was rolled back to an older copy', async () => {
    const workspace = await settledWorkspace()
    await publishDays(workspace, [AS_OF])
    const copy = join(workspace.folder, 'older.db')
    copyFileSync(workspace.ledgerPath, copy)
    await publishDays(workspace, [SECOND_DAY])
    const app = openApp(workspace)
    expect((await requestHistory(app, '?sort=year')).status).toBe(200)
    renameSync(copy, workspace.ledgerPath)
    expect((await requestHistory(app, '?sort=year')).error).toBe('year_history_archive_corrupt')
  })

  test('the next request notices that the ledger is missing, and does not create a new one', async () => {
    const { ask, workspace } = await warmScene()
    rmSync(workspace.ledgerPath)
    expect((await ask()).error).toBe('year_history_storage_unavailable')
    expect((await ask()).error).toBe('year_history_storage_unavailable')
    expect(existsSync(workspace.ledgerPath)).toBe(false)
  })
})

describe('the next request notices that the heads', () => {
  test('the next request notices a newest head that was edited in place', async () => {
    const { ask, workspace } = await warmScene()
    flipByte(join(workspace.objectsPath, 'heads', '2'), 20)
    expect((await ask()).error).toBe('year_history_archive_corrupt')
  })

  test('an archive without its newest head, as after a crash between commit and head, is sound', async () => {
    const { ask, workspace } = await warmScene()
    rmSync(join(workspace.objectsPath, 'heads', '2'))
    expect((await ask()).status).toBe(200)
  })
})

test('a store whose folder is missing is unavailable, not corrupt', async () => {
  const { ask, workspace } = await warmScene()
  renameSync(workspace.objectsPath, `${workspace.objectsPath}.unmounted`)
  expect((await ask()).error).toBe('year_history_storage_unavailable')
})

test('the next request gets a new publication', async () => {
  const { ask, workspace } = await warmScene()
  const before = (await ask()).headers.get('etag')
  await publishDays(workspace, [addDays(AS_OF, 2)])
  const after = await ask()
  expect(after.status).toBe(200)
  expect(after.headers.get('etag')).not.toBe(before)
})

test('a new publication is served without waiting for its files to settle', async () => {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(sampleSignals())
  const app = openApp(workspace)
  expect((await requestHistory(app, '?sort=year')).error).toBe('year_history_not_found')
  await publishDays(workspace, [AS_OF])
  const responses = await Promise.all(Array.from({ length: 20 }, () => requestHistory(app, '?sort=year')))
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
})
