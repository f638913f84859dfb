import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type * as OpenModule from '../../../src/adapters/objects/open.ts'
import { sha256Hex } from '../../../src/domain/digest.ts'
import type { Auditors } from '../../../src/domain/ports.ts'
import { OBJECT_MAX_BYTES } from '../../../src/domain/refusal.ts'
import { addDays, formatInstant } from '../../../src/domain/time.ts'
import { examineReadObject, objectPath } from '../../../src/domain/year/examine.ts'
import type { ObjectOutcome, ReadObject } from '../../../src/domain/year/examine.ts'
import type { Manifest } from '../../../src/domain/year/ledger.ts'
import { manifest } from '../../domain/year/ledger-rows.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { builtModule } from '../../support/compiled-sources.ts'
import { UNAVAILABLE } from '../../support/refusals.ts'

// The threads run the build, so the auditor that starts them does too.
const { openObjects, openObjectsAuditor } = (await import(
  builtModule('adapters/objects/open.js')
)) as typeof OpenModule

/** The bytes of a publication as small as its identity, or padded to a size, and its manifest. */
function smallObject(asOfDay: string, size = 0): { manifest: Manifest; bytes: Buffer } {
  const known = manifest(asOfDay)
  const envelopeOf = (padding: string): Buffer =>
    Buffer.from(
      JSON.stringify({
        schemaVersion: known.schemaVersion,
        kind: known.kind,
        publicationId: known.publicationId,
        algorithmVersion: known.algorithmVersion,
        asOfDay: known.asOfDay,
        generatedAt: formatInstant(known.generatedAt),
        windowStart: formatInstant(known.windowStart),
        windowEnd: formatInstant(known.windowEnd),
        coverage: {},
        feed: { padding },
        archivedAt: formatInstant(known.publishedAt),
      }),
    )
  const bytes = envelopeOf('x'.repeat(Math.max(0, size - envelopeOf('').byteLength)))
  return { manifest: { ...known, sha256: sha256Hex(bytes), byteSize: bytes.byteLength }, bytes }
}

interface Store {
  root: string
  manifests: Manifest[]
  auditor: Auditors['objects']
  pathOf: (index: number) => string
}

