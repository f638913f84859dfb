import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openStaticTree } from '../../../src/adapters/objects/static-tree.ts'
import { DAMAGED, UNAVAILABLE } from '../../support/refusals.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { staticTreeContract } from './static-tree-contract.ts'

async function folderTree() {
  const path = await temporaryFolder()
  const tree = openStaticTree({ kind: 'file', path })
  onTestFinished(() => tree.close())
  return { path, tree }
}

staticTreeContract('a folder', async () => (await folderTree()).tree)

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

describe('a static tree in a folder', () => {
  test('all users may read new files and folders under a private umask', async () => {
    const { path, tree } = await folderTree()
    const umask = process.umask(0o077)
    onTestFinished(() => void process.umask(umask))
    await tree.put('tlog/year/tile/0/000.p/1', Uint8Array.of(1))
    await tree.replace('index.json', null, Uint8Array.of(2))
    expect(modeOf(join(path, 'tlog'))).toBe('755')
    expect(modeOf(join(path, 'tlog/year/tile/0/000.p'))).toBe('755')
    expect(modeOf(join(path, 'tlog/year/tile/0/000.p/1'))).toBe('444')
    expect(modeOf(join(path, 'index.json'))).toBe('444')
  })

  test('a missing folder is refused and is not created', async () => {
    const { path, tree } = await folderTree()
    rmSync(path, { recursive: true })
    await expect(tree.put('index.json', Uint8Array.of(1))).rejects.toMatchObject(UNAVAILABLE)
    await expect(tree.get('index.json')).rejects.toMatchObject(UNAVAILABLE)
  })

  test('a file in place of a folder is refused', async () => {
    const { path, tree } = await folderTree()
    writeFileSync(join(path, 'tlog'), '')
    await expect(tree.put('tlog/year/policy', Uint8Array.of(1))).rejects.toMatchObject(DAMAGED)
  })

  test('a path that is not in the layout is not written', async () => {
    const { path, tree } = await folderTree()
    await expect(tree.put('elsewhere', Uint8Array.of(1))).rejects.toThrow('an export has no file elsewhere')
    expect(readdirSync(path)).toEqual([])
  })

  test('unfinished files of killed writers are removed, those of running ones and of others stay', async () => {
    const { path, tree } = await folderTree()
    await tree.put('tlog/year/tile/0/000.p/1', Uint8Array.of(1))
    const killed = spawnSync(process.execPath, ['-e', '']).pid
    const lay = (folder: string, writer: number | string): string => {
      mkdirSync(join(path, folder), { recursive: true })
      const file = join(folder, `.writing-${writer}-1b671a64-40d5-491e-99b0-da01ff1f3341`)
      writeFileSync(join(path, file), 'half')
      return file
    }
    const old = lay('tlog', process.ppid)
    utimesSync(join(path, old), 0, 0)
    const removed = [lay('', killed), lay('objects/sha256/ab', killed), lay('objects', process.pid), old]
    const kept = [lay('tlog/year', process.ppid), lay('blog', killed)]
    await tree.removeUnfinished()
    expect(removed.filter((file) => existsSync(join(path, file)))).toEqual([])
    expect(kept.filter((file) => existsSync(join(path, file)))).toEqual(kept)
    expect(await tree.get('tlog/year/tile/0/000.p/1')).toEqual(Buffer.of(1))
  })

  test('a folder that is missing has nothing unfinished', async () => {
    const { path, tree } = await folderTree()
    rmSync(path, { recursive: true })
    expect(await tree.removeUnfinished()).toBeUndefined()
  })
})
