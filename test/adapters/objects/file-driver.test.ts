import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createStorage } from 'unstorage'
import { describe, expect, test } from 'vitest'
import { immutableFiles } from '../../../src/adapters/objects/file-driver.ts'
import { fileObjects } from '../../../src/adapters/objects/objects.ts'
import { sha256Hex } from '../../../src/domain/digest.ts'
import type { Objects } from '../../../src/domain/year/ports.ts'
import { temporaryFolder, fileSystemClockMovedOn, laterClock } from '../../support/temporary-folder.ts'
import { DAMAGED, UNAVAILABLE } from '../../support/refusals.ts'
import { headOf } from './objects-contract.ts'

const BYTES = new TextEncoder().encode('{"an":"object"}')
const DIGEST = sha256Hex(BYTES)
const OTHER_BYTES = new TextEncoder().encode('{"an":"Object"}')

async function openRoot(): Promise<{ root: string; objects: Objects; path: string }> {
  const root = temporaryFolder()
  return { root, objects: fileObjects(root, laterClock), path: pathOf(root, DIGEST) }
}

function pathOf(root: string, digest: string): string {
  return join(root, 'sha256', digest.slice(0, 2), digest)
}

/** Every file below a folder, relative to it. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()
}

/** Replaces the object's file by something else. */
function inPlace(path: string, put: (path: string) => void): void {
  mkdirSync(dirname(path), { recursive: true })
  put(path)
}

/** Entries other than regular files in an object's place; each keeps the object's bytes if possible. */
const NOT_FILES: Record<string, (path: string) => void> = {
  'a folder': (path) => mkdirSync(path),
  'a link to the right bytes': (path) => {
    writeFileSync(`${path}-elsewhere`, BYTES)
    symlinkSync(`${path}-elsewhere`, path)
  },
  'a link to nothing': (path) => symlinkSync(`${path}-nowhere`, path),
  'a pipe nobody writes to': (path) => execFileSync('mkfifo', [path]),
}

