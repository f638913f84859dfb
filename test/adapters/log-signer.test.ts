import { chmodSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createLogKey, openLogSigner } from '../../src/adapters/log-signer.ts'
import type { Checkpoint } from '../../src/domain/year/log/signed-note.ts'
import { formatVerifierKey, openCheckpoint } from '../../src/domain/year/log/signed-note.ts'
import { LOG_SEED, LOG_SKEY, LOG_VKEY } from '../domain/year/log-vectors.ts'
import { DAMAGED, UNAVAILABLE } from '../support/refusals.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const NAME = 'dash.example/year'

/** An error of this code, and with these words. */
const refusal = (code: string, words = ''): Error =>
  expect.objectContaining({ code, detail: expect.stringContaining(words) as string }) as Error

const checkpointOf = (size: number, byte = size): Checkpoint => ({
  origin: NAME,
  size,
  root: new Uint8Array(32).fill(byte),
})

async function newKey(): Promise<{ path: string; record: string }> {
  const path = join(temporaryFolder(), 'log.key')
  expect(createLogKey(path, NAME, LOG_SEED)).toBe(LOG_VKEY)
  return { path, record: `${path}.signed` }
}

function replace(path: string, text: string): void {
  rmSync(path, { force: true })
  writeFileSync(path, text)
}

describe('log keys', () => {
  test("a new key file has the format of Go's note package, and its record has size 0", async () => {
    const { path } = await newKey()
    expect(readFileSync(path, 'utf8')).toBe(`${LOG_SKEY}\n`)
    expect(await openLogSigner(path).lastSigned()).toMatchObject({ origin: NAME, size: 0 })
  })

  test('a new key replaces no other key or record', async () => {
    const { path, record } = await newKey()
    const create = () => createLogKey(path, NAME, LOG_SEED)
    expect(create).toThrow(refusal('usage', 'already exists'))
    rmSync(path)
    expect(create).toThrow(refusal('usage', 'already exists'))
    expect(readFileSync(record, 'utf8')).toContain('\n0\n')
  })

  test.each(['', `${LOG_SKEY}\n${LOG_SKEY}\n`, 'PRIVATE+KEY+', LOG_VKEY, `${LOG_SKEY}\r\n`, null])(
    'a key file with the text %j, or none, is refused as a configuration error',
    async (text) => {
      const { path } = await newKey()
      rmSync(path)
      if (text !== null) writeFileSync(path, text)
      expect(() => openLogSigner(path)).toThrow(refusal('configuration'))
    },
  )
})

