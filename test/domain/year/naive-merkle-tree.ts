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