/** Creates a store with one object a day; `sizeOf` returns the minimum size of each. */
async function openStore(count: number, sizeOf: (index: number) => number = () => 0): Promise<Store> {
  const root = await temporaryFolder()
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

const NEVER = new AbortController().signal

/** Returns the outcome of every manifest, in order; each must occur once. */
async function outcomes(
  { auditor, manifests }: Store,
  jobs: number,
  examination: 'identity' | 'whole' = 'identity',
): Promise<ObjectOutcome[]> {
  const results: ObjectOutcome[] = []
  for await (const batch of auditor.examine(manifests, examination, jobs, NEVER)) {
    for (const { index, outcome } of batch) {
      expect(results[index], `object ${index} came twice`).toBeUndefined()
      results[index] = outcome
    }
  }
  expect(Object.keys(results)).toHaveLength(manifests.length)
  return results
}

function threadsOfThisProcess(): number {
  return readdirSync('/proc/self/task').length
}

/** Aborts a reading after its first batch. */
async function expectGivenUp(
  read: (signal: AbortSignal) => AsyncIterable<readonly unknown[]> | readonly never[],
): Promise<void> {
  const stopping = new AbortController()
  const reason = new Error('enough')
  const reading = async (): Promise<void> => {
    for await (const batch of read(stopping.signal)) {
      expect(batch.length).toBeGreaterThan(0)
      stopping.abort(reason)
    }
  }
  await expect(reading()).rejects.toBe(reason)
}

const isLinux = existsSync('/proc/self/task')

/** As many as start threads, and some more. */
const MANY = 150

describe.each([
  ['in one thread', 1],
  ['in several threads', 3],
])('the objects of a folder, examined %s', (_how, jobs) => {
  test('the objects are all found intact, in any order of sizes', async () => {
    const sizes = [3_000_000, 0, 1_048_576, 1_048_575, 700, 2_000_000, 0]
    const store = await openStore(MANY, (index) => (index < 21 ? (sizes[index % sizes.length] ?? 0) : 0))
    const found = await outcomes(store, jobs)
    expect(found).toEqual(store.manifests.map(({ byteSize }) => ({ found: 'bytes', byteSize, problems: [] })))
  })

  test('each damaged object is reported with its own problem', async () => {
    const store = await openStore(MANY)
    const inFolder = damage(store)
    const found = await outcomes(store, jobs)
    const size = store.manifests[4]?.byteSize ?? 0
    const others = 'something else'
    expect(found.slice(0, 9)).toMatchObject([
      { found: 'nothing' },
      { found: others, why: 'not a regular file' },
      { found: others, why: 'a symbolic link' },
      { found: others, why: 'not a regular file' },
      {
        byteSize: size - 1,
        problems: [{ code: 'size_mismatch', expected: size, actual: size - 1 }, { code: 'digest_mismatch' }],
      },
      {
        byteSize: (store.manifests[5]?.byteSize ?? 0) + 1,
        problems: [{ code: 'size_mismatch' }, { code: 'digest_mismatch' }],
      },
      { byteSize: 0, problems: [{ actual: 0 }, { code: 'digest_mismatch' }] },
      { found: others, why: `a file of ${OBJECT_MAX_BYTES + 1} bytes, larger than any object` },
      { found: 'bytes', problems: [{ code: 'digest_mismatch' }] },
    ])
    for (const index of inFolder)
      expect(found[index]).toEqual({ found: others, why: 'not a regular file (ENOTDIR)' })
    const sound = found.filter((_, index) => index > 8 && !inFolder.includes(index))
    expect(sound.length).toBeGreaterThan(120)
    for (const outcome of sound) expect(outcome).toMatchObject({ found: 'bytes', problems: [] })
  })

  test('the objects are checked completely on request, which an envelope without a payload fails', async () => {
    const store = await openStore(MANY)
    const found = await outcomes(store, jobs, 'whole')
    for (const outcome of found)
      expect(outcome).toMatchObject({ found: 'bytes', problems: [{ code: 'envelope_invalid' }] })
  })

  test('the objects of a missing store are unavailable, not missing', async () => {
    const store = await openStore(MANY)
    renameSync(store.root, `${store.root}-away`)
    await expect(outcomes(store, jobs)).rejects.toMatchObject(UNAVAILABLE)
    renameSync(`${store.root}-away`, store.root)
  })

  test('the objects of a store that disappears during the examination are unavailable, not missing', async () => {
    const store = await openStore(MANY)
    // One of each batch: threads may have read all others before the store disappears.
    const isMissing = (index: number): boolean => index % 16 === 5
    for (const index of store.manifests.keys()) if (isMissing(index)) rmSync(store.pathOf(index))
    const examining = async (): Promise<void> => {
      for await (const batch of store.auditor.examine(store.manifests, 'identity', jobs, NEVER)) {
        for (const { index, outcome } of batch)
          expect(outcome.found).toBe(isMissing(index) ? 'nothing' : 'bytes')
        if (existsSync(store.root)) renameSync(store.root, `${store.root}-away`)
      }
    }
    await expect(examining()).rejects.toMatchObject(UNAVAILABLE)
    renameSync(`${store.root}-away`, store.root)
  })

  test.runIf(isLinux)('the examination leaves no thread behind, at its end and after an abort', async () => {
    const store = await openStore(MANY)
    const before = threadsOfThisProcess()
    await outcomes(store, jobs)
    await expectGivenUp((signal) => store.auditor.examine(store.manifests, 'identity', jobs, signal))
    expect(await sizeOfFirstBatch(store, jobs)).toBeGreaterThan(0)
    expect(threadsOfThisProcess()).toBeLessThanOrEqual(before)
  })
})

/** Returns the objects read ahead, by key; each must occur once. */
async function seenAhead({ auditor }: Store, jobs = 2): Promise<Map<string, ReadObject>> {
  const ahead = auditor.readAhead(jobs)
  if (ahead === null) throw new Error('nothing is read ahead')
  const found = new Map<string, ReadObject>()
  try {
    for await (const batch of ahead.objects(NEVER)) {
      for (const { key, seen } of batch) {
        expect(found.has(key), `${key} came twice`).toBe(false)
        found.set(key, seen)
      }
    }
  } finally {
    await ahead.close()
  }
  return found
}

/** Enough that their folders are worth reading ahead. */
const SPREAD = 250

describe('the objects of a folder, read ahead', () => {
  test('the objects read ahead are all seen as they were sealed', async () => {
    const store = await openStore(SPREAD, (index) => (index < 3 ? 1_500_000 : 0))
    const found = await seenAhead(store)
    expect(found.size).toBe(SPREAD)
    for (const known of store.manifests) {
      const seen = found.get(objectPath(known.sha256))
      expect(seen && examineReadObject(known, seen)).toEqual({
        found: 'bytes',
        byteSize: known.byteSize,
        problems: [],
      })
    }
  })

  test('damaged objects read ahead are reported as with their manifests, or left to be examined with them', async () => {
    const store = await openStore(SPREAD)
    const inFolder = damage(store)
    const found = await seenAhead(store)
    const examined = await outcomes(store, 1)
    let batches = 0
    for (const [index, known] of store.manifests.entries()) {
      const seen = found.get(objectPath(known.sha256))
      if (seen === undefined) continue
      batches += 1
      expect(examineReadObject(known, seen), `object ${index}`).toEqual(examined[index])
    }
    expect(batches).toBe(SPREAD - 1 - inFolder.length)
    expect(existsSync(join(store.root, 'sha256'))).toBe(true)
  })

  test('files whose names cannot be objects are not opened', async () => {
    const store = await openStore(SPREAD)
    const folder = dirname(store.pathOf(0))
    const digits = folder.slice(-2)
    const names = [
      'notes.txt',
      `.writing-1-${'a'.repeat(8)}`,
      digits === 'ff' ? '00'.repeat(32) : 'ff'.repeat(32),
    ]
    for (const name of names) writeFileSync(join(folder, name), 'x')
    mkdirSync(join(store.root, 'sha256', 'other'))
    writeFileSync(join(store.root, 'sha256', 'other', 'b'.repeat(64)), 'x')
    const orphan = objectPath(`${digits}${'0'.repeat(62)}`)
    writeFileSync(join(store.root, orphan), 'x')
    const found = await seenAhead(store)
    expect([...found.keys()].sort()).toEqual(
      [...store.manifests.map(({ sha256 }) => objectPath(sha256)), orphan].sort(),
    )
  })

  test('nothing is read ahead for few objects, for one thread, and without a folder of objects', async () => {
    const few = await openStore(20)
    expect(few.auditor.readAhead(2)).toBeNull()
    expect((await openStore(SPREAD)).auditor.readAhead(1)).toBeNull()
    expect((await openStore(0)).auditor.readAhead(2)).toBeNull()
  })

  test.runIf(isLinux)(
    'reading ahead leaves no thread behind, at its end, after an abort, and if it is never started',
    async () => {
      const store = await openStore(SPREAD)
      const before = threadsOfThisProcess()
      await seenAhead(store)
      const ahead = store.auditor.readAhead(2)
      await expectGivenUp((signal) => ahead?.objects(signal) ?? [])
      await ahead?.close()
      await store.auditor.readAhead(2)?.close()
      expect(threadsOfThisProcess()).toBeLessThanOrEqual(before)
    },
  )
})

/** Stops after one batch, like a failing reader. */
async function sizeOfFirstBatch({ auditor, manifests }: Store, jobs: number): Promise<number> {
  for await (const batch of auditor.examine(manifests, 'identity', jobs, NEVER)) return batch.length
  return 0
}

describe('the heads of a folder', () => {
  test('the heads of a store that disappears after the listing are unavailable, not damaged', async () => {
    const { root } = await openStore(1)
    const location = { kind: 'file' as const, path: root }
    const objects = openObjects(location)
    await objects.putHead({ seq: 1, leaf: '1'.repeat(64), time: 1 })
    const keys = async (area: 'sha256' | 'heads'): Promise<string[]> => {
      const listed = await objects.keys(area)
      renameSync(root, `${root}-away`)
      return listed
    }
    const auditor = openObjectsAuditor(location, { ...objects, keys })
    await expect(auditor.heads()).rejects.toMatchObject(UNAVAILABLE)
    renameSync(`${root}-away`, root)
  })

  test('each invalid head is reported and affects no other', async () => {
    const { root, auditor } = await openStore(1)
    const objects = openObjects({ kind: 'file', path: root })
    const heads = [1, 2, 3, 4, 10].map((seq) => ({ seq, leaf: String(seq).padStart(64, '0'), time: seq }))
    for (const head of heads) await objects.putHead(head)
    rmSync(join(root, 'heads', '2'))
    symlinkSync('1', join(root, 'heads', '2'))
    writeFileSync(join(root, 'heads', '3'), '{"seq":4}')
    writeFileSync(join(root, 'heads', '4'), '{"seq":1,"leaf":"' + '0'.repeat(64) + '","time":"x"}')
    writeFileSync(join(root, 'heads', '07'), '')
    expect(await auditor.heads()).toEqual([
      { path: 'heads/07', seq: 0, head: null },
      { path: 'heads/1', seq: 1, head: heads[0] },
      { path: 'heads/2', seq: 2, head: null },
      { path: 'heads/3', seq: 3, head: null },
      { path: 'heads/4', seq: 4, head: null },
      { path: 'heads/10', seq: 10, head: heads[4] },
    ])
  })
})
