import { sha256Hex } from '../../digest.ts'

/** A seeded random generator: the same seed gives the same draws on every machine and in every version. */
export interface Draw {
  /** A whole number from `least` to `greatest`, both included. */
  integer(least: number, greatest: number): number
  /** An element of a nonempty list. */
  pick<T>(from: readonly T[]): T
  /** `count` different elements in drawn order; the list must have at least as many. */
  sample<T>(from: readonly T[], count: number): T[]
  /** A word of lower-case letters and digits that begins with a letter. */
  word(length: number): string
}

const LETTERS = Array.from('abcdefghijkmnpqrstuvwxyz')
const LETTERS_AND_DIGITS = [...LETTERS, ...Array.from('23456789')]

/**
 * Creates a generator from a seed text: SHA-256 of the text gives the four initial words of the generator sfc32 (Chris
 * Doty-Humphrey, 32-bit arithmetic only); its first twelve numbers are discarded.
 */
export function drawsFrom(seed: string): Draw {
  const next = sfc32(sha256Hex(seed))
  const integer = (least: number, greatest: number): number =>
    least + Math.floor((next() / 2 ** 32) * (greatest - least + 1))
  const sample = <T>(from: readonly T[], count: number): T[] => {
    const left = [...from]
    return Array.from({ length: count }, () => left.splice(integer(0, left.length - 1), 1)[0] as T)
  }
  const pick = <T>(from: readonly T[]): T => from[integer(0, from.length - 1)] as T
  const word = (length: number): string =>
    pick(LETTERS) + Array.from({ length: length - 1 }, () => pick(LETTERS_AND_DIGITS)).join('')
  return { integer, pick, sample, word }
}

/** Generates unsigned 32-bit numbers. */
function sfc32(hex: string): () => number {
  const word = (index: number): number => Number.parseInt(hex.slice(index * 8, index * 8 + 8), 16) | 0
  let [a, b, c, counter] = [word(0), word(1), word(2), word(3)]
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return sum >>> 0
  }
  for (let skipped = 0; skipped < 12; skipped += 1) next()
  return next
}
