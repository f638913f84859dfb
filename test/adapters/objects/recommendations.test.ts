import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { fileArchive, openRecommendations } from '../../../src/adapters/objects/open.ts'
import { unstorageRecommendations } from '../../../src/adapters/objects/archive.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { DAMAGED, UNAVAILABLE } from '../../support/refusals.ts'
import { memoryObjects } from './memory-driver.ts'
import { recommendationsContract } from './recommendations-contract.ts'

const ready = (): Promise<void> => Promise.resolve()
const BYTES = new TextEncoder().encode('a run')

recommendationsContract('memory', () => {
  const objects = new Map<string, Uint8Array>()
  return Promise.resolve({
    store: unstorageRecommendations(memoryObjects(objects), ready),
    plant(path, bytes) {
      objects.set(path, bytes)
      return Promise.resolve()
    },
  })
})

recommendationsContract('files', async () => {
  const root = await temporaryFolder()
  return {
    store: openRecommendations({ kind: 'file', path: root }),
    async plant(key, bytes) {
      const path = join(root, key)
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, bytes)
    },
  }
})

test('in a folder stand beside the archive, which does not take them for its own, and leave no temporary file', async () => {
  const root = await temporaryFolder()
  const store = openRecommendations({ kind: 'file', path: root })
  await store.put('2026-08-22.v1', BYTES)
  await store.put('2026-08-22.v2', BYTES)
  const archive = fileArchive(root)
  expect([await archive.keys('sha256'), await archive.keys('heads')]).toEqual([[], []])
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    lstatSync(join(root, name)).isFile(),
  )
  expect(files.sort()).toEqual([
    'free-llm/current',
    'free-llm/runs/2026-08-22.v1',
    'free-llm/runs/2026-08-22.v2',
  ])
})

test('in a folder that is not there are unavailable, not absent, and create nothing', async () => {
  const root = await temporaryFolder()
  const store = openRecommendations({ kind: 'file', path: root })
  rmSync(root, { recursive: true })
  for (const asked of [() => store.current(), () => store.ping(), () => store.put('2026-08-22.v1', BYTES)])
    await expect(asked()).rejects.toMatchObject(UNAVAILABLE)
  expect(existsSync(root)).toBe(false)
})

test('are damaged where a folder stands in the place of the current one', async () => {
  const root = await temporaryFolder()
  mkdirSync(join(root, 'free-llm/current'), { recursive: true })
  const store = openRecommendations({ kind: 'file', path: root })
  await expect(store.current()).rejects.toMatchObject(DAMAGED)
  await expect(store.put('2026-08-22.v1', BYTES)).rejects.toMatchObject(DAMAGED)
})
