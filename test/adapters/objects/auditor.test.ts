import { execFileSync } from 'node:child_process'
import fs, {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { openObjectsAuditor } from '../../../src/adapters/auditors.ts'
import { openObjects } from '../../../src/adapters/objects/objects.ts'
import { sha256Hex } from '../../../src/domain/digest.ts'
import type { ObjectsAuditor } from '../../../src/domain/year/ports.ts'
import { OBJECT_MAX_BYTES } from '../../../src/domain/refusal.ts'
import { addDays } from '../../../src/domain/time.ts'
import { objectPath } from '../../../src/domain/year/examine.ts'
import type { ReadObject } from '../../../src/domain/year/examine.ts'
import type { Manifest } from '../../../src/domain/year/ledger.ts'
import { manifest } from '../../domain/year/ledger-rows.ts'
import { spyOnFiles, temporaryFolder } from '../../support/temporary-folder.ts'
import { readHeads } from '../../../src/jobs/archive/archives.ts'
import { UNAVAILABLE } from '../../support/refusals.ts'

/** Bytes of a given size at least, and a manifest with their digest. */
function smallObject(asOfDay: string, size = 0): { manifest: Manifest; bytes: Buffer } {
  const bytes = Buffer.from(asOfDay.padEnd(size, 'x'))
  return { manifest: manifest(asOfDay, { sha256: sha256Hex(bytes), byteSize: bytes.byteLength }), bytes }
}

interface Store {
  root: string
  manifests: Manifest[]
  auditor: ObjectsAuditor
  pathOf: (index: number) => string
}

/** Creates a store with one object a day; `sizeOf` returns the minimum size of each. */
async function openStore(count: number, sizeOf: (index: number) => number = () => 0): Promise<Store> {
  const root = temporaryFolder()
  const manifests = Array.from({ length: count }, (_, index) => {
    const { manifest: known, bytes } = smallObject(addDays('2020-01-01', index), sizeOf(index))
    const path = join(root, objectPath(known.sha256))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, bytes)
    return known
  })
  const location = { kind: 'file' as const, path: root }
  const pathOf = (index: number): string => join(root, objectPath(manifests[index]?.sha256 ?? ''))
  return { root, manifests, auditor: openObjectsAuditor(location, openObjects(location)), pathOf }
}

/**
 * Damages the first nine objects, each in another way, and puts a file where the folder of the last one's digest
 * belongs, which takes its neighbours with it.
 *
 * @returns the numbers of the objects of that folder
 */
function damage({ manifests, pathOf }: Store): number[] {
  const replace = (index: number, make: (path: string) => void): void => {
    rmSync(pathOf(index))
    make(pathOf(index))
  }
  replace(0, () => undefined)
  replace(1, (path) => mkdirSync(path))
  replace(2, (path) => symlinkSync(pathOf(41), path))
  replace(3, (path) => execFileSync('mkfifo', [path]))
  truncateSync(pathOf(4), (manifests[4]?.byteSize ?? 0) - 1)
  appendFileSync(pathOf(5), 'x')
  writeFileSync(pathOf(6), '')
  truncateSync(pathOf(7), OBJECT_MAX_BYTES + 1)
  writeFileSync(pathOf(8), 'x'.repeat(manifests[8]?.byteSize ?? 0))
  const folder = dirname(pathOf(manifests.length - 1))
  renameSync(folder, `${folder}-away`)
  writeFileSync(folder, '')
  return manifests.flatMap((_, index) => (dirname(pathOf(index)) === folder ? [index] : []))
}

/** Reads every object, in order of the manifests. */
function summaries({ auditor, manifests }: Store): Promise<ReadObject[]> {
  return Promise.all(manifests.map(({ sha256 }) => auditor.summarize(objectPath(sha256))))
}

const MANY = 60

