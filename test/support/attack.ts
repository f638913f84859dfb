import { availableParallelism } from 'node:os'

/** `DASH_ATTACK=long`: every point of an attack, as told in docs/evidence.md; otherwise a spread of them. */
export const LONG = process.env['DASH_ATTACK'] === 'long'

/** How many runs of an attack go on at the same time. */
export const LANES = Math.min(2, availableParallelism())

/** Prints what an attack found, a line each, where a person and a log can read it. */
export function tell(title: string, facts: Readonly<Record<string, number | string>>): void {
  const lines = Object.entries(facts).map(([name, value]) => `  ${name}: ${value}`)
  process.stdout.write(`${title}\n${lines.join('\n')}\n`)
}

/** How often each value occurs, most frequent first, as one line. */
export function tally(values: readonly (string | number | null)[]): string {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(String(value), (counts.get(String(value)) ?? 0) + 1)
  const sorted = [...counts].sort(([, left], [, right]) => right - left)
  return sorted.map(([value, count]) => `${value} (${count})`).join(', ')
}
