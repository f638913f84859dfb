import type { Day } from '../time.ts'
import type { Manifest } from './ledger.ts'

/** The sample of objects that an audit reads (docs/auditing.md): a random share or amount, or one bucket of several. */
export type Sample =
  | { by: 'share'; percent: number }
  | { by: 'size'; bytes: number }
  | { by: 'bucket'; bucket: number; buckets: number }

const UNITS: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 }

/**
 * Parses a sample: `5%`, `500M` (bytes, or K, M, G, T of 1024) or `2/7` (the second of seven buckets, which together
 * hold every object).
 *
 * @returns null for anything else
 */
export function parseSample(text: string): Sample | null {
  const share = /^(\d{1,3}(?:\.\d{1,6})?)%$/.exec(text)
  if (share) {
    const percent = Number(share[1])
    return percent > 0 && percent <= 100 ? { by: 'share', percent } : null
  }
  const bucket = /^(\d{1,6})\/(\d{1,6})$/.exec(text)
  if (bucket) {
    const [number, buckets] = [Number(bucket[1]), Number(bucket[2])]
    return number >= 1 && number <= buckets ? { by: 'bucket', bucket: number, buckets } : null
  }
  const size = /^(\d{1,9})([KMGT]?)(?:i?B)?$/i.exec(text)
  if (!size) return null
  const bytes = Number(size[1]) * (UNITS[(size[2] ?? '').toUpperCase()] ?? 1)
  return bytes > 0 ? { by: 'size', bytes } : null
}

/**
 * Selects the publications whose objects an audit reads, in the given order.
 *
 * @param since excludes earlier as-of days
 * @param random numbers from 0 (inclusive) to 1 (exclusive)
 */
export function chooseManifests(
  manifests: readonly Manifest[],
  { since, sample }: { since: Day | null; sample: Sample | null },
  random: () => number,
): Manifest[] {
  const recent = manifests.filter(({ asOfDay }) => since === null || asOfDay >= since)
  switch (sample?.by) {
    case undefined:
      return recent
    case 'bucket':
      return recent.filter(({ sha256 }) => bucketOf(sha256, sample.buckets) === sample.bucket)
    case 'share': {
      const drawn = shuffled(recent, random).slice(0, Math.ceil((recent.length * sample.percent) / 100))
      return inOrder(recent, drawn)
    }
    case 'size': {
      let left = sample.bytes
      const drawn = shuffled(recent, random).filter(({ byteSize }, index) => {
        // The first one is always included: a sample smaller than any object still reads something.
        if (index > 0 && byteSize > left) return false
        left -= byteSize
        return true
      })
      return inOrder(recent, drawn)
    }
  }
}

/** Bucket of a digest, 1 to `buckets`: evenly distributed and permanent. */
function bucketOf(sha256: string, buckets: number): number {
  return (Number.parseInt(sha256.slice(0, 12), 16) % buckets) + 1
}

function inOrder(all: readonly Manifest[], some: readonly Manifest[]): Manifest[] {
  const chosen = new Set(some)
  return all.filter((manifest) => chosen.has(manifest))
}

/** Shuffles by Fisher and Yates. */
function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const order = [...items]
  for (let last = order.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1))
    const item = order[last] as T
    order[last] = order[other] as T
    order[other] = item
  }
  return order
}
