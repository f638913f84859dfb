import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@libsql/client'
import { expect, test } from 'vitest'
import { addDays } from '../../../src/domain/time.ts'
import { openApp } from '../../support/api-client.ts'
import { requestHistory } from '../contract-client.ts'
import type { ContractResponse } from '../contract-client.ts'
import { fileSystemClockMovedOn } from '../../support/temporary-folder.ts'
import {
  AS_OF,
  manifestsOf,
  objectFile,
  openWorkspace,
  publishDays,
  sampleSignals,
} from '../../support/workspace.ts'
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
  const newest = (await manifestsOf(workspace)).at(-1)
  return { workspace, ask, newestObject: objectFile(workspace, newest?.sha256) }
}

/** Changes a ledger as nothing but damage can. */
async function sql({ workspace }: Scene, statement: string): Promise<void> {
  const client = createClient({ url: `file:${workspace.ledgerPath}` })
  for (const each of ['DROP TRIGGER entries_no_update', 'DROP TRIGGER entries_no_delete', statement])
    await client.execute(each)
  client.close()
}

async function flipByte(path: string, position: number): Promise<void> {
  const bytes = readFileSync(path)
  await fileSystemClockMovedOn(path)
  chmodSync(path, 0o644)
  writeFileSync(path, bytes.with(position, (bytes[position] ?? 0) ^ 1))
}

const CORRUPT = 'year_history_archive_corrupt'
const UNAVAILABLE = 'year_history_storage_unavailable'

test.each<[what: string, change: (scene: Scene) => void | Promise<void>, error: string | null]>([
  ['an object with a flipped bit', ({ newestObject }) => flipByte(newestObject, 100), CORRUPT],
  ['a missing object', ({ newestObject }) => rmSync(newestObject), CORRUPT],
  [
    'an edited column of the ledger',
    (scene) => sql(scene, 'UPDATE entries SET generated_at = generated_at + 1 WHERE seq = 2'),
    CORRUPT,
  ],
  ['a ledger without its last entry', (scene) => sql(scene, 'DELETE FROM entries WHERE seq = 2'), CORRUPT],
  ['a missing ledger', ({ workspace }) => rmSync(workspace.ledgerPath), UNAVAILABLE],
  [
    'a head that was edited in place',
    ({ workspace }) => flipByte(join(workspace.objectsPath, 'heads', '2'), 20),
    CORRUPT,
  ],
  [
    'no damage in a missing newest head, as after a crash between commit and head',
    ({ workspace }) => rmSync(join(workspace.objectsPath, 'heads', '2')),
    null,
  ],
  [
    'a missing store',
    ({ workspace }) => renameSync(workspace.objectsPath, `${workspace.objectsPath}.unmounted`),
    UNAVAILABLE,
  ],
])('the next request notices %s, and never gets the older publication', async (_what, change, error) => {
  const scene = await warmScene()
  await change(scene)
  for (const _time of [1, 2]) expect((await scene.ask()).error).toBe(error)
})

test('the next request notices an object that was restored, and gets a new publication', async () => {
  const { ask, newestObject, workspace } = await warmScene()
  renameSync(newestObject, `${newestObject}.away`)
  expect((await ask()).error).toBe(CORRUPT)
  renameSync(`${newestObject}.away`, newestObject)
  const before = await ask()
  await publishDays(workspace, [addDays(AS_OF, 2)])
  const after = await ask()
  expect([before.status, after.status]).toEqual([200, 200])
  expect(after.headers.get('etag')).not.toBe(before.headers.get('etag'))
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
