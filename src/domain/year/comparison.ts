/** One list of a Year held against the same list of another (docs/page.md). */

/** What an item needs to be compared. */
interface Ranked {
  key: string
  rank: number
}

/** An item that stands in both lists. */
interface Kept<T> {
  before: T
  after: T
  /** How many ranks it rose; below zero, fell. */
  rose: number
}

export interface Comparison<T> {
  /** Items of the later list alone, by rank. */
  entered: T[]
  /** Items of the earlier list alone, by the rank they had. */
  left: T[]
  /** Items of both whose rank differs, by the later rank. */
  moved: Kept<T>[]
  /** Items of both at the same rank. */
  stayed: Kept<T>[]
}

/** What became of a list; items are known by their save keys. */
export function compareLists<T extends Ranked>(earlier: readonly T[], later: readonly T[]): Comparison<T> {
  const earlierByKey = new Map(earlier.map((item) => [item.key, item]))
  const laterKeys = new Set(later.map(({ key }) => key))
  const kept = later.flatMap((item) => {
    const old = earlierByKey.get(item.key)
    return old ? [{ before: old, after: item, rose: old.rank - item.rank }] : []
  })
  return {
    entered: later.filter(({ key }) => !earlierByKey.has(key)),
    left: earlier.filter(({ key }) => !laterKeys.has(key)),
    moved: kept.filter(({ rose }) => rose !== 0),
    stayed: kept.filter(({ rose }) => rose === 0),
  }
}
