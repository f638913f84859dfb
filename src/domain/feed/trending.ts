/** Time in which an event's trend halves (docs/ranking.md). */
export const HALF_LIFE_MS = 6 * 60 * 60 * 1000

/**
 * How much an event trends (docs/ranking.md): `1 / (1 - p) * 2^(-age / 6 h)`. The first factor says that one event in
 * so many of its source stands as high, in no unit, so that sources compare; the second halves it every six hours.
 *
 * @param percentile of the event's points among its source, in (0, 1)
 * @param ageMs since its publication
 * @returns above 0; two events of one percentile differ by their age alone
 */
export function trendOf(percentile: number, ageMs: number): number {
  return (1 / (1 - percentile)) * 2 ** (-ageMs / HALF_LIFE_MS)
}
