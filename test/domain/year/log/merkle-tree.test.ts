import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  inclusionProof,
  leafHash,
  merkleTree,
  rootAt,
  rootOfInclusion,
} from '../../../../src/domain/year/log/merkle-tree.ts'
import type { Hash, MerkleTree } from '../../../../src/domain/year/log/merkle-tree.ts'
import { naivePath, naiveRoot } from '../naive-merkle-tree.ts'

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const hex = (bytes: Uint8Array | null): string | null => bytes && Buffer.from(bytes).toString('hex')
const treeOf = (entries: readonly Uint8Array[]): MerkleTree => merkleTree(entries.map(leafHash))

const ABC = ['a', 'b', 'c'].map(utf8)

const LARGEST = 5_000
const entries = Array.from({ length: LARGEST }, (_, index) => utf8(`["dash-year-ledger/1",${index}]`))
const tree = treeOf(entries)

describe('published vectors', () => {
  test('the tree of three entries has the published hashes', () => {
    expect(ABC.map(leafHash).map(hex)).toEqual([
      '022a6979e6dab7aa5ae4c3e5e45f7e977112a7e63593820dbec1ec738a24f93c',
      '57eb35615d47f34ec714cacdf5fd74608a5e8e102724e80b24b287c0c27b6a31',
      '597fcb31282d34654c200d3418fca5705c648ebf326ec73d8ddef11841f876d8',
    ])
    const ofThree = treeOf(ABC)
    expect(hex(rootAt(ofThree, 2))).toBe('b137985ff484fb600db93107c77b0365c80d78f5b429ded0fd97361d077999eb')
    expect(hex(rootAt(ofThree, 3))).toBe('36642e73c2540ab121e3a6bf9545b0a24982cd830eb13d3cd19de3ce6c021ec1')
  })
})

describe('comparison with a literal implementation of RFC 6962', () => {
  test('every tree of up to 270 entries has the defined root', () => {
    for (let size = 0; size <= 270; size += 1)
      expect(hex(rootAt(tree, size))).toBe(hex(naiveRoot(entries.slice(0, size))))
  })

  test('every leaf of trees of up to 40 entries has the defined inclusion proof', () => {
    for (let size = 1; size <= 40; size += 1)
      for (let index = 0; index < size; index += 1)
        expect(inclusionProof(tree, index, size).map(hex)).toEqual(
          naivePath(index, entries.slice(0, size)).map(hex),
        )
  })
})

describe('verification', () => {
  test('the inclusion proof of every leaf of trees of up to 130 entries leads to the root', () => {
    for (let size = 1; size <= 130; size += 1)
      for (let index = 0; index < size; index += 1) {
        const proof = inclusionProof(tree, index, size)
        const root = rootOfInclusion(leafHash(entries[index] as Uint8Array), index, size, proof)
        expect(hex(root)).toBe(hex(rootAt(tree, size)))
      }
  })

  const sizes = fc.integer({ min: 1, max: LARGEST })

  test('an inclusion proof with another leaf, index, length or hash is refused', () => {
    fc.assert(
      fc.property(sizes, fc.nat(), fc.nat(), (size, at, bit) => {
        const index = at % size
        const leaf = leafHash(entries[index] as Uint8Array)
        const proof = inclusionProof(tree, index, size)
        const root = hex(rootAt(tree, size))
        expect(hex(rootOfInclusion(leaf, index, size, proof))).toBe(root)
        expect(hex(rootOfInclusion(flipped(leaf, bit), index, size, proof))).not.toBe(root)
        expect(rootOfInclusion(leaf, size, size, proof)).toBeNull()
        expect(hex(rootOfInclusion(leaf, index, size, [...proof, leaf]))).not.toBe(root)
        if (proof.length === 0) return
        const other = (index + 1) % size
        expect(hex(rootOfInclusion(leaf, other, size, proof))).not.toBe(root)
        expect(hex(rootOfInclusion(leaf, index, size, proof.slice(1)))).not.toBe(root)
        expect(hex(rootOfInclusion(leaf, index, size, withFlippedHash(proof, bit)))).not.toBe(root)
      }),
      { numRuns: 200 },
    )
  })
})

test('a root or proof outside of the tree throws a RangeError', () => {
  const ofThree = treeOf(ABC)
  for (const size of [4, -1, 1.5]) expect(() => rootAt(ofThree, size)).toThrow(RangeError)
  for (const [index, size] of [
    [2, 2],
    [-1, 2],
    [0, 4],
  ] as const)
    expect(() => inclusionProof(ofThree, index, size)).toThrow(RangeError)
})

function flipped(bytes: Uint8Array, bit: number): Uint8Array {
  const copy = Uint8Array.from(bytes)
  const at = (bit >> 3) % copy.length
  copy[at] = (copy[at] as number) ^ (1 << (bit & 7))
  return copy
}

function withFlippedHash(proof: readonly Hash[], bit: number): Hash[] {
  const at = bit % proof.length
  return proof.map((hash, index) => (index === at ? flipped(hash, bit >> 5) : hash))
}
