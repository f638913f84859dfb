import { createHash } from 'node:crypto'

/** Literal implementation of RFC 6962, section 2.1. It is slow and shares no code with the implementation it checks. */

const sha256 = (...parts: Uint8Array[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** The largest power of two smaller than n. */
function k(n: number): number {
  return 2 ** ((n - 1).toString(2).length - 1)
}

/** MTH(D[n]) */
export function naiveRoot(entries: readonly Uint8Array[]): Buffer {
  const n = entries.length
  const [first] = entries
  if (first === undefined) return sha256()
  if (n === 1) return sha256(Buffer.of(0), first)
  return sha256(Buffer.of(1), naiveRoot(entries.slice(0, k(n))), naiveRoot(entries.slice(k(n))))
}

/** PATH(m, D[n]) */
export function naivePath(m: number, entries: readonly Uint8Array[]): Buffer[] {
  const n = entries.length
  if (n === 1) return []
  if (m < k(n)) return [...naivePath(m, entries.slice(0, k(n))), naiveRoot(entries.slice(k(n)))]
  return [...naivePath(m - k(n), entries.slice(k(n))), naiveRoot(entries.slice(0, k(n)))]
}

/** PROOF(m, D[n]) */
export function naiveProof(m: number, entries: readonly Uint8Array[]): Buffer[] {
  return subproof(m, entries, true)
}

/** SUBPROOF(m, D[n], b) */
function subproof(m: number, entries: readonly Uint8Array[], b: boolean): Buffer[] {
  const n = entries.length
  if (m === n) return b ? [] : [naiveRoot(entries)]
  if (m <= k(n)) return [...subproof(m, entries.slice(0, k(n)), b), naiveRoot(entries.slice(k(n)))]
  return [...subproof(m - k(n), entries.slice(k(n)), false), naiveRoot(entries.slice(0, k(n)))]
}

export interface TreeHead {
  size: number
  root: Uint8Array
}

const isSame = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0

/** Returns true if a consistency proof shows that the newer tree begins with the older one. */
export function isConsistent(older: TreeHead, newer: TreeHead, proof: readonly Uint8Array[]): boolean {
  if (older.size > newer.size) return false
  if (older.size === 0) return proof.length === 0 && isSame(older.root, sha256())
  const roots = rootsOfConsistency(older.size, newer.size, proof, older.root)
  return roots !== null && isSame(roots.older, older.root) && isSame(roots.newer, newer.root)
}

/** @param known root of the older tree, while the subtree can be all of it; otherwise null */
function rootsOfConsistency(
  older: number,
  count: number,
  proof: readonly Uint8Array[],
  known: Uint8Array | null,
): { older: Uint8Array; newer: Uint8Array } | null {
  const last = proof.at(-1)
  if (older === count) {
    const root = known ?? last
    return root !== undefined && proof.length === (known === null ? 1 : 0)
      ? { older: root, newer: root }
      : null
  }
  if (last === undefined) return null
  const below = proof.slice(0, -1)
  const left = k(count)
  if (older <= left) {
    const roots = rootsOfConsistency(older, left, below, known)
    return roots && { older: roots.older, newer: sha256(Buffer.of(1), roots.newer, last) }
  }
  const roots = rootsOfConsistency(older - left, count - left, below, null)
  return (
    roots && {
      older: sha256(Buffer.of(1), last, roots.older),
      newer: sha256(Buffer.of(1), last, roots.newer),
    }
  )
}
