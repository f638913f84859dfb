import { statSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Driver } from 'unstorage'
import { describe, expect, test, onTestFinished } from 'vitest'
import { yearReader } from '../../../src/adapters/ledger/ledger.ts'
import { immutableFiles } from '../../../src/adapters/objects/file-driver.ts'
import { unstorageObjects, openObjects, openStaticTree } from '../../../src/adapters/objects/objects.ts'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { chainOf, headAt, publication } from '../../domain/year/ledger-rows.ts'
import { DAMAGED } from '../../support/refusals.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { headOf, objectsContract } from './objects-contract.ts'
import { staticTreeContract } from './static-tree-contract.ts'

const ready = (): Promise<void> => Promise.resolve()
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

objectsContract('files', async () => {
  const root = temporaryFolder()
  return {
    objects: openObjects({ kind: 'file', path: root }),
    async plant(key, bytes) {
      const path = join(root, key)
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, bytes)
    },
  }
})

/** An engine that keeps nothing, and returns a given value for every read. */
const engineReading = (value: unknown): Driver => ({
  name: 'scripted',
  hasItem: () => value !== null,
  getItem: () => null,
  getItemRaw: () => value,
  setItemRaw: () => undefined,
  getKeys: () => [],
})

describe('an archive on any engine', () => {
  const digest = sha256Hex('x')

  test.each([
    ['other bytes', Uint8Array.of(1)],
    ['nothing', null],
  ])('the archive refuses a write that reads back as %s', async (_what, value) => {
    const objects = unstorageObjects(engineReading(value), ready)
    await expect(objects.put(digest, utf8('x'))).rejects.toMatchObject(DAMAGED)
  })

  test('the archive accepts a head with the same leaf that another run wrote meanwhile', async () => {
    const root = temporaryFolder()
    const other = openObjects({ kind: 'file', path: root })
    const driver = immutableFiles({ root, fileClock: Date.now })
    const setItemRaw: Driver['setItemRaw'] = async (...write) => {
      await other.putHead(headOf(1))
      return driver.setItemRaw?.(...write)
    }
    const objects = unstorageObjects({ ...driver, setItemRaw }, ready)
    await objects.putHead(headOf(1, { time: Date.UTC(2027, 0, 1) }))
    expect(await objects.newestHead()).toEqual(headOf(1))
  })

  test('the archive has no change token if its engine has none', async () => {
    const objects = unstorageObjects(engineReading(null), ready)
    expect(await objects.objectChangeToken(digest)).toBeNull()
    expect(await objects.headChangeToken(null)).toBeNull()
    expect(await objects.headChangeToken(headOf(1))).toBeNull()
  })
})

const ROWS = chainOf(
  Array.from({ length: 20 }, (_, day) => publication(`2026-03-${String(day + 1).padStart(2, '0')}`)),
)

/** A reader of a Year of `entries` entries and `heads` heads, to which `before` adds before each reading of the ledger. */
function yearOf(entries: number, heads: number, before: (reading: number) => number = () => 0) {
  let readings = 0
  let added = 0
  const ledger = {
    read: () => {
      readings += 1
      added += before(readings)
      return Promise.resolve({ rows: ROWS.slice(0, entries + added), legacy: [], founding: null })
    },
  }
  const newestHead = () => Promise.resolve(heads + added === 0 ? null : headAt(ROWS, heads + added))
  return { reader: yearReader(ledger, { newestHead }), readings: () => readings }
}

describe('a read of both ledgers and the head', () => {
  test.each([
    ['nothing', 0, 0, () => 0, [0, null, 1]],
    ['an entry without a head', 4, 3, () => 0, [4, 3, 1]],
    ['one publication between the head and the ledger', 2, 2, () => 1, [3, 2, 1]],
    ['several publications in between, twice', 2, 2, (reading: number) => (reading > 2 ? 0 : 3), [8, 8, 3]],
  ])('the read succeeds with %s', async (_what, entries, heads, before, expected) => {
    const { reader, readings } = yearOf(entries, heads, before)
    const { proved, head } = await reader.read()
    expect([proved.entries.length, head?.seq ?? null, readings()]).toEqual(expected)
  })

  test.each([
    ['two entries ahead of its head', 5, 3, () => 0, 1],
    ['that several publications change at each reading', 2, 2, () => 3, 5],
  ])('a ledger %s is refused', async (_what, entries, heads, before, expected) => {
    const { reader, readings } = yearOf(entries, heads, before)
    await expect(reader.read()).rejects.toMatchObject(DAMAGED)
    expect(readings()).toBe(expected)
  })
})

async function folderTree() {
  const path = temporaryFolder()
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
})