test('objects of any size are read as they were sealed, and each damaged one is reported with its own problem', async () => {
  const sizes = [3_000_000, 0, 1_048_576, 1_048_575, 700]
  const store = await openStore(MANY, (index) => (index < 9 ? 0 : (sizes[index - 9] ?? 0)))
  const inFolder = damage(store)
  const found = await summaries(store)
  const size = store.manifests[4]?.byteSize ?? 0
  const others = 'something else'
  expect(found.slice(0, 9)).toMatchObject([
    { found: 'nothing' },
    { found: others, why: 'not a regular file' },
    { found: others, why: 'a symbolic link' },
    { found: others, why: 'not a regular file' },
    { byteSize: size - 1 },
    { byteSize: size + 1 },
    { byteSize: 0 },
    { found: others, why: `a file of ${OBJECT_MAX_BYTES + 1} bytes, larger than any object` },
    { found: 'bytes', sha256: sha256Hex('x'.repeat(size)) },
  ])
  for (const index of inFolder)
    expect(found[index]).toEqual({ found: others, why: 'not a regular file (ENOTDIR)' })
  const isSound = (_each: unknown, index: number): boolean => index > 8 && !inFolder.includes(index)
  const sealed = store.manifests.map(({ byteSize, sha256 }) => ({ found: 'bytes', byteSize, sha256 }))
  expect(found.filter(isSound)).toMatchObject(sealed.filter(isSound))
  expect(found.filter(isSound).length).toBeGreaterThan(40)
})

test('the objects are proved on request, which an envelope without a payload fails', async () => {
  const { auditor, manifests } = await openStore(MANY)
  for (const outcome of await Promise.all(manifests.map((known) => auditor.prove(known))))
    expect(outcome).toMatchObject({ found: 'bytes', problems: [{ code: 'envelope_invalid' }] })
})

test('the objects of a missing store are unavailable, not missing', async () => {
  const store = await openStore(MANY)
  renameSync(store.root, `${store.root}-away`)
  await expect(summaries(store)).rejects.toMatchObject(UNAVAILABLE)
  await expect(store.auditor.headFile('heads/1')).rejects.toMatchObject(UNAVAILABLE)
  renameSync(`${store.root}-away`, store.root)
})

test('a file that grows while it is read is never returned in part', async () => {
  const { root, auditor } = await openStore(0)
  writeFileSync(join(root, 'object'), Buffer.alloc(1024 * 1024 - 1, 'a'))
  for (const more of [1, 2, 700_000]) {
    spyOnFiles('readSync').mockImplementationOnce((...args: Parameters<typeof fs.readSync>) => {
      appendFileSync(join(root, 'object'), Buffer.alloc(more, 'b'))
      return fs.readSync(...args)
    })
    const why = 'read error: it grew while it was being read'
    expect(await auditor.summarize('object')).toEqual({ found: 'something else', why })
    truncateSync(join(root, 'object'), 1024 * 1024 - 1)
  }
})

test('each invalid head of a folder is reported and affects no other', async () => {
  const { root, auditor } = await openStore(1)
  const objects = openObjects({ kind: 'file', path: root })
  const heads = [1, 2, 3, 4, 10].map((seq) => ({ seq, leaf: String(seq).padStart(64, '0'), time: seq }))
  for (const head of heads) await objects.putHead(head)
  rmSync(join(root, 'heads', '2'))
  symlinkSync('1', join(root, 'heads', '2'))
  writeFileSync(join(root, 'heads', '3'), '{"seq":4}')
  writeFileSync(join(root, 'heads', '4'), '{"seq":1,"leaf":"' + '0'.repeat(64) + '","time":"x"}')
  writeFileSync(join(root, 'heads', '07'), '')
  mkdirSync(join(root, 'heads', '11'))
  expect(await readHeads(auditor)).toEqual([
    { path: 'heads/07', seq: 0, head: null },
    { path: 'heads/1', seq: 1, head: heads[0] },
    { path: 'heads/2', seq: 2, head: null },
    { path: 'heads/3', seq: 3, head: null },
    { path: 'heads/4', seq: 4, head: null },
    { path: 'heads/10', seq: 10, head: heads[4] },
    { path: 'heads/11', seq: 11, head: null },
  ])
})