describe('signing', () => {
  test('a signer records its last checkpoint and reads it again after it is reopened', async () => {
    const { path, record } = await newKey()
    const note = await openLogSigner(path).sign(checkpointOf(3))
    expect(readFileSync(record, 'utf8')).toBe(note)
    const signer = openLogSigner(path)
    expect(openCheckpoint(note, [signer.key])).toMatchObject({ problem: null, checkpoint: { size: 3 } })
    expect(await signer.lastSigned()).toMatchObject({ size: 3 })
    expect(readdirSync(join(path, '..')).sort()).toEqual(['log.key', 'log.key.signed'])
  })

  test.each([
    ['smaller than', checkpointOf(2)],
    ['of the same size as, but different from,', checkpointOf(3, 9)],
  ])('a reopened signer refuses a tree %s the last one', async (_what, other) => {
    const { path, record } = await newKey()
    await openLogSigner(path).sign(checkpointOf(3))
    const before = readFileSync(record, 'utf8')
    await expect(openLogSigner(path).sign(other)).rejects.toMatchObject(DAMAGED)
    expect(readFileSync(record, 'utf8')).toBe(before)
  })

  test('a key that replaces another one signs beside it, continues its record, and signs alone later', async () => {
    const { path } = await newKey()
    const old = openLogSigner(path)
    await old.sign(checkpointOf(3))
    const next = join(path, '..', 'next.key')
    const vkey = createLogKey(next, NAME, new Uint8Array(32).fill(9), path)
    const both = openLogSigner(next)
    expect(await both.lastSigned()).toMatchObject({ size: 3 })
    await expect(both.sign(checkpointOf(2))).rejects.toMatchObject(DAMAGED)
    expect(both.keys.map(formatVerifierKey)).toEqual([vkey, LOG_VKEY])
    const note = await both.sign(checkpointOf(4))
    for (const key of [both.key, old.key])
      expect(openCheckpoint(note, [key])).toMatchObject({ problem: null, checkpoint: { size: 4 } })
    replace(next, readFileSync(next, 'utf8').split('\n')[0] ?? '')
    const alone = openLogSigner(next)
    expect(await alone.lastSigned()).toMatchObject({ size: 4 })
    const later = await alone.sign(checkpointOf(5))
    expect(openCheckpoint(later, [alone.key])).toMatchObject({ problem: null })
    expect(openCheckpoint(later, [old.key]).problem).not.toBeNull()
  })

  test('a key whose older key is removed before both have signed names the remedy', async () => {
    const { path } = await newKey()
    const next = join(path, '..', 'next.key')
    createLogKey(next, NAME, new Uint8Array(32).fill(9), path)
    replace(next, readFileSync(next, 'utf8').split('\n')[0] ?? '')
    const remedy = refusal('storage_damaged', "put that key's line back")
    await expect(openLogSigner(next).lastSigned()).rejects.toEqual(remedy)
  })

  test('a key replaces only a key of its own log', async () => {
    const { path } = await newKey()
    const next = join(path, '..', 'next.key')
    expect(() => createLogKey(next, 'other.example/log', LOG_SEED, path)).toThrow(refusal('usage'))
    expect(readdirSync(join(path, '..')).sort()).toEqual(['log.key', 'log.key.signed'])
  })

  test('a signer signs nothing if its record is missing', async () => {
    const { path, record } = await newKey()
    rmSync(record)
    const signer = openLogSigner(path)
    await expect(signer.lastSigned()).rejects.toMatchObject(UNAVAILABLE)
    await expect(signer.sign(checkpointOf(1))).rejects.toMatchObject(UNAVAILABLE)
    expect(readdirSync(join(path, '..'))).toEqual(['log.key'])
  })

  test('a signer signs nothing if its key did not sign the record', async () => {
    const { path, record } = await newKey()
    const signer = openLogSigner(path)
    const note = await signer.sign(checkpointOf(5))
    for (const text of ['', note.replace('\n5\n', '\n4\n'), note.slice(0, 40)]) {
      replace(record, text)
      await expect(signer.sign(checkpointOf(6))).rejects.toEqual(
        refusal('storage_damaged', 'keeping-the-key'),
      )
    }
  })

  test('a signer continues from a published checkpoint with other signatures', async () => {
    const { path, record } = await newKey()
    const signer = openLogSigner(path)
    const note = await signer.sign(checkpointOf(5))
    replace(record, `${note}— witness.example/w1 ${Buffer.alloc(76).toString('base64')}\n`)
    expect(await signer.lastSigned()).toMatchObject({ size: 5 })
    await expect(signer.sign(checkpointOf(4))).rejects.toMatchObject(DAMAGED)
  })

  test('a signer returns no note if its record cannot be written', async () => {
    if (process.getuid?.() === 0) return
    const { path } = await newKey()
    const signer = openLogSigner(path)
    chmodSync(join(path, '..'), 0o500)
    await expect(signer.sign(checkpointOf(1))).rejects.toMatchObject(UNAVAILABLE)
    chmodSync(join(path, '..'), 0o700)
    expect(await signer.lastSigned()).toMatchObject({ size: 0 })
  })

  test('a trial leaves nothing behind, and names the record if its folder cannot be written', async () => {
    const { path, record } = await newKey()
    const signer = openLogSigner(path)
    const folder = join(path, '..')
    const before = readdirSync(folder)
    await signer.tryWriting()
    expect(readdirSync(folder)).toEqual(before)
    rmSync(folder, { recursive: true })
    const problem = refusal('storage_unavailable', `the record ${record} cannot be written (ENOENT`)
    await expect(signer.tryWriting()).rejects.toEqual(problem)
  })
})
