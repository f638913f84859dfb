import { family } from '../../domain/metrics/catalogue.ts'
import type { MetricName } from '../../domain/metrics/catalogue.ts'
import type { MetricFamily, Sample } from '../../domain/metrics/exposition.ts'

/** Values of a metric's labels. */
type Labels = Readonly<Record<string, string>>

/** A number that only grows, under each set of labels. */
export interface Counter {
  add(labels: Labels, by?: number): void
  family(): MetricFamily
}

/**
 * @param known sets of labels that are told from the start on: of a counter that appears with its first event Prometheus
 *   sees no increase
 */
export function counter(name: MetricName, known: readonly Labels[] = []): Counter {
  const values = new Map<string, { labels: Labels; value: number }>()
  const add = (labels: Labels, by: number): void => {
    const key = JSON.stringify(labels)
    const found = values.get(key)
    if (found) found.value += by
    else values.set(key, { labels, value: by })
  }
  for (const labels of known) add(labels, 0)
  return {
    add: (labels, by = 1) => add(labels, by),
    family: () => family(name, [...values.values()]),
  }
}

/** How often something took how long, under each set of labels. */
export interface Histogram {
  observe(labels: Labels, seconds: number): void
  family(): MetricFamily
}

/** @param bounds upper bounds of the buckets in seconds, ascending */
export function histogram(name: MetricName, bounds: readonly number[]): Histogram {
  const values = new Map<string, { labels: Labels; buckets: number[]; count: number; sum: number }>()
  return {
    observe(labels, seconds) {
      const key = JSON.stringify(labels)
      const found = values.get(key) ?? { labels, buckets: bounds.map(() => 0), count: 0, sum: 0 }
      values.set(key, found)
      const bucket = bounds.findIndex((bound) => seconds <= bound)
      if (bucket >= 0) found.buckets[bucket] = (found.buckets[bucket] ?? 0) + 1
      found.count += 1
      found.sum += seconds
    },
    family: () =>
      family(
        name,
        [...values.values()].flatMap((value) => samplesOf(value, bounds)),
      ),
  }
}

function samplesOf(
  { labels, buckets, count, sum }: { labels: Labels; buckets: readonly number[]; count: number; sum: number },
  bounds: readonly number[],
): Sample[] {
  let below = 0
  const cumulative = bounds.map((bound, index): Sample => {
    below += buckets[index] ?? 0
    return { suffix: '_bucket', labels: { ...labels, le: String(bound) }, value: below }
  })
  return [
    ...cumulative,
    { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: count },
    { suffix: '_sum', labels, value: sum },
    { suffix: '_count', labels, value: count },
  ]
}
