import { expect, test } from 'vitest'
import {
  inclusionProof,
  leafHash,
  merkleTree,
  rootAt,
  rootOfInclusion,
} from '../../../../src/domain/year/log/merkle-tree.ts'
import { naivePath, naiveRoot } from '../naive-merkle-tree.ts'

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const hex = (bytes: Uint8Array | null): string | null => bytes && Buffer.from(bytes).toString('hex')

const entries = Array.from({ length: 270 }, (_, index) => utf8(`["dash-year-ledger/1",${index}]`))
const leaves = entries.map(leafHash)
const tree = merkleTree(leaves)

const ABC = ['a', 'b', 'c'].map((text) => leafHash(utf8(text)))

test('every tree of up to 270 entries has the root that RFC 6962 defines', () => {
  for (let size = 0; size <= 270; size += 1)
    expect(hex(rootAt(tree, size))).toBe(hex(naiveRoot(entries.slice(0, size))))
})

test('every leaf of trees of up to 40 entries has the inclusion proof that RFC 6962 defines', () => {
  for (let size = 1; size <= 40; size += 1)
    for (let index = 0; index < size; index += 1)
      expect(inclusionProof(tree, index, size).map(hex)).toEqual(
        naivePath(index, entries.slice(0, size)).map(hex),
      )
})

test('an inclusion proof leads to the root, and none with another leaf, index, length or hash does', () => {
  const other = leafHash(utf8('another'))
  for (let size = 1; size <= 70; size += 1)
    for (const [index, leaf] of leaves.slice(0, size).entries()) {
      const root = hex(rootAt(tree, size))
      const proof = inclusionProof(tree, index, size)
      const refused = [
        rootOfInclusion(other, index, size, proof),
        rootOfInclusion(leaf, size, size, proof),
        rootOfInclusion(leaf, index, size, [...proof, other]),
        ...(size > 1 ? [rootOfInclusion(leaf, (index + 1) % size, size, proof)] : []),
        ...proof.map((_hash, at) => rootOfInclusion(leaf, index, size, proof.toSpliced(at, 1))),
        ...proof.map((_hash, at) => rootOfInclusion(leaf, index, size, proof.with(at, other))),
      ]
      expect(hex(rootOfInclusion(leaf, index, size, proof))).toBe(root)
      expect(refused.map(hex)).not.toContain(root)
    }
})

test('a root or proof outside of the tree throws a RangeError', () => {
  const ofThree = merkleTree(ABC)
  for (const size of [4, -1, 1.5]) expect(() => rootAt(ofThree, size)).toThrow(RangeError)
  for (const index of [-1, 2]) expect(() => inclusionProof(ofThree, index, 2)).toThrow(RangeError)
  expect(() => inclusionProof(ofThree, 0, 4)).toThrow(RangeError)
})
