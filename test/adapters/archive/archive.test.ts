import { createStorage } from 'unstorage'
import type { Driver } from 'unstorage'
import { describe, expect, test } from 'vitest'
import { unstorageArchive } from '../../../src/adapters/archive/archive.ts'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { DAMAGED } from '../refusals.ts'
import { archiveContract, headOf } from './archive-contract.ts'

archiveContract("unstorage's memory driver", () => {
  const storage = createStorage()
  return Promise.resolve({
    archive: unstorageArchive(storage),
    plant: (key, bytes) => storage.setItemRaw(key, bytes),
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
    const archive = unstorageArchive(createStorage({ driver: engineReading(Uint8Array.of(1, 2).buffer) }))
    expect(await archive.get(digest)).toEqual(Uint8Array.of(1, 2))
  })

  test('throws the error an engine gives as a value', async () => {
    const failure = new Error('EIO: i/o error, read')
    const archive = unstorageArchive(createStorage({ driver: engineReading(failure) }))
    await expect(archive.get(digest)).rejects.toBe(failure)
  })

  test.each([
    ['a string', 'text'],
    ['an object', { a: 1 }],
    ['a number', 3],
    ['false', false],
  ])('throws when the engine gives %s for bytes', async (_what, value) => {
    const archive = unstorageArchive(createStorage({ driver: engineReading(value) }))
    await expect(archive.get(digest)).rejects.toThrow('instead of bytes')
  })

  test.each([
    ['other bytes', Uint8Array.of(1)],
    ['nothing', null],
  ])('refuses a write that reads back as %s', async (_what, value) => {
    const driver = { ...engineReading(value), setItemRaw: () => undefined }
    const archive = unstorageArchive(createStorage({ driver }))
    await expect(archive.put(digest, new TextEncoder().encode('x'))).rejects.toMatchObject(DAMAGED)
  })

  test('can prove nothing unchanged when the engine has no witness', async () => {
    const archive = unstorageArchive(createStorage())
    await archive.putHead(headOf(1))
    expect(await archive.objectWitness(digest)).toBeNull()
    expect(await archive.headWitness(null)).toBeNull()
    expect(await archive.headWitness(headOf(1))).toBeNull()
  })
})
