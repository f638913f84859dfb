import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
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
})
