import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../../src/domain/digest.ts'
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
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')
const treeOf = (entries: readonly Uint8Array[]): MerkleTree => merkleTree(entries.map(leafHash))

const ABC = ['a', 'b', 'c'].map(utf8)

const LEDGER = readFileSync(new URL('../../../fixtures/tiled-log/ledger.ndjson', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')

/** Returns distinct entries. */
const numbered = (count: number): Uint8Array[] =>
  Array.from({ length: count }, (_, index) => utf8(`["dash-year-ledger/1",${index}]`))

const LARGEST = 70_000
const entries = numbered(LARGEST)
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

  test('the empty tree has the hash of no bytes as its root', () => {
    expect(base64(rootAt(treeOf([]), 0))).toBe('47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=')
  })

  test('the tree of a real ledger has the published roots', () => {
    expect(sha256Hex(LEDGER.at(-1) ?? '')).toMatch(/^54be3861.*c6ad$/)
    const lines = LEDGER.map(utf8)
    const ofLedger = treeOf(lines)
    expect(ofLedger.size).toBe(30)
    expect(base64(rootAt(ofLedger, 30))).toBe('Do9aXIifqXx3eo6K5eLqJxtytP1mrzmQqz3eEX/4xXI=')
    expect(base64(rootAt(ofLedger, 20))).toBe('+hpCGnAAEApIKKZEFt0nBTtsDD2C9C0bzplN/FXfNrc=')
  })

  test.each([
    [256, '7rCNHm0WFNvSRDimCCJBlyHlUhui1enb4sndrA5bc1Y='],
    [600, 'Lsa5JYB6Y3psoDUbeSvS9qonzCdG9KsNUr2iTY/GHgE='],
    [LARGEST, 'Z76uKZ1nnb2/Qh0QcaismaLLljVj/GzHcpANtdLKFD8='],
  ])('a tree of %i entries has the published root', (size, root) => {
    expect(base64(rootAt(tree, size))).toBe(root)
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

  test('larger trees have the defined roots and proofs', () => {
    fc.assert(
      fc.property(fc.integer({ min: 271, max: 5_000 }), fc.nat(), (size, leaf) => {
        const own = entries.slice(0, size)
        const index = leaf % size
        expect(hex(rootAt(tree, size))).toBe(hex(naiveRoot(own)))
        expect(inclusionProof(tree, index, size).map(hex)).toEqual(naivePath(index, own).map(hex))
      }),
      { numRuns: 3 },
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

test.each([
  (): unknown => rootAt(treeOf(ABC), 4),
  (): unknown => rootAt(treeOf(ABC), -1),
  (): unknown => rootAt(treeOf(ABC), 1.5),
  (): unknown => inclusionProof(treeOf(ABC), 2, 2),
  (): unknown => inclusionProof(treeOf(ABC), -1, 2),
  (): unknown => inclusionProof(treeOf(ABC), 0, 4),
])('a root or proof outside of the tree throws a RangeError: %s', (ask) => {
  expect(ask).toThrow(RangeError)
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
