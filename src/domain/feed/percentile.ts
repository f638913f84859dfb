/**
 * Midpoint empirical percentiles (docs/ranking.md, rules 4 and 5): `p = (L + E/2) / n`, where `L` members
 * rank below, `E` rank equal (itself included), of `n`.
 *
 * @param members any order; not changed
 * @param compare below zero when the first ranks lower; zero makes them equal
 * @returns one percentile in (0, 1) for each member
 */
export function midpointPercentiles<T>(
  members: readonly T[],
  compare: (a: T, b: T) => number,
): Map<T, number> {
  const ascending = [...members].sort(compare)
  const percentiles = new Map<T, number>()
  let start = 0
  while (start < ascending.length) {
    const first = ascending[start] as T
    let end = start + 1
    while (end < ascending.length && compare(ascending[end] as T, first) === 0) end += 1
    const percentile = (start + (end - start) / 2) / ascending.length
    for (let index = start; index < end; index += 1) percentiles.set(ascending[index] as T, percentile)
    start = end
  }
  return percentiles
}
