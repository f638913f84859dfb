import { createPublicKey } from 'node:crypto'
import { verifyCheckpoint } from '@sigstore/verify/dist/tlog/checkpoint.js'
import { verifyMerkleInclusion } from '@sigstore/verify/dist/tlog/merkle.js'
import { beforeEach, describe, expect, test } from 'vitest'
import { ARCHIVES, dayAt, proofFiles, signedArchive } from './archives.ts'
import { flipped, problemOf } from './changed-bits.ts'

/** The parts of a proof file that Sigstore checks. */
interface Parts {
  entry: Buffer
  index: string
  hashes: Buffer[]
  /** Signed text of the checkpoint. */
  text: Buffer
  /** Name of the log's key, as the signature line states it. */
  name: string
  /** Key id and signature. */
  signature: Buffer
}

const decode = (encoded = ''): Buffer => Buffer.from(encoded, 'base64')

function partsOf(file: string): Parts {
  const [head = '', text = '', signatures = ''] = file.split('\n\n')
  const [, extra = '', index = '', ...hashes] = head.split('\n')
  const [, name = '', signature] = signatures.trimEnd().split(' ')
  return {
    entry: decode(extra.slice('extra '.length)),
    index: index.slice('index '.length),
    hashes: hashes.map(decode),
    text: Buffer.from(`${text}\n`),
    name,
    signature: decode(signature),
  }
}

/** Verifies inclusion and signature with Sigstore's code, which throws if it refuses them. */
function verifyParts({ entry, index, hashes, text, name, signature }: Parts, vkey: string): void {
  const envelope = `${text.toString()}\n\u2014 ${name} ${signature.toString('base64')}\n`
  const logged = {
    canonicalizedBody: entry,
    inclusionProof: { logIndex: index, hashes, checkpoint: { envelope } },
  } as Parameters<typeof verifyCheckpoint>[0]
  verifyMerkleInclusion(logged, verifyCheckpoint(logged, [authorityOf(vkey)]))
}

const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')

/** Returns a verifier key as Sigstore's description of a log. */
function authorityOf(vkey: string): Parameters<typeof verifyCheckpoint>[1][number] {
  const [baseURL = '', keyId = '', encoded] = vkey.split('+')
  const key = Buffer.concat([SPKI_PREFIX, decode(encoded).subarray(1)])
  return {
    baseURL,
    logID: Buffer.from(keyId, 'hex'),
    publicKey: createPublicKey({ key, format: 'der', type: 'spki' }),
    validFor: { start: new Date(0), end: new Date(0) },
  }
}

function isAccepted(parts: Parts, vkey: string): boolean {
  try {
    verifyParts(parts, vkey)
    return true
  } catch {
    return false
  }
}

test.each(Object.entries(ARCHIVES))('Sigstore accepts every proof file of %s', async (_name, open) => {
  const archive = await open()
  const files = await proofFiles(archive)
  expect(files.length).toBeGreaterThan(2)
  for (const file of files) verifyParts(partsOf(file), archive.vkey)
})

describe('changed bits of a proof file', () => {
  let vkey = ''
  let file = ''

  beforeEach(async () => {
    const archive = await signedArchive()
    for (const index of [0, 2]) await archive.publish(dayAt(index))
    vkey = archive.vkey
    file = (await proofFiles(archive)).at(-1) ?? ''
  })

  test('Sigstore refuses a changed bit in the entry, index, hashes, checkpoint or signature', () => {
    const parts = partsOf(file)
    const changes = [
      ...everyBit(parts.entry).map((entry) => ({ entry })),
      ...everyBit(Buffer.from(parts.index)).map((index) => ({ index: index.toString() })),
      ...parts.hashes.flatMap((hash, at) =>
        everyBit(hash).map((changed) => ({ hashes: parts.hashes.with(at, changed) })),
      ),
      ...everyBit(parts.text).map((text) => ({ text })),
      ...everyBit(parts.signature).map((signature) => ({ signature })),
    ]
    expect(isAccepted(parts, vkey)).toBe(true)
    expect(changes.filter((change) => isAccepted({ ...parts, ...change }, vkey))).toEqual([])
  })

  test('dash refuses a changed bit anywhere in the file, also where Sigstore and Go ignore it', () => {
    expect(problemOf(file, vkey)).toBeNull()
    const changed = everyBit(Buffer.from(file)).map((bytes) => bytes.toString())
    expect(changed.filter((text) => problemOf(text, vkey) === null)).toEqual([])
  })
})

/** Returns the copies of some bytes that differ from them in one bit. */
function everyBit(bytes: Buffer): Buffer[] {
  return Array.from({ length: bytes.length * 8 }, (_, bit) => flipped(bytes, bit >> 3, bit & 7))
}