describe('an archive in a folder', () => {
  test('the archive stores an object by its digest and a head as one line of JSON by its number, in read-only files', async () => {
    const { root, objects, path } = await openRoot()
    await objects.put(DIGEST, BYTES)
    await objects.putHead(headOf(12))
    expect(filesBelow(root)).toEqual(['heads/12', `sha256/${DIGEST.slice(0, 2)}/${DIGEST}`])
    expect(readFileSync(join(root, 'heads/12'), 'utf8')).toBe(
      `{"seq":12,"leaf":"${'a'.repeat(64)}","time":"2026-03-01T00:10:00.012Z"}\n`,
    )
    for (const file of [path, join(root, 'heads/12')]) expect(lstatSync(file).mode & 0o222).toBe(0)
  })

  test('the archive writes an object once, and leaves no temporary file behind after any write', async () => {
    const { root, objects, path } = await openRoot()
    await objects.put(DIGEST, BYTES)
    const { ino, mtimeMs } = lstatSync(path)
    await fileSystemClockMovedOn(path)
    await objects.put(DIGEST, BYTES)
    expect(lstatSync(path)).toMatchObject({ ino, mtimeMs })
    expect(filesBelow(root)).toEqual([path.slice(root.length + 1)])
    rmSync(path)
    writeFileSync(path, OTHER_BYTES)
    await expect(objects.put(DIGEST, BYTES)).rejects.toMatchObject(DAMAGED)
    expect(filesBelow(root)).toEqual([path.slice(root.length + 1)])
  })

  test('the archive ignores an unfinished file of a killed writer', async () => {
    const { root, objects } = await openRoot()
    await objects.putHead(headOf(1))
    writeFileSync(join(root, 'heads/.writing-1-x'), '{"seq":2')
    expect(await objects.newestHead()).toEqual(headOf(1))
    await objects.putHead(headOf(2))
    expect(await objects.newestHead()).toEqual(headOf(2))
    const keys = await createStorage({ driver: immutableFiles({ root, fileClock: laterClock }) }).getKeys(
      'heads',
    )
    expect(keys.sort()).toEqual(['heads:1', 'heads:2'])
  })

  test.each(Object.entries(NOT_FILES))(
    'the archive refuses %s in the place of an object',
    async (_what, put) => {
      const { root, objects, path } = await openRoot()
      inPlace(path, put)
      const before = lstatSync(path)
      const files = filesBelow(root)
      await expect(objects.get(DIGEST)).rejects.toMatchObject(DAMAGED)
      await expect(objects.get(DIGEST)).rejects.toThrow(`${path} is not `)
      await expect(objects.put(DIGEST, BYTES)).rejects.toMatchObject(DAMAGED)
      expect(lstatSync(path)).toMatchObject({ ino: before.ino, mode: before.mode })
      expect(filesBelow(root), 'nothing is written through a link').toEqual(files)
    },
  )

  test.each(['sha256', `sha256/${DIGEST.slice(0, 2)}`])(
    'the archive refuses reads and writes below a file called %s',
    async (name) => {
      const { root, objects } = await openRoot()
      inPlace(join(root, name), (path) => writeFileSync(path, 'not a folder'))
      await expect(objects.get(DIGEST)).rejects.toMatchObject(DAMAGED)
      await expect(objects.put(DIGEST, BYTES)).rejects.toMatchObject(DAMAGED)
      expect(filesBelow(root)).toEqual([name])
    },
  )

  test.each(Object.entries(NOT_FILES))(
    'the archive refuses %s in the place of the newest head',
    async (what, put) => {
      const { root, objects } = await openRoot()
      await objects.putHead(headOf(1))
      inPlace(join(root, 'heads/2'), put)
      await expect(objects.putHead(headOf(2))).rejects.toMatchObject(DAMAGED)
      // A folder is not listed: it can only hide a removed head, which the ledger reveals.
      if (what === 'a folder') expect(await objects.newestHead()).toEqual(headOf(1))
      else await expect(objects.newestHead()).rejects.toMatchObject(DAMAGED)
    },
  )

  test('the archive refuses a file over the size limit without reading it', async () => {
    const { objects, path } = await openRoot()
    inPlace(path, () => {
      writeFileSync(path, '')
      truncateSync(path, 64 * 1024 * 1024 + 1)
    })
    await expect(objects.get(DIGEST)).rejects.toMatchObject(DAMAGED)
  })
})

test.each(['missing', 'file', 'file/folder'])(
  'an archive without its folder is unavailable for every operation, and creates nothing: %s',
  async (place) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'file'), '')
    const objects = fileObjects(join(folder, place))
    for (const operation of [
      () => objects.get(DIGEST),
      () => objects.put(DIGEST, BYTES),
      () => objects.newestHead(),
      () => objects.putHead(headOf(1)),
      () => objects.ping(),
    ])
      await expect(operation(), String(operation)).rejects.toMatchObject(UNAVAILABLE)
    expect(readdirSync(folder)).toEqual(['file'])
  },
)

describe('a change token of the archive', () => {
  test('the change token changes when a missing object is added and when it is removed', async () => {
    const { objects, path } = await openRoot()
    const absent = await objects.objectChangeToken(DIGEST)
    await objects.put(DIGEST, BYTES)
    const present = await objects.objectChangeToken(DIGEST)
    expect(present).not.toBe(absent)
    rmSync(path)
    expect(await objects.objectChangeToken(DIGEST)).not.toBe(present)
  })

  test('the change token of the head changes when a newer head is added, and when the newest is edited in place', async () => {
    const { root, objects } = await openRoot()
    const none = await objects.headChangeToken(null)
    await objects.putHead(headOf(1))
    const first = await objects.headChangeToken(headOf(1))
    expect(first).not.toBe(none)
    expect(await objects.headChangeToken(headOf(1))).toBe(first)
    const path = join(root, 'heads/1')
    await fileSystemClockMovedOn(path)
    chmodSync(path, 0o644)
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('a', 'b'))
    const edited = await objects.headChangeToken(headOf(1))
    expect(edited).not.toBe(first)
    await fileSystemClockMovedOn(join(root, 'heads'))
    await objects.putHead(headOf(2))
    expect(await objects.headChangeToken(headOf(1))).not.toBe(edited)
  })
})
