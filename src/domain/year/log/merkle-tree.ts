import { sha256 } from '../../digest.ts'

/**
 * The Merkle tree of RFC 6962 over the lines of the ledger, and its proofs. Entry `seq - 1` of the tree is the line of
 * ledger entry `seq`, byte for byte.
 */

/** A SHA-256 hash: 32 bytes. */
export type Hash = Uint8Array

export const HASH_BYTES = 32

const LEAF_PREFIX = Uint8Array.of(0)
const NODE_PREFIX = Uint8Array.of(1)

export function leafHash(entry: Uint8Array): Hash {
  return sha256(Buffer.concat([LEAF_PREFIX, entry]))
}

function nodeHash(left: Hash, right: Hash): Hash {
  return sha256(Buffer.concat([NODE_PREFIX, left, right]))
}

/**
 * Tree with the hash of every complete subtree. A root, a proof or a tile at any size costs a number of hashes that
 * grows with the logarithm of the size.
 */
export interface MerkleTree {
  readonly size: number
  /** `levels[h][i]` is the root over the leaves from `i * 2 ** h` up to, not including, `(i + 1) * 2 ** h`. */
  readonly levels: readonly (readonly Hash[])[]
}

/** Builds the tree over leaf hashes, in order. */
export function merkleTree(leaves: readonly Hash[]): MerkleTree {
  const levels: Hash[][] = []
  for (let level = [...leaves]; level.length > 0; level = parentsOf(level)) levels.push(level)
  return { size: leaves.length, levels }
}

function parentsOf(level: readonly Hash[]): Hash[] {
  return Array.from({ length: level.length >>> 1 }, (_, index) =>
    nodeHash(level[2 * index] as Hash, level[2 * index + 1] as Hash),
  )
}

/**
 * Returns the root of a tree's first `size` leaves.
 *
 * @throws RangeError if the tree is smaller
 */
export function rootAt(tree: MerkleTree, size: number): Hash {
  requireSize(tree, size)
  return size === 0 ? sha256(new Uint8Array()) : subtreeRoot(tree, 0, size)
}

/**
 * Returns the root over `count` leaves from `start`.
 *
 * @param start must be a multiple of the greatest power of two up to `count`
 */
function subtreeRoot(tree: MerkleTree, start: number, count: number): Hash {
  const height = Math.log2(count)
  if (Number.isInteger(height)) return tree.levels[height]?.[start / count] as Hash
  const left = leftCount(count)
  return nodeHash(subtreeRoot(tree, start, left), subtreeRoot(tree, start + left, count - left))
}

/** Returns how many of `count` leaves are below the left child: the greatest power of two that is less than `count`. */
function leftCount(count: number): number {
  let left = 1
  while (left * 2 < count) left *= 2
  return left
}

function requireSize({ size }: MerkleTree, wanted: number): void {
  if (!Number.isSafeInteger(wanted) || wanted < 0 || wanted > size)
    throw new RangeError(`a tree of ${size} leaves has no size ${wanted}`)
}

/**
 * Returns the inclusion proof of a leaf in the tree of `size` leaves (RFC 6962, 2.1.1), from the leaf's sibling up.
 *
 * @throws RangeError if that tree has no such leaf
 */
export function inclusionProof(tree: MerkleTree, index: number, size: number): Hash[] {
  requireSize(tree, size)
  if (!Number.isSafeInteger(index) || index < 0 || index >= size)
    throw new RangeError(`a tree of ${size} leaves has no leaf ${index}`)
  return path(tree, index, 0, size)
}

function path(tree: MerkleTree, index: number, start: number, count: number): Hash[] {
  if (count === 1) return []
  const left = leftCount(count)
  return index < left
    ? [...path(tree, index, start, left), subtreeRoot(tree, start + left, count - left)]
    : [...path(tree, index - left, start + left, count - left), subtreeRoot(tree, start, left)]
}

/** Computes the root from an inclusion proof; null if the proof has the wrong length for this index and size. */
export function rootOfInclusion(
  leaf: Hash,
  index: number,
  size: number,
  proof: readonly Hash[],
): Hash | null {
  if (index < 0 || index >= size) return null
  if (size === 1) return proof.length === 0 ? leaf : null
  const sibling = proof.at(-1)
  if (sibling === undefined) return null
  const below = proof.slice(0, -1)
  const left = leftCount(size)
  const child =
    index < left
      ? rootOfInclusion(leaf, index, left, below)
      : rootOfInclusion(leaf, index - left, size - left, below)
  if (child === null) return null
  return index < left ? nodeHash(child, sibling) : nodeHash(sibling, child)
}
