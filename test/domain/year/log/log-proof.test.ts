import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  formatLogProof,
  parseLogProof,
  proveEntry,
  verifyLogProof,
} from '../../../../src/domain/year/log/log-proof.ts'
import type { LogProof } from '../../../../src/domain/year/log/log-proof.ts'
import { leafHash, merkleTree, rootAt } from '../../../../src/domain/year/log/merkle-tree.ts'
import {
  checkpointText,
  parseVerifierKey,
  signNote,
  signerKey,
} from '../../../../src/domain/year/log/signed-note.ts'
import type { VerifierKey } from '../../../../src/domain/year/log/signed-note.ts'
import { LOG_SEED, LOG_VKEY, PROOF_OF_C, SIGNED_CHECKPOINT, TWICE_SIGNED_CHECKPOINT } from '../log-vectors.ts'

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

function proofOf(text: string): LogProof {
  const proof = parseLogProof(text)
  if (proof === null) throw new Error('not a proof')
  return proof
}

const KEYS = [parseVerifierKey(LOG_VKEY) as VerifierKey]

describe('proof files', () => {
  test('the proof file of an entry equals the published one', () => {
    const entries = ['a', 'b', 'c'].map(utf8)
    const tree = merkleTree(entries.map(leafHash))
    const proof = proveEntry(tree, utf8('c'), 2, 3, SIGNED_CHECKPOINT)
    expect(formatLogProof(proof)).toBe(PROOF_OF_C)
    expect(proofOf(PROOF_OF_C)).toMatchObject({ index: 2, checkpoint: SIGNED_CHECKPOINT })
  })

  test.each([
    ['alone', SIGNED_CHECKPOINT],
    ['whatever other keys signed its checkpoint', TWICE_SIGNED_CHECKPOINT],
  ])('a proof file is verified with the key of its log %s', (_what, checkpoint) => {
    expect(verifyLogProof(proofOf(PROOF_OF_C.replace(SIGNED_CHECKPOINT, checkpoint)), KEYS)).toMatchObject({
      problem: null,
      checkpoint: { origin: 'dash.example/year', size: 3 },
    })
  })

  test.each([
    [
      'another entry',
      PROOF_OF_C.replace('Yw==', 'Yg=='),
      'entry 2 is not in the tree of 3 entries that the log signed',
    ],
    [
      'another index',
      PROOF_OF_C.replace('index 2', 'index 1'),
      'entry 1 is not in the tree of 3 entries that the log signed',
    ],
    [
      'an index beyond the tree',
      PROOF_OF_C.replace('index 2', 'index 3'),
      'entry 3 is not in the tree of 3 entries that the log signed',
    ],
    [
      'another hash',
      PROOF_OF_C.replace('sTeYX', 'sTeYY'),
      'entry 2 is not in the tree of 3 entries that the log signed',
    ],
    [
      'another size',
      PROOF_OF_C.replace('\n3\n', '\n4\n'),
      'the checkpoint is not trusted: the signature of dash.example/year is invalid',
    ],
  ])('a proof file with %s is refused', (_what, text, problem) => {
    expect(verifyLogProof(proofOf(text), KEYS)).toEqual({ problem })
  })

  test.each([
    ['an entry that is not canonical', PROOF_OF_C.replace('Yw==', 'Yx==')],
    ['a hash that is not canonical', PROOF_OF_C.replace('mes=', 'met=')],
    ['a short hash after the others', PROOF_OF_C.replace('\n\n', '\nAAAA\n\n')],
    ['another version', PROOF_OF_C.replace('@v1', '@v2')],
    ['two empty lines before the checkpoint', PROOF_OF_C.replace('\n\n', '\n\n\n')],
  ])('a text with %s is not a valid proof file', (_what, text) => {
    const proof = parseLogProof(text)
    expect(proof === null || verifyLogProof(proof, KEYS).problem !== null).toBe(true)
  })

  test('a proof file with one changed bit is refused', () => {
    const bytes = Buffer.from(PROOF_OF_C)
    fc.assert(
      fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
        const changed = Buffer.from(bytes)
        const at = bit >> 3
        changed[at] = (changed[at] as number) ^ (1 << (bit & 7))
        const proof = parseLogProof(changed.toString())
        expect(proof === null || verifyLogProof(proof, KEYS).problem !== null).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('the proof file of any entry of a tree of any size is verified and formats to the same text', () => {
    const entries = Array.from({ length: 300 }, (_, index) => utf8(`line ${index}`))
    const tree = merkleTree(entries.map(leafHash))
    const key = signerKey('dash.example/year', LOG_SEED)
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), fc.nat(), (size, at) => {
        const index = at % size
        const note = signNote(checkpointText({ origin: key.name, size, root: rootAt(tree, size) }), key)
        const text = formatLogProof(proveEntry(tree, entries[index] as Uint8Array, index, size, note))
        const proof = proofOf(text)
        expect(formatLogProof(proof)).toBe(text)
        expect(verifyLogProof(proof, KEYS)).toMatchObject({ problem: null, checkpoint: { size } })
      }),
      { numRuns: 50 },
    )
  })
})
