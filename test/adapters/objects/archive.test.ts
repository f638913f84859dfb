import type { Driver } from 'unstorage'
import { describe, expect, test } from 'vitest'
import { unstorageArchive } from '../../../src/adapters/objects/archive.ts'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { DAMAGED } from '../../support/refusals.ts'
import { archiveContract, headOf } from './archive-contract.ts'
import { memoryObjects } from './memory-driver.ts'

const ready = (): Promise<void> => Promise.resolve()

archiveContract('memory', () => {
  const objects = new Map<string, Uint8Array>()
  return Promise.resolve({
    archive: unstorageArchive(memoryObjects(objects), ready),
    plant(path, bytes) {
      objects.set(path, bytes)
      return Promise.resolve()
    },
  })
})

/** An engine that reads whatever it is told to, as unstorage's own drivers do. */
function engineReading(value: unknown): Driver {
  return {
    name: 'scripted',
    hasItem: () => true,
    getItem: () => null,
    getItemRaw: () => value,
    getKeys: () => [],
  }
}

describe('an archive on any engine', () => {
  const digest = sha256Hex('x')

  test('takes an ArrayBuffer for bytes', async () => {
    const archive = unstorageArchive(engineReading(Uint8Array.of(1, 2).buffer), ready)
    expect(await archive.get(digest)).toEqual(Uint8Array.of(1, 2))
  })

  test('throws the error an engine gives as a value', async () => {
    const failure = new Error('EIO: i/o error, read')
    const archive = unstorageArchive(engineReading(failure), ready)
    await expect(archive.get(digest)).rejects.toBe(failure)
  })

  test.each([
    ['a string', 'text'],
    ['an object', { a: 1 }],
    ['a number', 3],
    ['false', false],
  ])('throws when the engine gives %s for bytes', async (_what, value) => {
    const archive = unstorageArchive(engineReading(value), ready)
    await expect(archive.get(digest)).rejects.toThrow('instead of bytes')
  })

  test.each([
    ['other bytes', Uint8Array.of(1)],
    ['nothing', null],
  ])('refuses a write that reads back as %s', async (_what, value) => {
    const driver = { ...engineReading(value), setItemRaw: () => undefined }
    const archive = unstorageArchive(driver, ready)
    await expect(archive.put(digest, new TextEncoder().encode('x'))).rejects.toMatchObject(DAMAGED)
  })

  test('is asked whether it can be trusted before anything is written to it', async () => {
    const objects = new Map<string, Uint8Array>()
    const refusal = new Error('not to be trusted')
    const archive = unstorageArchive(memoryObjects(objects), () => Promise.reject(refusal))
    await expect(archive.prepare()).rejects.toBe(refusal)
    await expect(archive.put(digest, new TextEncoder().encode('x'))).rejects.toBe(refusal)
    await expect(archive.putHead(headOf(1))).rejects.toBe(refusal)
    expect(objects.size).toBe(0)
  })

  test('takes a head another run wrote in between with the same leaf for its own', async () => {
    const objects = new Map<string, Uint8Array>()
    const driver = memoryObjects(objects)
    const other = unstorageArchive(memoryObjects(objects), ready)
    const archive = unstorageArchive(driver, () => other.putHead(headOf(1)))
    await archive.putHead(headOf(1, { time: Date.UTC(2027, 0, 1) }))
    expect(await archive.newestHead()).toEqual(headOf(1))
  })

  test('can prove nothing unchanged when the engine has no witness', async () => {
    const archive = unstorageArchive(memoryObjects(new Map()), ready)
    await archive.putHead(headOf(1))
    expect(await archive.objectWitness(digest)).toBeNull()
    expect(await archive.headWitness(null)).toBeNull()
    expect(await archive.headWitness(headOf(1))).toBeNull()
  })
})
